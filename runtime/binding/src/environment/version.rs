//! Versions, names and error texts (MPI-4.1 sections 9.1 and 9.4).

use super::give_text;
use crate::arguments::{on_process, output};
use cohort_abi::{Abi, neutral};
use cohort_base::text::FixedText;
use core::ffi::{c_char, c_int, c_void};

/// Version of the standard whose functions this runtime names.
const STANDARD: (c_int, c_int) = (5, 0);

macro_rules! pairs {
    ($($(#[$page:meta])* $name:ident $mpi:literal $value:expr;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: both results are valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            major: *mut c_int,
            minor: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_process::<A>(caller, $mpi, |_| {
                    output(major)?;
                    output(minor)?;
                    let (first, second) = $value;
                    major.write(first);
                    minor.write(second);
                    Ok(())
                })
            }
        }
    )*};
}

pairs! {
    /// `MPI_Get_version`.
    get_version "MPI_Get_version" STANDARD;
    /// `MPI_Abi_get_version`.
    abi_get_version "MPI_Abi_get_version" A::VERSION;
}

/// `MPI_Get_library_version`.
///
/// # Safety
/// MPI's: `version` has room for `MPI_MAX_LIBRARY_VERSION_STRING` bytes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn get_library_version<A: Abi>(
    caller: *const c_void,
    version: *mut c_char,
    length: *mut c_int,
) -> c_int {
    let text = FixedText::<128>::of(format_args!(
        "Cohort {}, {} ABI",
        env!("CARGO_PKG_VERSION"),
        A::NAME
    ));
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Get_library_version", |_| {
            give_text(
                text.as_str(),
                version,
                A::MAX_LIBRARY_VERSION_STRING,
                length,
            )
        })
    }
}

/// `MPI_Get_processor_name`: the host's name.
///
/// # Safety
/// MPI's: `name` has room for `MPI_MAX_PROCESSOR_NAME` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn get_processor_name<A: Abi>(
    caller: *const c_void,
    name: *mut c_char,
    length: *mut c_int,
) -> c_int {
    let host = rustix::system::uname();
    let text = host.nodename().to_str().unwrap_or("localhost");
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Get_processor_name", |_| {
            give_text(text, name, A::MAX_PROCESSOR_NAME, length)
        })
    }
}

/// `MPI_Error_class`.
///
/// # Safety
/// MPI's: `class` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn error_class<A: Abi>(
    caller: *const c_void,
    code: c_int,
    class: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Error_class", |call| {
            call.output(class, "errorclass")?;
            let found = call.objects().errors.class_of(A::error_in(code));
            class.write(A::error_out(found.ok_or(neutral::ERR_ARG)?));
            Ok(())
        })
    }
}

/// `MPI_Error_string`.
///
/// # Safety
/// MPI's: `text` has room for `MPI_MAX_ERROR_STRING` bytes; `caller` is the calling rank.
pub unsafe extern "C" fn error_string<A: Abi>(
    caller: *const c_void,
    code: c_int,
    text: *mut c_char,
    length: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Error_string", |call| {
            let found = call.objects().errors.text(A::error_in(code));
            give_text(
                &found.ok_or(neutral::ERR_ARG)?,
                text,
                A::MAX_ERROR_STRING,
                length,
            )
        })
    }
}

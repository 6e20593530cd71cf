//! Versions, names and error texts (MPI-4.1 sections 9.1 and 9.4).

use crate::arguments::{Call, Outcome, output};
use crate::text::{give_bytes, give_text};
use cohort_abi::parameters::{Out, TextOut};
use cohort_abi::{Abi, neutral};
use cohort_base::text::FixedText;
use core::ffi::c_int;

/// Version of the standard whose functions this runtime names.
const STANDARD: (c_int, c_int) = (5, 0);

macro_rules! pairs {
    ($($(#[$page:meta])* $name:ident $value:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            _call: &Call<'_, A>,
            major: Out<'_, c_int>,
            minor: Out<'_, c_int>,
        ) -> Outcome<()> {
            let major = output(major)?;
            let minor = output(minor)?;
            let (first, second) = $value;
            major.write(first);
            minor.write(second);
            Ok(())
        }
    )*};
}

pairs! {
    /// `MPI_Get_version`.
    get_version STANDARD;
    /// `MPI_Abi_get_version`.
    abi_get_version A::VERSION;
}

/// `MPI_Get_library_version`.
pub fn get_library_version<A: Abi>(_call: &Call<'_, A>, version: TextOut<'_>, length: Out<'_, c_int>) -> Outcome<()> {
    let text = FixedText::<128>::of(format_args!("Cohort {}, {} ABI", env!("CARGO_PKG_VERSION"), A::NAME));
    let length = output(length)?;
    length.write(give_text(text.as_str(), version, A::MAX_LIBRARY_VERSION_STRING)?);
    Ok(())
}

/// `MPI_Get_processor_name`: the host's name.
pub fn get_processor_name<A: Abi>(_call: &Call<'_, A>, name: TextOut<'_>, length: Out<'_, c_int>) -> Outcome<()> {
    let host = rustix::system::uname();
    let text = host.nodename().to_str().unwrap_or("localhost");
    let length = output(length)?;
    length.write(give_text(text, name, A::MAX_PROCESSOR_NAME)?);
    Ok(())
}

/// `MPI_Error_class`.
pub fn error_class<A: Abi>(call: &Call<'_, A>, code: c_int, class: Out<'_, c_int>) -> Outcome<()> {
    let class = call.output(class, "errorclass")?;
    let found = call.objects().errors.class_of(A::error_in(code));
    class.write(A::error_out(found.ok_or(neutral::ERR_ARG)?));
    Ok(())
}

/// `MPI_Error_string`.
pub fn error_string<A: Abi>(call: &Call<'_, A>, code: c_int, text: TextOut<'_>, length: Out<'_, c_int>) -> Outcome<()> {
    let found = call.objects().errors.given(A::error_in(code));
    let length = output(length)?;
    length.write(give_bytes(&found.ok_or(neutral::ERR_ARG)?, text, A::MAX_ERROR_STRING)?);
    Ok(())
}

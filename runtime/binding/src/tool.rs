//! The tool information interface (MPI-4.1 chapter 15): it can be opened and says truthfully
//! that there is no variable, event or category yet.
//!
//! Its functions may be called before `MPI_Init` and after `MPI_Finalize`, and return their
//! errors without calling an error handler (15.3.10).

use crate::arguments::{Outcome, output};
use crate::context::Process;
use cohort_abi::{Abi, neutral};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

/// How often the interface is open.
#[derive(Default)]
pub struct Openings(AtomicU32);

impl Openings {
    fn check(&self) -> Outcome<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Err(neutral::T_ERR_NOT_INITIALIZED),
            _ => Ok(()),
        }
    }
}

/// What a function of this interface returns.
fn code<A: Abi>(outcome: Outcome<()>) -> c_int {
    A::error_out(outcome.err().unwrap_or(neutral::SUCCESS))
}

/// `MPI_T_init_thread`. Every level is provided.
///
/// # Safety
/// MPI's: `provided` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn init_thread<A: Abi>(
    caller: *const c_void,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    let process = unsafe { Process::of(caller) };
    let outcome = output(provided).map_err(|_| neutral::T_ERR_INVALID);
    code::<A>(outcome.map(|()| {
        process.tool.0.fetch_add(1, Ordering::Relaxed);
        // SAFETY: not NULL, and the caller's contract.
        unsafe { provided.write(required) };
    }))
}

/// `MPI_T_finalize`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn finalize<A: Abi>(caller: *const c_void) -> c_int {
    // SAFETY: the caller's contract.
    let openings = unsafe { &Process::of(caller).tool.0 };
    let closed = openings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
        open.checked_sub(1)
    });
    code::<A>(
        closed
            .map(|_| ())
            .map_err(|_| neutral::T_ERR_NOT_INITIALIZED),
    )
}

macro_rules! zeros {
    ($($(#[$page:meta])* $name:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `count` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(caller: *const c_void, count: *mut c_int) -> c_int {
            // SAFETY: the caller's contract.
            let process = unsafe { Process::of(caller) };
            let valid = output(count).map_err(|_| neutral::T_ERR_INVALID);
            code::<A>(process.tool.check().and(valid).map(|()| {
                // SAFETY: not NULL, and the caller's contract.
                unsafe { count.write(0) };
            }))
        }
    )*};
}

zeros! {
    /// `MPI_T_cvar_get_num`.
    cvar_get_num;
    /// `MPI_T_pvar_get_num`.
    pvar_get_num;
    /// `MPI_T_event_get_num`.
    event_get_num;
    /// `MPI_T_source_get_num`.
    source_get_num;
    /// `MPI_T_category_get_num`.
    category_get_num;
    /// `MPI_T_category_changed`: they never change.
    category_changed;
}

/// What every look-up of a name gives.
///
/// # Safety
/// `caller` is the calling rank.
unsafe fn unknown<A: Abi>(caller: *const c_void) -> c_int {
    // SAFETY: the caller's contract.
    let process = unsafe { Process::of(caller) };
    code::<A>(process.tool.check().and(Err(neutral::T_ERR_INVALID_NAME)))
}

macro_rules! lookups {
    ($($(#[$page:meta])* $name:ident($($class:ident)?);)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            _name: *const c_char,
            $($class: c_int,)?
            _index: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { unknown::<A>(caller) }
        }
    )*};
}

lookups! {
    /// `MPI_T_cvar_get_index`.
    cvar_get_index();
    /// `MPI_T_pvar_get_index`.
    pvar_get_index(_class);
    /// `MPI_T_event_get_index`.
    event_get_index();
    /// `MPI_T_category_get_index`.
    category_get_index();
}

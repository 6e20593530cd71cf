//! The ABIs of MPI: a neutral core and one codec per ABI.
//!
//! Inside the runtime every integer constant and every predefined handle has the value
//! of the MPI-5 ABI ([`neutral`]). Handles of objects that the program makes are `u32`
//! from [`FIRST_DYNAMIC`] up. An [`Abi`] turns what a program passes into neutral values
//! and back; there is no path from one ABI to another. `docs/abi.md` has the picture.
//!
//! This crate is **stealable**: `no_std`, no thread-local data, no libc call.
#![no_std]

mod added_errors;
mod caller;
mod convert;
mod count;
mod handle;
mod mpi5;
mod mpich;
pub mod openmpi;
pub mod parameters;
mod status;
#[cfg(test)]
mod tests;

/// What the build script writes.
mod generated {
    /// Types of the functions that programs hand to MPI.
    pub mod callback {
        include!(concat!(env!("OUT_DIR"), "/callback.rs"));
    }

    /// Integer constants of each ABI, to and from neutral ones.
    pub mod constants {
        include!(concat!(env!("OUT_DIR"), "/constants.rs"));
    }

    /// Every constant of the standard as the runtime represents it: the MPI-5 ABI's value.
    pub mod neutral {
        include!(concat!(env!("OUT_DIR"), "/neutral.rs"));
    }

    /// The table through which a facade calls the runtime.
    pub mod table {
        include!(concat!(env!("OUT_DIR"), "/table.rs"));
    }
}

pub use caller::Caller;
pub use convert::{fortran, integer};
pub use count::{Count, Integer};
pub use generated::callback;
pub use generated::constants::Constants;
pub use generated::table::Table;
pub use handle::{
    FIRST_DYNAMIC, FIRST_DYNAMIC_DATATYPE_INDEX, Handle, HandleKind, INDEX_MAX, SENT_INDEX, SENT_REQUEST, dynamic,
};
pub use mpi5::Mpi5;
pub use status::{Status, StatusLayout};

/// The MPICH ABI.
#[derive(Clone, Copy, Debug)]
pub struct Mpich;

/// Open MPI's ABI.
#[derive(Clone, Copy, Debug)]
pub struct OpenMpi;

/// Every constant of the standard in the runtime's own values.
pub mod neutral {
    pub use crate::generated::neutral::*;

    /// What a codec makes of a number that its ABI does not define; no constant has this value.
    pub const INVALID: i32 = i32::MIN;

    /// First error class or code that a program can add (MPI 9.5); those of the standard are below.
    pub const FIRST_ADDED_ERROR: i32 = ERR_LASTCODE + 1;
}

/// One ABI: its types, and through [`Constants`] its numbers.
///
/// The numbers are pure functions. Handles may depend on the rank that holds them ([`Abi::Context`]).
pub trait Abi: Constants + Copy + Send + Sync + 'static {
    /// What the calling rank's copy of the library adds to the numbers of handles, `()` for most.
    type Context: Copy + Send + Sync + 'static;
    /// `MPI_Comm`.
    type Comm: Handle<Context = Self::Context>;
    /// `MPI_Datatype`.
    type Datatype: Handle<Context = Self::Context>;
    /// `MPI_Errhandler`.
    type Errhandler: Handle<Context = Self::Context>;
    /// `MPI_File`.
    type File: Handle<Context = Self::Context>;
    /// `MPI_Group`.
    type Group: Handle<Context = Self::Context>;
    /// `MPI_Info`.
    type Info: Handle<Context = Self::Context>;
    /// `MPI_Message`.
    type Message: Handle<Context = Self::Context>;
    /// `MPI_Op`.
    type Op: Handle<Context = Self::Context>;
    /// `MPI_Request`.
    type Request: Handle<Context = Self::Context>;
    /// `MPI_Session`.
    type Session: Handle<Context = Self::Context>;
    /// `MPI_Win`.
    type Win: Handle<Context = Self::Context>;
    /// `MPI_Status`.
    type Status: StatusLayout;

    /// For messages and documentation: `MPICH`, `MPI-5`, `Open MPI`.
    const NAME: &'static str;
    /// What the facade passes to `NodeApi::attach`.
    const ID: cohort_base::boot::AbiId;
    /// What `MPI_Abi_get_version` answers: major and minor, (-1, -1) for a private ABI.
    const VERSION: (i32, i32);
    /// The address that stands for `MPI_COMM_DUP_FN` and its like, if this ABI uses a sentinel.
    /// Where it does not, the facade exports a real function, which is called like a user's.
    /// (`MPI_COMM_NULL_COPY_FN` and the null delete functions are NULL, or functions of the facade of Open MPI.)
    const DUP_FN: Option<usize>;
    /// `MPI_LB` and `MPI_UB`, which MPI-3 removed, where the ABI still has them.
    const BOUNDS: Option<[core::ffi::c_int; 2]> = None;
    /// MPICH's `MPIX_COMM_TYPE_NEIGHBORHOOD`, where the ABI has it.
    const NEIGHBORHOOD: Option<core::ffi::c_int> = None;

    /// Whether programs tell what their Fortran is like (MPI-5.0 section 20.4.1): the library has none of its own.
    const TELLS_FORTRAN: bool = false;

    /// Whether bounds of datatypes that were set prevail over those of other members, and all extents are padded
    /// (MPI-4.1 sections 5.1.6 to 5.1.8), which programs of MPICH's do not see there.
    const HAS_MARKERS: bool = true;

    /// The context of a calling rank.
    fn context(caller: &Caller) -> Self::Context;

    /// C's number of a keyval that Fortran has passed.
    #[must_use]
    fn fortran_keyval(number: core::ffi::c_int) -> core::ffi::c_int {
        number
    }

    /// Writes `status` to `*target` unless that is `MPI_STATUS_IGNORE`; leaves `MPI_ERROR`
    /// alone, as single completions must (MPI 3.2.5).
    ///
    /// # Safety
    /// `target` is `MPI_STATUS_IGNORE` or valid for reads and writes.
    #[inline]
    unsafe fn write_status(target: *mut Self::Status, status: &Status) {
        if target as usize != Self::STATUS_IGNORE {
            // SAFETY: not the sentinel, so the caller guarantees that it is valid.
            unsafe { (*target).write(status) };
        }
    }
}

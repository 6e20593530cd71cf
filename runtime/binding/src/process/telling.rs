//! What a process has told of its Fortran (MPI-5.0 section 20.4.1).

use core::sync::atomic::AtomicBool;

/// Whether it has told: each only once.
#[derive(Debug, Default)]
pub struct Telling {
    /// The sizes of types, and which there are.
    pub types: AtomicBool,
    /// What `.TRUE.` and `.FALSE.` are.
    pub truth: AtomicBool,
}

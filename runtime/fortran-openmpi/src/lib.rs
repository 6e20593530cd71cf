//! `libmpi_mpifh.so.40`, also called `libmpi_usempi_ignore_tkr.so.40` and `libmpi_usempif08.so.40`: what `mpif.h`,
//! `use mpi` and `use mpi_f08` call in Open MPI's ABI.
//!
//! The modules are those of `runtime/fortran`, compiled for another ABI [`A`], and three of its own: the common blocks,
//! the names that Open MPI has beside those of `mpif.h`, and what its module `mpi_f08_types` exports. Open MPI's
//! `mpi_f08` passes addresses of arrays, not descriptors, so its procedures are those of `mpif.h` under other names.
#![no_std]

extern crate alloc;

#[allow(dead_code, reason = "requests with copies of sections are for descriptors only")]
#[path = "../../fortran/src/arguments.rs"]
mod arguments;
#[path = "../../fortran/src/attributes.rs"]
mod attributes;
#[allow(dead_code, reason = "Open MPI has no large counts in Fortran")]
#[path = "../../fortran/src/callbacks.rs"]
mod callbacks;
#[path = "../../fortran/src/common.rs"]
mod common;
/// What the build script writes.
mod generated {
    /// The C procedures, which the dynamic linker finds as it does for a program.
    #[allow(missing_docs)]
    #[allow(dead_code, reason = "Open MPI has no large counts in Fortran")]
    pub mod c {
        include!(concat!(env!("OUT_DIR"), "/c.rs"));
    }

    /// What Open MPI's Fortran libraries export beside the procedures of `mpif.h`.
    #[allow(missing_docs, non_upper_case_globals, clippy::missing_safety_doc)]
    pub mod names {
        include!(concat!(env!("OUT_DIR"), "/names.rs"));
    }

    /// The Fortran procedures: each calls the C procedure of its name.
    #[allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
    pub mod procedures {
        include!(concat!(env!("OUT_DIR"), "/procedures.rs"));
    }
}
#[path = "../../fortran/src/handles.rs"]
mod handles;
#[path = "../../fortran/src/memory.rs"]
mod memory;
#[path = "../../fortran/src/names.rs"]
mod names;
#[path = "../../fortran/src/pointers.rs"]
mod pointers;
#[path = "../../fortran/src/removed.rs"]
mod removed;
mod sentinel;
#[path = "../../fortran/src/strings.rs"]
mod strings;
#[path = "../../fortran/src/text.rs"]
mod text;
mod types;

use cohort_abi::openmpi::Objects;
use cohort_abi::{Handle, OpenMpi};
// The panic handler.
use cohort_facade as _;
use core::ffi::c_int;
use names::names;

/// The ABI of the C library that this one calls.
type A = OpenMpi;

unsafe extern "C" {
    /// The predefined objects of the C library.
    static cohort_openmpi_objects: Objects;
}

/// The handle of a number, to which the C library adds the addresses of this rank's objects.
#[inline]
fn of_int<H: Handle<Context = &'static Objects>>(number: c_int) -> H {
    // SAFETY: a variable of the library that this one needs; nobody writes to it once it is loaded.
    H::of_int(unsafe { &cohort_openmpi_objects }, number)
}

//! `libmpifort.so.12`, also called `libmpichfort.so.12`: what `mpif.h`, `use mpi` and
//! `use mpi_f08` call.
//!
//! Each procedure turns Fortran's arguments into C's and calls `MPI_X`, which the dynamic linker finds as it does for
//! any program: so a tool that defines `MPI_X` sees the calls of Fortran programs too. `mpi_x_` and `pmpi_x_` are one
//! function, as in MPICH. Like the C library it is loaded once per rank, and keeps no thread-local data.
//!
//! The ABI is [`A`]. Handles go through [`handles`]; statuses are passed as they are, which [`arguments`] checks at
//! compile time. `runtime/fortran-openmpi` compiles the same modules for Open MPI's ABI.
#![no_std]

extern crate alloc;

mod arguments;
mod attributes;
mod callbacks;
mod common;
mod descriptor;
mod extents;
/// What the build script writes.
mod generated {
    /// The C procedures, which the dynamic linker finds as it does for a program.
    #[allow(missing_docs)]
    pub mod c {
        include!(concat!(env!("OUT_DIR"), "/c.rs"));
    }

    /// The procedures of `mpi_f08`.
    #[allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
    pub mod f08 {
        include!(concat!(env!("OUT_DIR"), "/f08.rs"));
    }

    /// The Fortran procedures: each calls the C procedure of its name.
    #[allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
    pub mod procedures {
        include!(concat!(env!("OUT_DIR"), "/procedures.rs"));
    }
}
mod handles;
mod held;
mod memory;
mod names;
mod pointers;
mod removed;
mod sections;
mod sentinel;
mod strings;
mod text;
mod types;

use cohort_abi::{Handle, Mpich};
// The panic handler.
use cohort_facade as _;
use core::ffi::c_int;
use names::names;

/// The ABI of the C library that this one calls.
type A = Mpich;

/// The handle of a number, to which the C library adds nothing in this ABI.
#[inline]
fn of_int<H: Handle<Context = ()>>(number: c_int) -> H {
    H::from_int(number)
}

//! `libmpifort.so.12`, also called `libmpichfort.so.12`: what `mpif.h`, `use mpi` and
//! `use mpi_f08` call.
//!
//! Each procedure turns Fortran's arguments into C's and calls `MPI_X`, which the dynamic linker finds as it does for
//! any program: so a tool that defines `MPI_X` sees the calls of Fortran programs too. `mpi_x_` and `pmpi_x_` are one
//! function, as in MPICH. Like the C library it is loaded once per rank, and keeps no thread-local data.
//!
//! The ABI is [`A`]. Scalar handles go through `cohort_abi::Handle`; arrays of handles, statuses and the arguments of
//! reduction functions and error handlers are passed as they are, which [`arguments`] checks at compile time.
#![no_std]

extern crate alloc;

mod arguments;
mod attributes;
mod callbacks;
mod descriptor;
mod generated {
    pub mod c;
    pub mod f08;
    pub mod procedures;
}
mod held;
mod memory;
mod pointers;
mod removed;
mod sections;
mod sentinel;
mod strings;
mod text;
mod types;

use cohort_abi::Mpich;
// The panic handler.
use cohort_facade as _;

/// The ABI of the C library that this one calls.
type A = Mpich;

/// Exports a function under its names. A jump to the function itself: its own symbol is not exported, so whoever
/// defines `mpi_x_` and calls `pmpi_x_` does not meet itself.
macro_rules! names {
    ($function:path: $($name:ident)*) => {$(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!("jmp {}", sym $function)
        }
    )*};
}
use names;

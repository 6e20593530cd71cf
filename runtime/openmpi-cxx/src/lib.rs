//! `libmpi_cxx.so.40`, for machines without Open MPI's: what a program imports that was compiled with Open MPI's
//! `mpicxx` and calls the functions of C.
//!
//! The header of Open MPI 4 has the C++ bindings inline, so that each such program has a copy of most of them and
//! imports four functions that nobody calls. A program that does use the bindings imports more, and needs Open MPI's
//! library. The same file stands for `libopen-rte.so.40` and `libopen-pal.so.*`, of which programs import nothing.
#![no_std]
#![allow(non_snake_case)]

use core::ffi::{c_int, c_void};

/// A handle of the C++ bindings.
#[repr(C)]
pub struct Object {
    _functions: *const c_void,
    handle: *const c_void,
}

unsafe extern "C" {
    static ompi_mpi_comm_null: c_void;
    fn MPI_Type_free(datatype: *mut *const c_void) -> c_int;
    fn MPI_Win_free(win: *mut *const c_void) -> c_int;
}

/// `MPI::Comm::Comm()`: the base of a communicator, which names its own functions itself.
///
/// # Safety
/// `this` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ZN3MPI4CommC2Ev(this: *mut Object) {
    // SAFETY: as the caller promises; the address of a variable.
    unsafe { (*this).handle = &raw const ompi_mpi_comm_null };
}

/// `MPI::Datatype::Free()`.
///
/// # Safety
/// `this` is a datatype of the C++ bindings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ZN3MPI8Datatype4FreeEv(this: *mut Object) {
    // SAFETY: as the caller promises. Its error handler has heard of an error.
    unsafe { MPI_Type_free(&raw mut (*this).handle) };
}

/// `MPI::Win::Free()`.
///
/// # Safety
/// `this` is a window of the C++ bindings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ZN3MPI3Win4FreeEv(this: *mut Object) {
    // SAFETY: as the caller promises. Its error handler has heard of an error.
    unsafe { MPI_Win_free(&raw mut (*this).handle) };
}

/// What calls operations of C++, of which the C library knows nothing.
#[unsafe(no_mangle)]
pub extern "C" fn ompi_mpi_cxx_op_intercept() {
    cohort_facade::fail(
        1,
        format_args!("the program has made a reduction operation with MPI's C++ bindings of Open MPI"),
    );
}

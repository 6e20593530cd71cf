//! Symbols of Open MPI's ABI that are neither procedures of the standard nor handles: what its header makes programs
//! import, and what its C++ library (`libmpi_cxx.so.40`) needs to be loaded. Programs may be linked to that without
//! using it.
#![allow(non_upper_case_globals, non_snake_case)]

use cohort_abi::{Constants, OpenMpi, neutral};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64};

/// A pointer variable that programs read.
type Pointer = AtomicPtr<c_void>;

/// A status of Fortran that stands for "no status".
static NO_STATUS: [c_int; <OpenMpi as Constants>::F_STATUS_SIZE] = [0; <OpenMpi as Constants>::F_STATUS_SIZE];

/// As [`NO_STATUS`], for arrays.
static NO_STATUSES: [c_int; <OpenMpi as Constants>::F_STATUS_SIZE] = [0; <OpenMpi as Constants>::F_STATUS_SIZE];

macro_rules! pointers {
    ($($name:ident $target:ident;)*) => {$(
        /// Where a status of Fortran is to be ignored.
        #[unsafe(no_mangle)]
        pub static $name: Pointer = AtomicPtr::new((&raw const $target).cast_mut().cast());
    )*};
}

pointers! {
    MPI_F_STATUS_IGNORE NO_STATUS;
    MPI_F_STATUSES_IGNORE NO_STATUSES;
    MPI_F08_STATUS_IGNORE NO_STATUS;
    MPI_F08_STATUSES_IGNORE NO_STATUSES;
}

macro_rules! attribute_functions {
    ($($keep:ident $copy:ident $delete:ident;)*) => {$(
        /// Does not copy the attribute.
        ///
        /// # Safety
        /// `flag` is valid for writes of an `int`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $keep(
            _object: *const c_void,
            _keyval: c_int,
            _extra_state: *mut c_void,
            _value_in: *mut c_void,
            _value_out: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: by the contract of attribute copy functions.
            unsafe { flag.write(0) };
            OpenMpi::error_out(neutral::SUCCESS)
        }

        /// Copies the attribute's value.
        ///
        /// # Safety
        /// `value_out` is valid for writes of a pointer and `flag` of an `int`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $copy(
            _object: *const c_void,
            _keyval: c_int,
            _extra_state: *mut c_void,
            value_in: *mut c_void,
            value_out: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: by the contract of attribute copy functions.
            unsafe {
                value_out.cast::<*mut c_void>().write(value_in);
                flag.write(1);
            }
            OpenMpi::error_out(neutral::SUCCESS)
        }

        /// Has nothing to do for the attribute.
        #[unsafe(no_mangle)]
        pub extern "C" fn $delete(
            _object: *const c_void,
            _keyval: c_int,
            _value: *mut c_void,
            _extra_state: *mut c_void,
        ) -> c_int {
            OpenMpi::error_out(neutral::SUCCESS)
        }
    )*};
}

attribute_functions! {
    OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_DUP_FN OMPI_C_MPI_NULL_DELETE_FN;
    OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_DUP_FN OMPI_C_MPI_COMM_NULL_DELETE_FN;
    OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_TYPE_DUP_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN;
    OMPI_C_MPI_WIN_NULL_COPY_FN OMPI_C_MPI_WIN_DUP_FN OMPI_C_MPI_WIN_NULL_DELETE_FN;
}

macro_rules! gpu_support {
    ($($name:ident)*) => {$(
        /// Buffers may not lie in the memory of such a GPU.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int {
            0
        }
    )*};
}

gpu_support! {
    MPIX_Query_cuda_support PMPIX_Query_cuda_support
    MPIX_Query_rocm_support PMPIX_Query_rocm_support
}

/// A list of Open MPI's own that its C++ library names and only its inner functions read.
#[unsafe(no_mangle)]
pub static ompi_registered_datareps: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// As [`ompi_registered_datareps`]: Open MPI's table of error codes.
#[unsafe(no_mangle)]
pub static ompi_errcodes_intern: [AtomicU64; 15] = [const { AtomicU64::new(0) }; 15];

/// As [`ompi_registered_datareps`]: how many of them there are.
#[unsafe(no_mangle)]
pub static ompi_errcode_intern_lastused: AtomicI32 = AtomicI32::new(0);

macro_rules! inner_functions {
    ($($name:ident)*) => {$(
        /// A function inside of Open MPI that its C++ library calls.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {
            cohort_facade::fail(
                1,
                format_args!(
                    "the program uses MPI's C++ bindings of Open MPI (its library called {}) for what Cohort has only \
                     for C: functions of C++ for errors, operations, attributes or data representations",
                    stringify!($name)
                ),
            );
        }
    )*};
}

inner_functions! {
    ompi_attr_create_keyval ompi_errhandler_create ompi_errhandler_invoke ompi_op_set_cxx_callback
}

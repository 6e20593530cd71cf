//! Symbols of the MPICH ABI that are not procedures of the standard: `mpi.h` of that ABI
//! makes programs import them.
#![allow(non_upper_case_globals, non_snake_case)]

use cohort_abi::{Constants, Mpich, neutral};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicPtr};

/// A pointer variable that programs read, and that Fortran bindings may set.
type Pointer = AtomicPtr<c_void>;

const fn pointer(value: usize) -> Pointer {
    AtomicPtr::new(core::ptr::without_provenance_mut(value))
}

/// A Fortran 2008 status that stands for "no status"; programs may write there.
#[repr(transparent)]
pub struct NoStatus([AtomicI32; <Mpich as Constants>::F_STATUS_SIZE]);

/// `MPI_UNWEIGHTED`, a variable in this ABI.
#[unsafe(no_mangle)]
pub static MPI_UNWEIGHTED: Pointer = pointer(<Mpich as Constants>::UNWEIGHTED);

/// `MPI_WEIGHTS_EMPTY`, a variable in this ABI.
#[unsafe(no_mangle)]
pub static MPI_WEIGHTS_EMPTY: Pointer = pointer(<Mpich as Constants>::WEIGHTS_EMPTY);

/// `MPI_T_PVAR_ALL_HANDLES`, a variable in this ABI.
#[unsafe(no_mangle)]
pub static MPI_T_PVAR_ALL_HANDLES: Pointer = pointer(<Mpich as Constants>::T_PVAR_ALL_HANDLES);

/// `MPI_F_STATUS_IGNORE`: NULL until Fortran bindings set it.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: Pointer = pointer(0);

/// `MPI_F_STATUSES_IGNORE`: NULL until Fortran bindings set it.
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: Pointer = pointer(0);

/// What `MPI_F08_STATUS_IGNORE` points to.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUS_IGNORE_OBJ: NoStatus =
    NoStatus([const { AtomicI32::new(0) }; <Mpich as Constants>::F_STATUS_SIZE]);

/// What `MPI_F08_STATUSES_IGNORE` points to.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUSES_IGNORE_OBJ: NoStatus =
    NoStatus([const { AtomicI32::new(0) }; <Mpich as Constants>::F_STATUS_SIZE]);

/// `MPI_F08_STATUS_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: Pointer =
    AtomicPtr::new((&raw const MPIR_F08_MPI_STATUS_IGNORE_OBJ).cast_mut().cast());

/// `MPI_F08_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: Pointer =
    AtomicPtr::new((&raw const MPIR_F08_MPI_STATUSES_IGNORE_OBJ).cast_mut().cast());

/// `MPI_COMM_DUP_FN`, `MPI_TYPE_DUP_FN` and `MPI_WIN_DUP_FN`: copies the attribute's value.
///
/// # Safety
/// `value_out` is valid for writes of a pointer and `flag` of an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    _object: c_int,
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
    Mpich::error_out(neutral::SUCCESS)
}

/// `.TRUE.` of gfortran, for Fortran libraries that ask.
#[unsafe(no_mangle)]
pub static MPII_F_TRUE: c_int = 1;

/// `.FALSE.`, for Fortran libraries that ask.
#[unsafe(no_mangle)]
pub static MPII_F_FALSE: c_int = 0;

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
    MPIX_Query_hip_support PMPIX_Query_hip_support
    MPIX_Query_ze_support PMPIX_Query_ze_support
}

/// Whether buffers may lie in the memory of a kind of GPU: they may not.
///
/// # Safety
/// `is_supported` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIX_GPU_query_support(_kind: c_int, is_supported: *mut c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { is_supported.write(0) };
    Mpich::error_out(neutral::SUCCESS)
}

/// [`MPIX_GPU_query_support`].
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPIX_GPU_query_support(kind: c_int, is_supported: *mut c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { MPIX_GPU_query_support(kind, is_supported) }
}

//! What the modules of `mpi_f08` have beside procedures: handles that are compared, statuses that are converted, sizes.
//!
//! Names begin with those of MPICH's modules, which ours are called after, so that existing programs find them.

use crate::arguments::Ierror;
use crate::descriptor::{Choice, element, is_character};
use crate::{A, names};
use cohort_abi::Constants;
use core::ffi::{c_int, c_void};

/// Whether two handles are one.
pub extern "C" fn equal(one: &c_int, other: &c_int) -> c_int {
    c_int::from(one == other)
}

/// Whether two handles differ.
pub extern "C" fn unequal(one: &c_int, other: &c_int) -> c_int {
    c_int::from(one != other)
}

/// `MPI_Comm_f2c` and its like, as module functions: in this ABI C's handle is Fortran's.
pub extern "C" fn same(handle: c_int) -> c_int {
    handle
}

type Status = [c_int; A::F_STATUS_SIZE];

/// `MPI_Status_f2f08` and `MPI_Status_f082f`: both have the same fields at the same places.
pub extern "C" fn convert(from: &Status, to: &mut Status, ierror: Ierror) {
    *to = *from;
    ierror.set(0);
}

/// `target = value`, between `TYPE(MPI_Status)` and the same in C.
pub extern "C" fn assign(target: &mut Status, value: &Status) {
    *target = *value;
}

names!(convert: __mpi_f08_types_MOD_mpi_status_f2f08 __mpi_f08_types_MOD_mpi_status_f082f);
names!(assign: __mpi_f08_types_MOD_mpi_status_f08_assign_c __mpi_f08_types_MOD_mpi_status_c_assign_f08);
names!(crate::callbacks::f_sync_reg: mpi_f_sync_reg_f08ts_ pmpi_f_sync_reg_f08ts_ pmpir_f_sync_reg_f08ts_);

// As MPICH called them before the standard had them.
names!(crate::generated::procedures::remove_error_class:
    mpi_delete_error_class_f08_ pmpir_delete_error_class_f08_);
names!(crate::generated::procedures::remove_error_code:
    mpi_delete_error_code_f08_ pmpir_delete_error_code_f08_);
names!(crate::generated::procedures::remove_error_string:
    mpi_delete_error_string_f08_ pmpir_delete_error_string_f08_);

/// `MPI_SIZEOF`: bytes of a variable, or of an element of an array; for a CHARACTER, of one character.
///
/// # Safety
/// The compiler has made the descriptor.
pub unsafe extern "C" fn sizeof(x: Choice, size: &mut c_int, ierror: Ierror) {
    // SAFETY: as the caller promises.
    *size = match unsafe { is_character(x) } {
        true => 1,
        // SAFETY: as the caller promises.
        false => unsafe { element(x) as c_int },
    };
    ierror.set(0);
}

names!(sizeof: mpi_sizeof_f08ts_ pmpi_sizeof_f08ts_);

/// The size of what a specific procedure of MPICH's takes.
macro_rules! sizes {
    ($($bytes:literal $function:ident: $($name:ident)*;)*) => {$(
        extern "C" fn $function(_x: *const c_void, size: &mut c_int, ierror: Ierror) {
            *size = $bytes;
            ierror.set(0);
        }
        names!($function: $($name)*);
    )*};
}

sizes! {
    1 sizeof_1: __mpi_f08_types_MOD_mpi_sizeof_character __mpi_f08_types_MOD_mpi_sizeof_xint8
        __mpi_sizeofs_MOD_mpi_sizeof_ch __mpi_sizeofs_MOD_mpi_sizeof_chv
        __mpi_sizeofs_MOD_mpi_sizeof_i1 __mpi_sizeofs_MOD_mpi_sizeof_i1v;
    2 sizeof_2: __mpi_f08_types_MOD_mpi_sizeof_xint16
        __mpi_sizeofs_MOD_mpi_sizeof_i2 __mpi_sizeofs_MOD_mpi_sizeof_i2v;
    4 sizeof_4: __mpi_f08_types_MOD_mpi_sizeof_logical __mpi_f08_types_MOD_mpi_sizeof_xint32
        __mpi_f08_types_MOD_mpi_sizeof_xreal32
        __mpi_sizeofs_MOD_mpi_sizeof_i __mpi_sizeofs_MOD_mpi_sizeof_iv
        __mpi_sizeofs_MOD_mpi_sizeof_l __mpi_sizeofs_MOD_mpi_sizeof_lv
        __mpi_sizeofs_MOD_mpi_sizeof_r __mpi_sizeofs_MOD_mpi_sizeof_rv;
    8 sizeof_8: __mpi_f08_types_MOD_mpi_sizeof_xint64 __mpi_f08_types_MOD_mpi_sizeof_xreal64
        __mpi_f08_types_MOD_mpi_sizeof_xcomplex32
        __mpi_sizeofs_MOD_mpi_sizeof_i8 __mpi_sizeofs_MOD_mpi_sizeof_i8v
        __mpi_sizeofs_MOD_mpi_sizeof_d __mpi_sizeofs_MOD_mpi_sizeof_dv
        __mpi_sizeofs_MOD_mpi_sizeof_cx __mpi_sizeofs_MOD_mpi_sizeof_cxv;
    16 sizeof_16: __mpi_f08_types_MOD_mpi_sizeof_xreal128 __mpi_f08_types_MOD_mpi_sizeof_xcomplex64;
    32 sizeof_32: __mpi_f08_types_MOD_mpi_sizeof_xcomplex128;
}

// The functions that programs pass on.
names!(crate::attributes::comm_dup_fn: __mpi_f08_callbacks_MOD_mpi_comm_dup_fn);
names!(crate::attributes::comm_null_copy_fn: __mpi_f08_callbacks_MOD_mpi_comm_null_copy_fn);
names!(crate::attributes::comm_null_delete_fn: __mpi_f08_callbacks_MOD_mpi_comm_null_delete_fn);
names!(crate::attributes::type_dup_fn: __mpi_f08_callbacks_MOD_mpi_type_dup_fn);
names!(crate::attributes::type_null_copy_fn: __mpi_f08_callbacks_MOD_mpi_type_null_copy_fn);
names!(crate::attributes::type_null_delete_fn: __mpi_f08_callbacks_MOD_mpi_type_null_delete_fn);
names!(crate::attributes::win_dup_fn: __mpi_f08_callbacks_MOD_mpi_win_dup_fn);
names!(crate::attributes::win_null_copy_fn: __mpi_f08_callbacks_MOD_mpi_win_null_copy_fn);
names!(crate::attributes::win_null_delete_fn: __mpi_f08_callbacks_MOD_mpi_win_null_delete_fn);
names!(crate::callbacks::conversion_fn_null:
    __mpi_f08_callbacks_MOD_mpi_conversion_fn_null __mpi_f08_callbacks_MOD_mpi_conversion_fn_null_c);

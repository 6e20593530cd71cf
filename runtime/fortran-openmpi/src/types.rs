//! What the module `mpi_f08_types` of Open MPI exports beside procedures of MPI: handles that are compared, and what
//! gfortran makes of its types for polymorphic variables.

use crate::generated::procedures;
use crate::{attributes, callbacks, names};
use core::ffi::{c_int, c_void};

/// Whether two handles are one.
pub extern "C" fn equal(one: &c_int, other: &c_int) -> c_int {
    c_int::from(one == other)
}

/// Whether two handles differ.
pub extern "C" fn unequal(one: &c_int, other: &c_int) -> c_int {
    c_int::from(one != other)
}

/// `target = source`, for a type of so many integers.
pub extern "C" fn copied<const LENGTH: usize>(source: &[c_int; LENGTH], target: &mut [c_int; LENGTH]) {
    *target = *source;
}

/// A function that copies a variable of a type.
pub type Copy = unsafe extern "C" fn();

/// gfortran's table of a type (`vtab`), since GCC 9.
#[repr(C)]
#[derive(Debug)]
pub struct Type {
    hash: c_int,
    size: usize,
    extends: *const Type,
    initial: *const c_void,
    copy: Copy,
    finalize: *const c_void,
    deallocate: *const c_void,
}

// SAFETY: nothing of it is written to.
unsafe impl Sync for Type {}

impl Type {
    /// The table of a type of so many integers.
    #[must_use]
    pub const fn new(hash: c_int, length: usize, initial: *const c_void, copy: Copy) -> Self {
        Self {
            hash,
            size: length * size_of::<c_int>(),
            extends: core::ptr::null(),
            initial,
            copy,
            finalize: core::ptr::null(),
            deallocate: core::ptr::null(),
        }
    }
}

/// gfortran's number of the type with this unique name (`gfc_hash_value`).
#[must_use]
pub const fn hash(name: &str) -> c_int {
    let (mut value, mut at) = (0_u32, 0);
    while at < name.len() {
        value = (value << 6).wrapping_add(value << 16).wrapping_sub(value).wrapping_add(name.as_bytes()[at] as u32);
        at += 1;
    }
    (value % 100_000_000) as c_int
}

// The functions that programs pass on.
names!(attributes::comm_dup_fn: __mpi_f08_callbacks_MOD_mpi_comm_dup_fn);
names!(attributes::comm_null_copy_fn: __mpi_f08_callbacks_MOD_mpi_comm_null_copy_fn);
names!(attributes::comm_null_delete_fn: __mpi_f08_callbacks_MOD_mpi_comm_null_delete_fn);
names!(attributes::type_dup_fn: __mpi_f08_callbacks_MOD_mpi_type_dup_fn);
names!(attributes::type_null_copy_fn: __mpi_f08_callbacks_MOD_mpi_type_null_copy_fn);
names!(attributes::type_null_delete_fn: __mpi_f08_callbacks_MOD_mpi_type_null_delete_fn);
names!(attributes::win_dup_fn: __mpi_f08_callbacks_MOD_mpi_win_dup_fn);
names!(attributes::win_null_copy_fn: __mpi_f08_callbacks_MOD_mpi_win_null_copy_fn);
names!(attributes::win_null_delete_fn: __mpi_f08_callbacks_MOD_mpi_win_null_delete_fn);
names!(callbacks::conversion_fn_null:
    __mpi_f08_callbacks_MOD_mpi_conversion_fn_null __mpi_f08_callbacks_MOD_mpi_conversion_fn_null_c);
names!(callbacks::f_sync_reg: mpi_f_sync_reg_f08_ pmpi_f_sync_reg_f08_);
names!(callbacks::f_sync_reg: ompi_f_sync_reg_f);

// Inner names of what takes a `TYPE(C_PTR)`.
names!(procedures::alloc_mem: ompi_alloc_mem_cptr_f);
names!(procedures::win_allocate: ompi_win_allocate_cptr_f);
names!(procedures::win_allocate_shared: ompi_win_allocate_shared_cptr_f);
names!(procedures::win_shared_query: ompi_win_shared_query_cptr_f);

//! Attributes (MPI 19.3.7): values are INTEGER(KIND=MPI_ADDRESS_KIND), and INTEGER in the functions of MPI-1.
//!
//! A keyval that Fortran makes has Fortran's functions. C does not call these itself but hands them to a *proxy*,
//! which the library registers with the keyval. An attribute's value is marked with who has set it, so that C and
//! Fortran may read each other's.

use crate::A;
use crate::arguments::{Ierror, TRUE};
use crate::generated::c;
use crate::handles::handle;
use cohort_abi::Abi;
use core::ffi::{c_int, c_void};

/// What a caller takes an attribute's value for: an INTEGER(KIND=MPI_ADDRESS_KIND).
const ADDRESS: c_int = 1;
/// The same: an INTEGER.
const INTEGER: c_int = 3;

/// A copy function in Fortran: object, keyval, extra state, value, new value, flag, error.
type Copy<T> = unsafe extern "C" fn(*const c_int, *const c_int, *const T, *const T, *mut T, *mut c_int, *mut c_int);
/// A delete function in Fortran: object, keyval, value, extra state, error.
type Delete<T> = unsafe extern "C" fn(*const c_int, *const c_int, *const T, *const T, *mut c_int);

/// An integer that Fortran has for a pointer.
trait Value: core::marker::Copy + Default {
    fn of(pointer: *mut c_void) -> Self;
    fn pointer(self) -> *mut c_void;
}

impl Value for isize {
    fn of(pointer: *mut c_void) -> Self {
        pointer.addr() as Self
    }
    fn pointer(self) -> *mut c_void {
        core::ptr::with_exposed_provenance_mut(self as usize)
    }
}

impl Value for c_int {
    fn of(pointer: *mut c_void) -> Self {
        pointer.addr() as Self
    }
    fn pointer(self) -> *mut c_void {
        (self as isize).pointer()
    }
}

/// Calls a copy function of Fortran.
unsafe extern "C" fn copy_proxy<T: Value>(
    function: *mut c_void,
    object: c_int,
    keyval: c_int,
    extra_state: *mut c_void,
    _kind: c_int,
    value: *mut c_void,
    copied: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    let (extra_state, value) = (T::of(extra_state), T::of(value));
    let (mut new, mut is_copied, mut error) = (T::default(), 0, 0);
    // SAFETY: the function that Fortran gave for this, with the arguments that the standard says; C's pointers are
    // valid.
    unsafe {
        let function: Copy<T> = core::mem::transmute(function);
        function(&object, &keyval, &extra_state, &value, &mut new, &mut is_copied, &mut error);
        *flag = c_int::from(is_copied != 0);
        *copied = new.pointer();
    }
    error
}

/// Calls a delete function of Fortran.
unsafe extern "C" fn delete_proxy<T: Value>(
    function: *mut c_void,
    object: c_int,
    keyval: c_int,
    _kind: c_int,
    value: *mut c_void,
    extra_state: *mut c_void,
) -> c_int {
    let (extra_state, value, mut error) = (T::of(extra_state), T::of(value), 0);
    // SAFETY: the function that Fortran gave for this, with the arguments that the standard says.
    unsafe {
        let function: Delete<T> = core::mem::transmute(function);
        function(&object, &keyval, &value, &extra_state, &mut error);
    }
    error
}

/// Has the functions of a new keyval called in Fortran's way.
unsafe fn set_proxies<T: Value>(keyval: c_int) -> c_int {
    let (copy, delete) = (copy_proxy::<T> as *mut c_void, delete_proxy::<T> as *mut c_void);
    // SAFETY: a keyval with functions of Fortran, and proxies that call such.
    unsafe { c::MPII_Keyval_set_proxy(keyval, copy, delete) }
}

macro_rules! keyvals {
    ($($name:ident $procedure:ident $value:ty;)*) => {$(
        #[doc = concat!("`", stringify!($procedure), "`.")]
        pub unsafe extern "C" fn $name(
            copy: *const c_void,
            delete: *const c_void,
            keyval: *mut c_int,
            extra_state: *const $value,
            ierror: Ierror,
        ) {
            // SAFETY: the Fortran caller keeps the contract of this procedure. C calls the functions through proxies
            // only, so their types do not matter to it.
            unsafe {
                let code = c::$procedure(
                    core::mem::transmute::<*const c_void, Option<_>>(copy),
                    core::mem::transmute::<*const c_void, Option<_>>(delete),
                    keyval,
                    (*extra_state).pointer(),
                );
                ierror.set(if code == 0 { set_proxies::<$value>(*keyval) } else { code });
            }
        }
    )*};
}

keyvals! {
    comm_create_keyval MPI_Comm_create_keyval isize;
    type_create_keyval MPI_Type_create_keyval isize;
    win_create_keyval MPI_Win_create_keyval isize;
    keyval_create MPI_Keyval_create c_int;
}

macro_rules! values {
    ($($get:ident $set:ident $object:ident $get_c:ident $set_c:ident $value:ty, $kind:ident;)*) => {$(
        #[doc = concat!("`MPI_", stringify!($get), "`.")]
        pub unsafe extern "C" fn $get(
            object: *const c_int,
            keyval: *const c_int,
            attribute_val: *mut $value,
            flag: *mut c_int,
            ierror: Ierror,
        ) {
            let (mut value, mut found) = (core::ptr::null_mut::<c_void>(), 0);
            // SAFETY: the Fortran caller keeps the contract of this procedure.
            unsafe {
                let object = handle::<<A as Abi>::$object>(*object);
                let place = (&raw mut value).cast();
                let code = c::$get_c(object, *keyval, place, &mut found, $kind);
                if code == 0 {
                    *flag = c_int::from(found != 0);
                    *attribute_val = <$value as Value>::of(value);
                }
                ierror.set(code);
            }
        }

        #[doc = concat!("`MPI_", stringify!($set), "`.")]
        pub unsafe extern "C" fn $set(
            object: *const c_int,
            keyval: *const c_int,
            attribute_val: *const $value,
            ierror: Ierror,
        ) {
            // SAFETY: the Fortran caller keeps the contract of this procedure.
            unsafe {
                let object = handle::<<A as Abi>::$object>(*object);
                ierror.set(c::$set_c(object, *keyval, (*attribute_val).pointer(), $kind));
            }
        }
    )*};
}

values! {
    comm_get_attr comm_set_attr Comm MPII_Comm_get_attr MPII_Comm_set_attr isize, ADDRESS;
    type_get_attr type_set_attr Datatype MPII_Type_get_attr MPII_Type_set_attr isize, ADDRESS;
    win_get_attr win_set_attr Win MPII_Win_get_attr MPII_Win_set_attr isize, ADDRESS;
    attr_get attr_put Comm MPII_Comm_get_attr MPII_Comm_set_attr c_int, INTEGER;
}

macro_rules! predefined {
    ($($null_copy:ident $null_delete:ident $dup:ident $value:ty;)*) => {$(
        /// Does not copy the attribute.
        pub unsafe extern "C" fn $null_copy(
            _object: *const c_int,
            _keyval: *const c_int,
            _extra_state: *const $value,
            _value: *const $value,
            _copied: *mut $value,
            flag: *mut c_int,
            ierror: *mut c_int,
        ) {
            // SAFETY: the caller, MPI or the program, passes what the standard says.
            unsafe {
                *flag = 0;
                *ierror = 0;
            }
        }

        /// Does nothing.
        pub unsafe extern "C" fn $null_delete(
            _object: *const c_int,
            _keyval: *const c_int,
            _value: *const $value,
            _extra_state: *const $value,
            ierror: *mut c_int,
        ) {
            // SAFETY: the caller, MPI or the program, passes what the standard says.
            unsafe { *ierror = 0 };
        }

        /// Copies the attribute's value.
        pub unsafe extern "C" fn $dup(
            _object: *const c_int,
            _keyval: *const c_int,
            _extra_state: *const $value,
            value: *const $value,
            copied: *mut $value,
            flag: *mut c_int,
            ierror: *mut c_int,
        ) {
            // SAFETY: the caller, MPI or the program, passes what the standard says.
            unsafe {
                *copied = *value;
                *flag = TRUE;
                *ierror = 0;
            }
        }
    )*};
}

predefined! {
    null_copy_fn null_delete_fn dup_fn c_int;
    comm_null_copy_fn comm_null_delete_fn comm_dup_fn isize;
    type_null_copy_fn type_null_delete_fn type_dup_fn isize;
    win_null_copy_fn win_null_delete_fn win_dup_fn isize;
}

//! What MPI-3 removed: addresses and extents were INTEGER, 32 bits, in these.

use crate::A;
use crate::arguments::Ierror;
use crate::generated::c;
use crate::handles::{Handles, handle, length};
use crate::sentinel::buffer;
use alloc::vec::Vec;
use cohort_abi::{Abi, Handle};
use core::ffi::{c_int, c_void};

type Datatype = <A as Abi>::Datatype;

/// The displacements for C.
///
/// # Safety
/// `displacements` is valid for `count` reads, if that is a number.
unsafe fn widened(count: c_int, displacements: *const c_int) -> Vec<isize> {
    (0..usize::try_from(count).unwrap_or(0))
        // SAFETY: as the caller promises.
        .map(|place| unsafe { *displacements.add(place) as isize })
        .collect()
}

/// `MPI_ADDRESS`: the lower half of an address, as in MPICH.
pub unsafe extern "C" fn address(location: *const c_void, address: *mut c_int, ierror: Ierror) {
    let mut whole = 0;
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let code = c::MPI_Address(buffer(location).cast_mut(), &mut whole);
        ierror.set(code);
        *address = whole as c_int;
    }
}

macro_rules! extents {
    ($($name:ident $procedure:ident;)*) => {$(
        #[doc = concat!("`", stringify!($procedure), "`.")]
        pub unsafe extern "C" fn $name(
            datatype: *const c_int,
            extent: *mut c_int,
            ierror: Ierror,
        ) {
            let mut whole = 0;
            // SAFETY: the Fortran caller keeps the contract of this procedure.
            unsafe {
                ierror.set(c::$procedure(handle(*datatype), &mut whole));
                *extent = whole as c_int;
            }
        }
    )*};
}

extents! {
    type_extent MPI_Type_extent;
    type_lb MPI_Type_lb;
    type_ub MPI_Type_ub;
}

/// `MPI_TYPE_HVECTOR`.
pub unsafe extern "C" fn type_hvector(
    count: *const c_int,
    blocklength: *const c_int,
    stride: *const c_int,
    oldtype: *const c_int,
    newtype: *mut c_int,
    ierror: Ierror,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let (oldtype, mut made): (Datatype, Datatype) = (handle(*oldtype), handle(*newtype));
        let code = c::MPI_Type_hvector(*count, *blocklength, *stride as isize, oldtype, &mut made);
        ierror.set(code);
        *newtype = made.to_int();
    }
}

/// `MPI_TYPE_HINDEXED`.
pub unsafe extern "C" fn type_hindexed(
    count: *const c_int,
    array_of_blocklengths: *mut c_int,
    array_of_displacements: *const c_int,
    oldtype: *const c_int,
    newtype: *mut c_int,
    ierror: Ierror,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let mut displacements = widened(*count, array_of_displacements);
        let (oldtype, mut made): (Datatype, Datatype) = (handle(*oldtype), handle(*newtype));
        let code = c::MPI_Type_hindexed(*count, array_of_blocklengths, displacements.as_mut_ptr(), oldtype, &mut made);
        ierror.set(code);
        *newtype = made.to_int();
    }
}

/// `MPI_TYPE_STRUCT`.
pub unsafe extern "C" fn type_struct(
    count: *const c_int,
    array_of_blocklengths: *mut c_int,
    array_of_displacements: *const c_int,
    array_of_types: *mut c_int,
    newtype: *mut c_int,
    ierror: Ierror,
) {
    // SAFETY: the Fortran caller keeps the contract of this procedure.
    unsafe {
        let mut displacements = widened(*count, array_of_displacements);
        let mut made: Datatype = handle(*newtype);
        let mut types = Handles::<Datatype>::of(array_of_types, || length(*count));
        let code =
            c::MPI_Type_struct(*count, array_of_blocklengths, displacements.as_mut_ptr(), types.pointer(), &mut made);
        ierror.set(code);
        *newtype = made.to_int();
    }
}

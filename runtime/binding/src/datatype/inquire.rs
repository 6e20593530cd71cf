//! Sizes, extents and addresses (MPI-4.1 section 5.1).

use crate::arguments::{Outcome, on_process, output};
use cohort_abi::{Abi, Handle, Integer, neutral};
use cohort_engine::datatype::{Type, value_index};
use core::ffi::{c_int, c_void};

/// Stores a number, or `MPI_UNDEFINED` where it does not fit (MPI-4.1, 5.1.5).
///
/// # Safety
/// `target` is valid for writes.
unsafe fn store<I: Integer>(target: *mut I, value: i64) -> Outcome<()> {
    output(target)?;
    let value = I::from_i64(value).or_else(|| I::from_i64(i64::from(neutral::UNDEFINED)));
    // SAFETY: the caller's contract.
    unsafe { target.write(value.ok_or(neutral::ERR_INTERN)?) };
    Ok(())
}

/// Stores two numbers that a datatype says of itself.
///
/// # Safety
/// The targets are valid for writes; `caller` is the calling rank.
unsafe fn pair<A: Abi, I: Integer>(
    caller: *const c_void,
    name: &'static str,
    datatype: A::Datatype,
    first: *mut I,
    second: *mut I,
    get: impl FnOnce(&Type) -> (i64, i64),
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, name, |call| {
            let values = get(&*call.datatype(datatype)?);
            store(first, values.0)?;
            store(second, values.1)
        })
    }
}

/// Stores one number that a datatype says of itself.
///
/// # Safety
/// The target is valid for writes; `caller` is the calling rank.
unsafe fn single<A: Abi, I: Integer>(
    caller: *const c_void,
    name: &'static str,
    datatype: A::Datatype,
    target: *mut I,
    get: impl FnOnce(&Type) -> i64,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, name, |call| {
            store(target, get(&*call.datatype(datatype)?))
        })
    }
}

macro_rules! inquiries {
    ($($(#[$page:meta])* $name:ident $mpi:literal [$($integer:tt)*] ($($target:ident: $type:ty),*) $helper:ident $get:expr;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: the results are valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi $($integer)*>(
            caller: *const c_void,
            datatype: A::Datatype,
            $($target: *mut $type),*
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { $helper::<A, _>(caller, $mpi, datatype, $($target,)* $get) }
        }
    )*};
}

inquiries! {
    /// `MPI_Type_size`.
    size "MPI_Type_size" [, I: Integer] (bytes: I) single |datatype| datatype.size();
    /// `MPI_Type_size_x`.
    size_x "MPI_Type_size_x" [] (bytes: i64) single |datatype| datatype.size();
    /// `MPI_Type_get_extent`; `C` says whether as `MPI_Aint` or `MPI_Count`.
    extent "MPI_Type_get_extent" [, C: cohort_abi::Count] (lb: C::Address, extent: C::Address) pair
        |datatype| (datatype.lb(), datatype.extent());
    /// `MPI_Type_get_extent_x`.
    extent_x "MPI_Type_get_extent_x" [] (lb: i64, extent: i64) pair |datatype| (datatype.lb(), datatype.extent());
    /// `MPI_Type_get_true_extent`; `C` says whether as `MPI_Aint` or `MPI_Count`.
    true_extent "MPI_Type_get_true_extent" [, C: cohort_abi::Count] (lb: C::Address, extent: C::Address) pair
        |datatype| (datatype.true_lb(), datatype.true_extent());
    /// `MPI_Type_get_true_extent_x`.
    true_extent_x "MPI_Type_get_true_extent_x" [] (lb: i64, extent: i64) pair
        |datatype| (datatype.true_lb(), datatype.true_extent());
    /// `MPI_Type_extent`, removed in MPI-3.
    old_extent "MPI_Type_extent" [] (extent: isize) single |datatype| datatype.extent();
    /// `MPI_Type_lb`, removed in MPI-3.
    lb "MPI_Type_lb" [] (displacement: isize) single |datatype| datatype.lb();
    /// `MPI_Type_ub`, removed in MPI-3.
    ub "MPI_Type_ub" [] (displacement: isize) single |datatype| datatype.ub();
}

/// `MPI_Get_address`.
///
/// # Safety
/// MPI's: `address` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_address<A: Abi>(
    caller: *const c_void,
    location: *const c_void,
    address: *mut isize,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Get_address", |_| {
            store(address, location.addr() as i64)
        })
    }
}

/// `MPI_Address`, removed in MPI-3.
///
/// # Safety
/// As for [`get_address`].
pub unsafe extern "C" fn old_address<A: Abi>(
    caller: *const c_void,
    location: *mut c_void,
    address: *mut isize,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { get_address::<A>(caller, location, address) }
}

/// `MPI_Type_get_value_index`: the pair type for `MPI_MINLOC`, or `MPI_DATATYPE_NULL`.
///
/// # Safety
/// MPI's: `pair` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn get_value_index<A: Abi>(
    caller: *const c_void,
    value: A::Datatype,
    index: A::Datatype,
    pair: *mut A::Datatype,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_get_value_index", |call| {
            call.output(pair, "pair_type")?;
            let found = value_index(&*call.datatype(value)?, &*call.datatype(index)?);
            let handle = found.map_or(neutral::handle::DATATYPE_NULL, |found| found.handle());
            pair.write(A::Datatype::from_neutral(handle));
            Ok(())
        })
    }
}

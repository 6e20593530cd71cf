//! Sizes, extents and addresses (MPI-4.1 section 5.1).

use super::construct::bound;
use crate::arguments::{Call, Outcome, known, output};
use cohort_abi::parameters::{Base, Out};
use cohort_abi::{Abi, Handle, Integer, neutral};
use cohort_engine::datatype::{CountForm, Type, TypeRef, contiguous, predefined, types, value_index};

/// Stores a number, or `MPI_UNDEFINED` where it does not fit (MPI-4.1, 5.1.5).
fn store<I: Integer>(target: Out<'_, I>, value: i64) -> Outcome<()> {
    let target = output(target)?;
    let value = I::from_i64(value).or_else(|| I::from_i64(i64::from(neutral::UNDEFINED)));
    target.write(value.ok_or(neutral::ERR_INTERN)?);
    Ok(())
}

/// The datatype of a handle; one of no bytes for `MPI_LB` and `MPI_UB`, where the ABI still has them.
fn asked_about<A: Abi>(call: &Call<'_, A>, datatype: A::Datatype) -> Outcome<TypeRef> {
    if bound::<A>(datatype).is_none() {
        return call.datatype(datatype);
    }
    let byte = types::MPI_BYTE.to_ref();
    contiguous(0, &byte, CountForm::Int).map_err(|_| neutral::ERR_INTERN.into())
}

/// Stores two numbers that a datatype says of itself.
fn pair<A: Abi, I: Integer>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    first: Out<'_, I>,
    second: Out<'_, I>,
    get: impl FnOnce(&Type) -> (i64, i64),
) -> Outcome<()> {
    let values = get(&*asked_about(call, datatype)?);
    store(first, values.0)?;
    store(second, values.1)
}

/// Stores one number that a datatype says of itself.
fn single<A: Abi, I: Integer>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    target: Out<'_, I>,
    get: impl FnOnce(&Type) -> i64,
) -> Outcome<()> {
    store(target, get(&*asked_about(call, datatype)?))
}

/// The same, or `MPI_UNDEFINED` for a type that the program's Fortran lacks (MPI-5.0, 20.4).
fn known_size<A: Abi, I: Integer>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    target: Out<'_, I>,
    get: impl FnOnce(&Type) -> i64,
) -> Outcome<()> {
    let handle = datatype.neutral();
    match known::<A>(handle).is_none() && predefined(handle).is_some() {
        true => store(target, i64::from(neutral::UNDEFINED)),
        false => single(call, datatype, target, get),
    }
}

macro_rules! inquiries {
    ($($(#[$page:meta])* $name:ident [$($integer:tt)*] ($($target:ident: $type:ty),*) $helper:ident $get:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi $($integer)*>(
            call: &Call<'_, A>,
            datatype: A::Datatype,
            $($target: Out<'_, $type>),*
        ) -> Outcome<()> {
            $helper::<A, _>(call, datatype, $($target,)* $get)
        }
    )*};
}

inquiries! {
    /// `MPI_Type_size`.
    size [, I: Integer] (bytes: I) known_size |datatype| datatype.size();
    /// `MPI_Type_size_x`.
    size_x [] (bytes: i64) known_size |datatype| datatype.size();
    /// `MPI_Type_get_extent`; `C` says whether as `MPI_Aint` or `MPI_Count`.
    extent [, C: cohort_abi::Count] (lb: C::Address, extent: C::Address) pair
        |datatype| (datatype.lb(), datatype.extent());
    /// `MPI_Type_get_extent_x`.
    extent_x [] (lb: i64, extent: i64) pair |datatype| (datatype.lb(), datatype.extent());
    /// `MPI_Type_get_true_extent`; `C` says whether as `MPI_Aint` or `MPI_Count`.
    true_extent [, C: cohort_abi::Count] (lb: C::Address, extent: C::Address) pair
        |datatype| (datatype.true_lb(), datatype.true_extent());
    /// `MPI_Type_get_true_extent_x`.
    true_extent_x [] (lb: i64, extent: i64) pair
        |datatype| (datatype.true_lb(), datatype.true_extent());
    /// `MPI_Type_extent`, removed in MPI-3.
    old_extent [] (extent: isize) single |datatype| datatype.extent();
    /// `MPI_Type_lb`, removed in MPI-3.
    lb [] (displacement: isize) single |datatype| datatype.lb();
    /// `MPI_Type_ub`, removed in MPI-3.
    ub [] (displacement: isize) single |datatype| datatype.ub();
}

/// `MPI_Get_address`.
pub fn get_address<A: Abi>(_call: &Call<'_, A>, location: Base, address: Out<'_, isize>) -> Outcome<()> {
    store(address, location.addr() as i64)
}

/// `MPI_Address`, removed in MPI-3.
pub fn old_address<A: Abi>(call: &Call<'_, A>, location: Base, address: Out<'_, isize>) -> Outcome<()> {
    get_address::<A>(call, location, address)
}

/// `MPI_Type_get_value_index`: the pair type for `MPI_MINLOC`, or `MPI_DATATYPE_NULL`.
pub fn get_value_index<A: Abi>(
    call: &Call<'_, A>,
    value: A::Datatype,
    index: A::Datatype,
    pair: Out<'_, A::Datatype>,
) -> Outcome<()> {
    let pair = call.output(pair, "pair_type")?;
    let found = value_index(&*call.datatype(value)?, &*call.datatype(index)?);
    let handle = found.map_or(neutral::handle::DATATYPE_NULL, |found| found.handle());
    pair.write(A::Datatype::from_neutral(call.context(), handle));
    Ok(())
}

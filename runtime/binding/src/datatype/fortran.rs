//! Datatypes for Fortran's kinds (MPI-4.1 section 19.1.9).

use super::create;
use crate::arguments::{Call, Outcome, known};
use cohort_abi::parameters::Out;
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::datatype::{Combiner, TypeRef, f90};
use core::ffi::c_int;
use neutral::handle as predefined_handle;

/// Decimal digits and decimal exponent range of the real kinds, and the real and complex types
/// that have them.
const REALS: [(c_int, c_int, u32, u32); 3] = [
    (6, 37, predefined_handle::REAL4, predefined_handle::COMPLEX8),
    (15, 307, predefined_handle::REAL8, predefined_handle::COMPLEX16),
    (33, 4931, predefined_handle::REAL16, predefined_handle::COMPLEX32),
];

/// Decimal digits of the integer kinds, and the types that have them.
const INTEGERS: [(c_int, u32); 5] = [
    (2, predefined_handle::INTEGER1),
    (4, predefined_handle::INTEGER2),
    (9, predefined_handle::INTEGER4),
    (18, predefined_handle::INTEGER8),
    (38, predefined_handle::INTEGER16),
];

/// The parametrised type of `arguments`, held by the predefined type `holder`.
fn parametrised<A: Abi>(combiner: Combiner, arguments: &[i32], holder: Option<u32>) -> Outcome<TypeRef> {
    // One that the program's Fortran lacks is none.
    let holder = holder.and_then(known::<A>).ok_or(neutral::ERR_ARG)?;
    Ok(f90(combiner, arguments, &holder))
}

/// The first real kind with `digits` and `range`; either may be `MPI_UNDEFINED`, not both.
fn real_kind(digits: c_int, range: c_int) -> Option<&'static (c_int, c_int, u32, u32)> {
    if digits == neutral::UNDEFINED && range == neutral::UNDEFINED {
        return None;
    }
    REALS.iter().find(|kind| digits <= kind.0 && range <= kind.1)
}

/// `MPI_Type_create_f90_real`.
pub fn f90_real<A: Abi>(call: &Call<'_, A>, digits: c_int, range: c_int, newtype: Out<'_, A::Datatype>) -> Outcome<()> {
    create::<A>(call, newtype, |_| {
        let holder = real_kind(digits, range).map(|kind| kind.2);
        parametrised::<A>(Combiner::F90Real, &[digits, range], holder)
    })
}

/// `MPI_Type_create_f90_complex`.
pub fn f90_complex<A: Abi>(
    call: &Call<'_, A>,
    digits: c_int,
    range: c_int,
    newtype: Out<'_, A::Datatype>,
) -> Outcome<()> {
    create::<A>(call, newtype, |_| {
        let holder = real_kind(digits, range).map(|kind| kind.3);
        parametrised::<A>(Combiner::F90Complex, &[digits, range], holder)
    })
}

/// `MPI_Type_create_f90_integer`.
pub fn f90_integer<A: Abi>(call: &Call<'_, A>, digits: c_int, newtype: Out<'_, A::Datatype>) -> Outcome<()> {
    create::<A>(call, newtype, |_| {
        let holder = INTEGERS.iter().find(|kind| digits <= kind.0).map(|kind| kind.1);
        parametrised::<A>(Combiner::F90Integer, &[digits], holder)
    })
}

/// The types of a class, by their size in bytes.
fn of_class(class: i32) -> Option<&'static [(c_int, u32)]> {
    Some(match class {
        neutral::TYPECLASS_INTEGER => &[
            (1, predefined_handle::INTEGER1),
            (2, predefined_handle::INTEGER2),
            (4, predefined_handle::INTEGER4),
            (8, predefined_handle::INTEGER8),
            (16, predefined_handle::INTEGER16),
        ],
        neutral::TYPECLASS_REAL => &[
            (2, predefined_handle::REAL2),
            (4, predefined_handle::REAL4),
            (8, predefined_handle::REAL8),
            (16, predefined_handle::REAL16),
        ],
        neutral::TYPECLASS_COMPLEX => &[
            (4, predefined_handle::COMPLEX4),
            (8, predefined_handle::COMPLEX8),
            (16, predefined_handle::COMPLEX16),
            (32, predefined_handle::COMPLEX32),
        ],
        _ => return None,
    })
}

/// `MPI_Type_match_size`.
pub fn match_size<A: Abi>(
    call: &Call<'_, A>,
    class: c_int,
    size: c_int,
    datatype: Out<'_, A::Datatype>,
) -> Outcome<()> {
    let datatype = call.output(datatype, "datatype")?;
    let types = of_class(A::typeclass_in(class)).ok_or(neutral::ERR_ARG)?;
    let found = types.iter().find(|entry| entry.0 == size && known::<A>(entry.1).is_some());
    let found = found.ok_or(neutral::ERR_ARG)?;
    datatype.write(A::Datatype::from_neutral(call.context(), found.1));
    Ok(())
}

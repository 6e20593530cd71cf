//! Datatypes (MPI-4.1 chapter 5, and 19.1 for Fortran's).

mod construct;
mod contents;
mod fortran;
mod inquire;
mod life;

pub use construct::{
    contiguous, darray, hindexed, hindexed_block, hvector, indexed, indexed_block, resized, struct_, subarray, vector,
};
pub use contents::{get_contents, get_contents_large, get_envelope, get_envelope_large};
pub use fortran::{f90_complex, f90_integer, f90_real, match_size};
pub use inquire::{
    extent, extent_x, get_address, get_value_index, lb, old_address, old_extent, size, size_x, true_extent,
    true_extent_x, ub,
};
pub use life::{commit, dup, free, get_name, set_name};

use crate::arguments::{Call, Error, Outcome};
use cohort_abi::parameters::Out;
use cohort_abi::{Abi, Count, neutral};
use cohort_engine::datatype::{BoundsRule, CountForm, Form, TypeError, TypeRef};

/// Which procedure was called, for `MPI_Type_get_envelope`.
const fn form<A: Abi, C: Count>() -> Form {
    let counts = if C::LARGE { CountForm::Large } else { CountForm::Int };
    let bounds = if A::HAS_MARKERS { BoundsRule::Standard } else { BoundsRule::Mpich };
    Form { counts, bounds }
}

/// The error of a constructor's refusal.
#[cold]
fn failure(error: TypeError) -> Error {
    let class = match error {
        TypeError::Overflow | TypeError::BadArray { .. } => neutral::ERR_ARG,
        TypeError::NegativeCount { .. } => neutral::ERR_COUNT,
    };
    class.into()
}

/// Makes a datatype and gives the program its handle.
fn create<A: Abi>(
    call: &Call<'_, A>,
    target: Out<'_, A::Datatype>,
    make: impl FnOnce(&Call<'_, A>) -> Outcome<TypeRef>,
) -> Outcome<()> {
    let target = call.output(target, "newtype")?;
    target.write(call.add_datatype(make(call)?)?);
    Ok(())
}

//! Counts, lengths, and arrays of numbers.

use cohort_abi::neutral;
use cohort_abi::parameters::Array;
use cohort_abi::{Count, Integer};
use cohort_engine::datatype::TypeRef;
use cohort_engine::reserve;
use cohort_object::Outcome;
use smallvec::SmallVec;

/// A count of elements.
///
/// # Errors
/// `MPI_ERR_COUNT` for a negative one.
#[inline]
pub(super) fn count<C: Count>(elements: C) -> Outcome<i64> {
    match elements.to_i64() {
        elements if elements < 0 => Err(neutral::ERR_COUNT.into()),
        elements => Ok(elements),
    }
}

/// The length of an array.
///
/// # Errors
/// `MPI_ERR_COUNT` for a negative one.
#[inline]
pub fn length<I: Integer>(entries: I) -> Outcome<usize> {
    usize::try_from(entries.to_i64()).map_err(|_| neutral::ERR_COUNT.into())
}

/// The integers of an array.
///
/// # Errors
/// `MPI_ERR_ARG` for NULL.
pub fn list<I: Integer>(array: Array<'_, I>, length: usize) -> Outcome<Numbers> {
    let entries = array.entries(length)?;
    has_room_for(length)?;
    Ok(entries.iter().map(|entry| entry.to_i64()).collect())
}

/// The numbers of an array. Those for a few members need no memory of the node, whose lock all its ranks share.
pub type Numbers = SmallVec<[i64; 8]>;

/// As many datatypes, for the same reason.
pub type Types = SmallVec<[TypeRef; 8]>;

/// The counts of an array.
///
/// # Errors
/// `MPI_ERR_ARG` for NULL, `MPI_ERR_COUNT` for a negative count.
pub fn counts<C: Count>(array: Array<'_, C>, length: usize) -> Outcome<Numbers> {
    let entries = array.entries(length)?;
    has_room_for(length)?;
    let mut numbers = Numbers::with_capacity(length);
    for &entry in entries {
        numbers.push(count(entry)?);
    }
    Ok(numbers)
}

/// Refuses lists for which there is no memory: a list itself, and what is made of its entries.
fn has_room_for(entries: usize) -> Outcome<()> {
    /// More than a block of a datatype takes, or a member of a group, with all copies on the way.
    const BYTES_PER_ENTRY: usize = 256;
    match reserve::is_room(entries.saturating_mul(BYTES_PER_ENTRY)) {
        true => Ok(()),
        false => Err(neutral::ERR_NO_MEM.into()),
    }
}

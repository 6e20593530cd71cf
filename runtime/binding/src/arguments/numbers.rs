//! Counts, lengths, and arrays of numbers.

use cohort_abi::neutral;
use cohort_abi::parameters::Array;
use cohort_abi::{Count, Integer};
use cohort_engine::datatype::TypeRef;
use cohort_engine::reserve;
use cohort_object::Outcome;
use smallvec::SmallVec;

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
    numbers(array.entries(length)?)
}

/// Entries of an array that need no memory of the node, whose lock all its ranks share: those for a few members.
const FEW: usize = 8;

/// The numbers of an array.
pub type Numbers = SmallVec<[i64; FEW]>;

/// The datatypes of an array.
pub type Types = SmallVec<[TypeRef; FEW]>;

/// The counts of an array.
///
/// # Errors
/// `MPI_ERR_ARG` for NULL, `MPI_ERR_COUNT` for a negative count.
pub fn counts<C: Count>(array: Array<'_, C>, length: usize) -> Outcome<Numbers> {
    let numbers = numbers(array.entries(length)?)?;
    // Only then the sign is set in all of their bits together.
    match numbers.iter().fold(0, |all, &number| all | number) < 0 {
        true => Err(neutral::ERR_COUNT.into()),
        false => Ok(numbers),
    }
}

/// These integers. A few are copied at once: each call with lists does so several times.
#[inline]
fn numbers<I: Integer>(entries: &[I]) -> Outcome<Numbers> {
    if entries.len() <= FEW {
        let mut few = [0; FEW];
        for (place, entry) in few.iter_mut().zip(entries) {
            *place = entry.to_i64();
        }
        return Ok(Numbers::from_buf_and_len(few, entries.len()));
    }
    has_room_for(entries.len())?;
    Ok(entries.iter().map(|entry| entry.to_i64()).collect())
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

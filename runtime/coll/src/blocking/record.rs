//! What an entry of a round says of what a member has posted.

use crate::args::{Blocks, Label};
use crate::members::SIDE_BYTES;
use cohort_datatype::Buffer;

/// What is said in an entry beside the label: so many bytes of data, or, from here on, that it holds the address of a
/// [`Record`] of this type.
pub(super) const ADDRESS: u64 = Label::FREE - 15;
const _: () = assert!((SIDE_BYTES as u64) < ADDRESS);

/// Instead of the number of a record: the entry holds parts for all members, or the address of a side buffer with some.
pub(super) const PARTS: u64 = ADDRESS | 14;
pub(super) const PARTS_BESIDE: u64 = ADDRESS | 15;

/// What members post the addresses of.
///
/// # Safety
/// No other type has this number, less than 14.
pub(crate) unsafe trait Record {
    const NUMBER: u64;
}

// SAFETY: see where `Record` is implemented elsewhere: these two numbers are used here alone.
unsafe impl Record for Buffer<'_> {
    const NUMBER: u64 = 0;
}

// SAFETY: as above.
unsafe impl Record for Blocks<'_> {
    const NUMBER: u64 = 1;
}

/// What a member posted.
pub(crate) enum Posted<'r, T> {
    /// Data in the entry itself, or in a side buffer of the member's.
    Inline(&'r [u8]),
    /// A record that lives until the caller has completed the round.
    Address(&'r T),
}

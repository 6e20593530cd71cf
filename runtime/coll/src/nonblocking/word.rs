//! What the word of a member's entry in a row says.

use crate::args::small::Agreed;
use crate::args::{Call, Kind};
use crate::batch::{LARGE, ROOM, SIDE_ALIGN, SMALL, STOOD_IN};
use crate::compare;

/// Places of what a word says beside its mark.
const KIND: u32 = 4;
const BYTES: u32 = 8;
pub(super) const ROOT: u32 = 24;
const OP: u32 = 40;
const BYTES_MAX: u64 = 0xffff;

/// Mark of an operation whose blocks have any length.
const VARYING: u64 = 1 << 56;

/// The word of a member that waits at the row's meeting.
pub(super) fn large_word(call: &Call<'_>) -> u64 {
    let varying = if call.is_varying() { VARYING } else { 0 };
    LARGE | varying | u64::from(compare::kind_of(call)) << KIND
}

pub(super) fn small_word(agreed: &Agreed) -> u64 {
    let op = agreed.op.map_or(0, |op| op as u32 & 0xffff);
    SMALL
        | (agreed.kind as u64) << KIND
        // A member may expect much more than a root that is small gives.
        | agreed.bytes.min(BYTES_MAX) << BYTES
        | u64::from(agreed.root as u16) << ROOT
        | u64::from(op) << OP
        | if agreed.is_varying { VARYING } else { 0 }
}

/// Whether a member with the word `own` gives little, and the other one much, in one operation whose blocks have any
/// length: then they go on at the row's meeting.
pub(super) fn is_larger(own: u64, other: u64) -> bool {
    own & other & VARYING != 0 && other & LARGE != 0 && kind_in(own) == kind_in(other)
}

/// Bytes of what a member has posted beside its entry: what it keeps is behind them.
pub(super) fn bytes_beside(posted: u64) -> u64 {
    match posted > ROOM as u64 {
        true => posted.next_multiple_of(SIDE_ALIGN as u64),
        false => 0,
    }
}

/// Whether it is of an operation whose blocks have any length.
pub(super) fn is_varying(word: u64) -> bool {
    word & VARYING != 0
}

/// Whether members that have put these words there take part in one operation.
#[inline(always)]
pub(super) fn agree(own: u64, other: u64) -> bool {
    own == other || agree_in_part(own, other)
}

#[inline(never)]
fn agree_in_part(own: u64, other: u64) -> bool {
    let (kind, ..) = Kind::ALL[kind_in(own) as usize];
    let beside = match kind.may_differ() {
        true => STOOD_IN | BYTES_MAX << BYTES,
        false => STOOD_IN,
    };
    (own ^ other) & !beside == 0
}

pub(super) fn kind_in(word: u64) -> u8 {
    (word >> KIND) as u8 & 0xf
}

pub(super) fn bytes_in(word: u64) -> u64 {
    (word >> BYTES) & BYTES_MAX
}

pub(super) fn root_in(word: u64) -> u32 {
    u32::from((word >> ROOT) as u16)
}

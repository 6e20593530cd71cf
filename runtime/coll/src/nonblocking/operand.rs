//! What a member posts as its operand: the operand, or a copy that no result overwrites too early.
//!
//! In place, a member's operand lies where its result goes. Mostly the step that
//! writes an element of the result is the last to read it. Where it is not, the member copies its
//! operand when it posts:
//!
//! | operation in place | what is copied |
//! |---|---|
//! | alltoall | all blocks, packed |
//! | reduce at the root, unless it is the last member | the operand |
//! | reduce-scatter of several members | the operand |
//! | exscan | the operand |

use crate::args::{Call, Reduction, Scan};
use crate::data::{LINE, Span, span};
use crate::pool::Operand;
use cohort_core::claim::Claim;
use cohort_datatype::{Buffer, copy, pack};
use core::ptr::null_mut;

/// The operand of member `me` of `size`; copies it where that is needed. `None` when memory is
/// short. Inlined by force, as [`super::begin_claimed`] says.
#[inline(always)]
pub(super) fn posted(claim: &mut Claim<'_>, call: &Call<'_>, me: u32, size: u32) -> Option<Operand> {
    let is_posted_as_it_is = match call {
        Call::Alltoall { send, .. } => send.is_some(),
        Call::Reduce { root, .. } => *root != me || me + 1 == size,
        Call::ReduceScatter { .. } => size == 1,
        Call::Scan { kind, .. } => !matches!(kind, Scan::Exclusive),
        _ => true,
    };
    if is_posted_as_it_is {
        return Some(
            call.reduction()
                .map_or(Operand::NONE, |reduction| Operand { data: reduction.operand().base(), block: null_mut() }),
        );
    }
    copied(claim, call, size)
}

/// The operand of one of those that the table lists: a copy if it is in place.
#[inline(never)]
fn copied(claim: &mut Claim<'_>, call: &Call<'_>, size: u32) -> Option<Operand> {
    match (call, call.reduction()) {
        (Call::Alltoall { receive, .. }, _) => packed_blocks(claim, size, |member| receive.block(member)),
        (_, Some(reduction)) => operand(claim, reduction),
        _ => Some(Operand::NONE),
    }
}

/// The operand of a reducing operation, or a copy of it if it is in place.
fn operand(claim: &mut Claim<'_>, reduction: &Reduction<'_>) -> Option<Operand> {
    if let Some(data) = reduction.input {
        return Some(Operand { data, block: null_mut() });
    }
    let (datatype, count) = (reduction.datatype(), reduction.count());
    let Span { low, bytes } = span(datatype, count);
    let bytes = bytes as usize;
    let block = claim.alloc_aligned(bytes.max(1), LINE as usize)?;
    let data = block.as_ptr().wrapping_offset(-low as isize);
    let from = reduction.result;
    // SAFETY: the block spans all elements.
    unsafe {
        if !datatype.is_dense() {
            // Operations may read the gaps between elements.
            block.write_bytes(0, bytes);
        }
        copy(Buffer::new(data, count, datatype), from, 0, u64::MAX);
    }
    Some(Operand { data, block: block.as_ptr() })
}

/// Packs a block for each member one behind the other.
fn packed_blocks<'a>(claim: &mut Claim<'_>, size: u32, buffer: impl Fn(usize) -> Buffer<'a>) -> Option<Operand> {
    let members = size as usize;
    let total: u64 = (0..members).map(|member| buffer(member).bytes()).sum();
    let table = members * size_of::<u64>();
    let block = claim.alloc(table + total as usize)?.as_ptr();
    let mut offset = 0;
    // SAFETY: the block has room for the table and all data.
    unsafe {
        let data = block.add(table);
        for member in 0..members {
            block.cast::<u64>().add(member).write(offset);
            let source = buffer(member);
            offset += pack(source, 0, data.add(offset as usize), source.bytes());
        }
        Some(Operand { data, block })
    }
}

//! All-to-all, with equal, varying or typed blocks: every member posts its blocks, and each
//! copies its own block out of everyone's buffer, beginning with its right neighbour.
//!
//! In place, a member first packs what it sends to a buffer of its own, because others
//! read while it writes.

use super::blocks::{copy_whole, unpack_inline};
use super::choice::{meets_once, scheduled};
use super::fold::reserve;
use super::gather::post_blocks;
use super::round::{Finish, Posted, Round};
use super::wide;
use super::{Blocks, Call, Group};
use crate::EngineError;
use crate::datatype::{TypeRef, pack, predefined};
use alloc::vec::Vec;

/// MPI-5 ABI handle of `MPI_BYTE`.
const MPI_BYTE: u32 = 0x247;

/// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`; `send` is `None` for in-place.
///
/// # Safety
/// The buffers are live; those of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds,
/// [`EngineError::OutOfMemory`] in place.
pub unsafe fn alltoall(
    group: &Group<'_>,
    send: Option<Blocks<'_>>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    if group.size() > 1 && group.shared.spread().is_none() {
        let call = Call::Alltoall { send, receive };
        let size = group.size();
        let by_itself = || meets_once(group, receive.equal_bytes(size), size);
        // SAFETY: the caller's conditions.
        if let Some(done) = unsafe { scheduled(group, |it| it.alltoall, by_itself, &call) } {
            return done;
        }
    }
    let Some(send) = send else {
        if group.size() == 1 {
            return Ok(());
        }
        let byte = predefined(MPI_BYTE).expect("a predefined handle");
        // SAFETY: the receive blocks hold what this member sends.
        let packed = unsafe { Packed::of(&receive, group.size())? };
        // SAFETY: the packed copy lives to the end of the call.
        return unsafe { exchange(group, packed.blocks(&byte), receive) };
    };
    // SAFETY: the caller's conditions.
    unsafe { exchange(group, send, receive) }
}

/// # Safety
/// As [`alltoall`].
unsafe fn exchange(
    group: &Group<'_>,
    send: Blocks<'_>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    let (me, size) = (group.me(), group.size());
    // SAFETY: the caller's buffers.
    let mut result = unsafe { copy_whole(receive.block(me), send.block(me)) };
    if size == 1 {
        return result;
    }
    if let Some(spread) = group.shared.spread() {
        // SAFETY: the caller's conditions; the own block is in place.
        let exchanged = unsafe {
            match receive.equal_bytes(1) {
                Some(block) if spread.has_neighbours() => {
                    wide::alltoall_by_node(group, spread, &send, &receive, block)
                }
                _ => wide::alltoall(group, send, receive),
            }
        };
        return result.and(exchanged);
    }
    let round = Round::begin(group);
    // SAFETY: the caller's buffers; they stay until `finish`.
    let exposed = unsafe { post_blocks(&round, &send, size, 0) };
    round.exchange();
    for member in (me + 1..size).chain(0..me) {
        let destination = receive.block(member);
        let received = match round.posted(member) {
            Posted::Inline { data, bytes } => {
                let block = bytes / size as u64;
                // SAFETY: the entry holds a block for each member.
                unsafe { unpack_inline(destination, data, me as u64 * block, block) }
            }
            // SAFETY: the record is the member's `Blocks`, alive until we complete.
            Posted::Address(record) => unsafe {
                copy_whole(destination, (*record.cast::<Blocks<'_>>()).block(me))
            },
        };
        result = result.and(received);
    }
    round.finish(if exposed {
        Finish::Everyone
    } else {
        Finish::Nobody
    });
    result
}

/// The blocks of a buffer, packed one after the other.
struct Packed {
    data: Vec<u8>,
    counts: Vec<i64>,
    displacements: Vec<i64>,
}

impl Packed {
    /// # Safety
    /// The blocks are live, readable buffers.
    unsafe fn of(blocks: &Blocks<'_>, size: usize) -> Result<Self, EngineError> {
        let (mut counts, mut displacements) = (reserve(size)?, reserve(size)?);
        let mut total = 0_i64;
        for member in 0..size {
            let bytes = blocks.block(member).bytes() as i64;
            counts.push(bytes);
            displacements.push(total);
            total += bytes;
        }
        let mut data: Vec<u8> = reserve(total as usize)?;
        for (member, &at) in displacements.iter().enumerate() {
            let block = blocks.block(member);
            // SAFETY: the blocks are the caller's, and their sum is reserved.
            unsafe { pack(block, 0, data.as_mut_ptr().add(at as usize), block.bytes()) };
        }
        // SAFETY: the blocks filled all of it.
        unsafe { data.set_len(total as usize) };
        Ok(Self {
            data,
            counts,
            displacements,
        })
    }

    fn blocks<'a>(&'a self, byte: &'a TypeRef) -> Blocks<'a> {
        Blocks::Varying {
            base: self.data.as_ptr().cast_mut(),
            counts: &self.counts,
            displacements: &self.displacements,
            datatype: byte,
        }
    }
}

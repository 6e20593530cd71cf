//! Gather and scatter, with equal or varying blocks.
//!
//! Gather: every member posts its block (small: in the entry or a parcel), the root copies each to its
//! place, and members whose memory it reads wait for it.
//!
//! Scatter: the root posts all blocks (small and equal: packed in the entry or a parcel, large: the address
//! of their description), and every member copies its own.

use super::blocks::{copy_whole, unpack_inline};
use super::choice::scheduled;
use super::round::{Finish, Posted, Round};
use super::shared::{INLINE, LEAVES, PARCEL};
use super::wide;
use super::{Blocks, Call, Group};
use crate::EngineError;
use crate::datatype::{Layout, pack};

/// `MPI_Gather` and `MPI_Gatherv` to member `root`.
///
/// `send` is `None` for in-place (at the root only); `receive` is used at the root only.
///
/// # Safety
/// The buffers are live; those of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] at the root.
pub unsafe fn gather(
    group: &Group<'_>,
    send: Option<Layout<'_>>,
    receive: Option<Blocks<'_>>,
    root: u32,
) -> Result<(), EngineError> {
    let (me, root) = (group.me(), root as usize);
    if let Some(spread) = group.shared.spread() {
        // SAFETY: the caller's conditions.
        return unsafe { wide::gather(group, spread, send, receive, root) };
    }
    let call = Call::Gather {
        send,
        receive,
        root: root as u32,
    };
    // SAFETY: the caller's conditions.
    if let Some(done) = unsafe { scheduled(group, |it| it.gather, || None, &call) } {
        return done;
    }
    let Some(receive) = receive.filter(|_| me == root) else {
        let Some(send) = send else { return Ok(()) };
        let round = Round::begin(group);
        // SAFETY: the caller's buffer; it stays until `finish`.
        let exposed = unsafe { round.leave_layout(&send) };
        round.announce_to(root);
        round.finish(if exposed {
            Finish::Member(root)
        } else {
            Finish::Nobody
        });
        return Ok(());
    };
    let mut result = Ok(());
    if let Some(send) = send {
        // SAFETY: the caller's buffers.
        result = unsafe { copy_whole(receive.block(me), send) };
    }
    if group.size() == 1 {
        return result;
    }
    let round = Round::begin(group);
    round.await_all();
    for member in (0..group.size()).filter(|&member| member != me) {
        // SAFETY: all members posted layouts; the buffer is the caller's.
        let received = unsafe { round.receive_layout(member, receive.block(member)) };
        result = result.and(received);
    }
    round.finish(Finish::Nobody);
    result
}

/// `MPI_Scatter` and `MPI_Scatterv` from member `root`.
///
/// `send` is used at the root only; `receive` is `None` for in-place (at the root only).
///
/// # Safety
/// The buffers are live; that of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] when the root sends more than `receive` holds.
pub unsafe fn scatter(
    group: &Group<'_>,
    send: Option<Blocks<'_>>,
    receive: Option<Layout<'_>>,
    root: u32,
) -> Result<(), EngineError> {
    let (me, root) = (group.me(), root as usize);
    if let Some(spread) = group.shared.spread() {
        // SAFETY: the caller's conditions.
        return unsafe { wide::scatter(group, spread, send, receive, root) };
    }
    let call = Call::Scatter {
        send,
        receive,
        root: root as u32,
    };
    // SAFETY: the caller's conditions.
    if let Some(done) = unsafe { scheduled(group, |it| it.scatter, || None, &call) } {
        return done;
    }
    let Some(send) = send.filter(|_| me == root) else {
        let Some(receive) = receive else {
            return Ok(());
        };
        let round = Round::begin(group);
        round.await_member(root);
        let result = match round.posted(root) {
            Posted::Inline { data, bytes } => {
                let block = bytes / group.size() as u64;
                // SAFETY: the entry holds a block for each member.
                unsafe { unpack_inline(receive, data, me as u64 * block, block) }
            }
            // SAFETY: the record is the root's `Blocks`, alive until we complete.
            Posted::Address(record) => unsafe {
                copy_whole(receive, (*record.cast::<Blocks<'_>>()).block(me))
            },
        };
        round.finish(Finish::Nobody);
        return result;
    };
    let mut result = Ok(());
    if group.size() > 1 {
        let round = Round::begin(group);
        let leaves = match group.rank.node().is_crowded() {
            true => PARCEL,
            false => LEAVES,
        };
        // SAFETY: the caller's buffers; they stay until `finish`.
        let exposed = unsafe { post_blocks(&round, &send, group.size(), leaves) };
        round.announce();
        if let Some(receive) = receive {
            // SAFETY: the caller's buffers.
            result = unsafe { copy_whole(receive, send.block(me)) };
        }
        round.finish(if exposed {
            Finish::Everyone
        } else {
            Finish::Nobody
        });
    } else if let Some(receive) = receive {
        // SAFETY: the caller's buffers.
        result = unsafe { copy_whole(receive, send.block(me)) };
    }
    result
}

/// Posts the blocks for all members: their data if equal and in total no more than an entry holds, or than `leaves` (at most a
/// [`PARCEL`]), else their address. Returns whether others will read the caller's memory.
///
/// # Safety
/// The blocks are live, readable buffers.
pub(super) unsafe fn post_blocks(
    round: &Round<'_>,
    blocks: &Blocks<'_>,
    size: usize,
    leaves: usize,
) -> bool {
    let total = blocks.equal_bytes(size).unwrap_or(u64::MAX);
    let fill = |out: *mut u8| {
        let block = total / size as u64;
        for member in 0..size {
            let place = out.wrapping_add(member * block as usize);
            // SAFETY: there is room for the total.
            unsafe { pack(blocks.block(member), 0, place, block) };
        }
    };
    let entry = match total as usize {
        0..=INLINE => Some(round.inline(total, fill)),
        total_bytes if total_bytes <= leaves => round.parcel(total, fill),
        _ => None,
    };
    round.publish(entry.unwrap_or_else(|| round.address(blocks)));
    entry.is_none()
}

//! All-to-all, with equal, varying or typed blocks: every member posts its blocks, and each
//! copies its own block out of everyone's buffer.

use crate::args::Blocks;
use crate::blocking::round::{Finish, Round};
use crate::data::copy_whole;
use crate::members::LocalGroup;
use crate::memory::Packed;
use cohort_core::EngineError;

/// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`; `send` is `None` for in-place.
///
/// # Safety
/// The buffers are live; those of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds,
/// [`EngineError::OutOfMemory`] in place.
#[inline(always)]
pub(super) unsafe fn alltoall(
    group: &LocalGroup<'_>,
    send: Option<Blocks<'_>>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    let (me, size) = (group.me(), group.size());
    if let Some(send) = send {
        // SAFETY: the caller's buffers.
        let result = unsafe { copy_whole(receive.block(me), send.block(me)) };
        if size == 1 {
            return result;
        }
        // SAFETY: the caller's conditions.
        return result.and(unsafe { exchange(group, &send, &receive) });
    }
    if size == 1 {
        return Ok(());
    }
    // Others read while we write.
    // SAFETY: the receive blocks hold what this member sends; the copy lives to the end of the call.
    unsafe {
        let packed = Packed::of_others(&receive, me, size)?;
        exchange(group, &packed.blocks(), &receive)
    }
}

/// Exchanges all blocks but the caller's own.
///
/// # Safety
/// As [`alltoall`].
unsafe fn exchange(
    group: &LocalGroup<'_>,
    send: &Blocks<'_>,
    receive: &Blocks<'_>,
) -> Result<(), EngineError> {
    let mut result = Ok(());
    let round = Round::begin(group);
    // SAFETY: the caller's buffers; they stay until `finish`.
    let exposed = unsafe { round.post_blocks(send, 0) };
    round.exchange();
    for member in round.others() {
        // SAFETY: all members posted blocks; the buffer is the caller's.
        let received = unsafe { round.receive_block(member, receive.block(member)) };
        result = result.and(received);
    }
    round.finish(Finish::after(exposed, Finish::Everyone));
    result
}

//! All-to-all, with equal, varying or typed blocks: every member posts its blocks, and each
//! copies its own block out of everyone's buffer.

use super::MEETS_ONCE_MAX;
use crate::args::Blocks;
use crate::blocking::round::{Finish, Round};
use crate::data::copy_whole;
use crate::members::LocalGroup;
use crate::memory::Packed;
use cohort_core::EngineError;

/// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`; `send` is `None` for in-place.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds,
/// [`EngineError::OutOfMemory`] in place.
#[inline(always)]
pub(super) fn alltoall(
    group: &LocalGroup<'_>,
    send: Option<Blocks<'_>>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    let (me, size) = (group.me(), group.size());
    if let Some(send) = send {
        let result = copy_whole(receive.block(me), send.block(me));
        if size == 1 {
            return result;
        }
        return result.and(exchange(group, &send, &receive));
    }
    if size == 1 {
        return Ok(());
    }
    // Others read while we write.
    let packed = Packed::of_others(&receive, me, size)?;
    exchange(group, &packed.blocks(), &receive)
}

/// Exchanges all blocks but the caller's own.
fn exchange(group: &LocalGroup<'_>, send: &Blocks<'_>, receive: &Blocks<'_>) -> Result<(), EngineError> {
    let mut result = Ok(());
    let round = Round::begin(group);
    let exposed = round.post_blocks(send, MEETS_ONCE_MAX);
    round.exchange();
    for member in round.others() {
        let received = round.receive_block(member, receive.block(member));
        result = result.and(received);
    }
    round.finish(Finish::after(exposed, Finish::Everyone));
    result
}

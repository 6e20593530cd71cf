//! Allgather, with equal or varying blocks: every member posts its block and copies everyone's.

use super::MEETS_ONCE_MAX;
use crate::args::Blocks;
use crate::blocking::round::{Finish, Round};
use crate::data::copy_whole;
use crate::members::LocalGroup;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// `MPI_Allgather` and `MPI_Allgatherv`; `send` is `None` for in-place.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds.
#[inline(always)]
pub(super) fn allgather(
    group: &LocalGroup<'_>,
    send: Option<Buffer<'_>>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    let own = receive.block(group.me());
    let mut result = Ok(());
    if let Some(send) = send {
        result = copy_whole(own, send);
    }
    if group.size() == 1 {
        return result;
    }
    let send = send.unwrap_or(own);
    let round = Round::begin(group);
    let exposed = match send.bytes() <= MEETS_ONCE_MAX as u64 {
        true => round.post_copied(&send),
        false => round.post_buffer(&send),
    };
    round.exchange();
    for member in round.others() {
        let received = round.receive_buffer(member, receive.block(member));
        result = result.and(received);
    }
    round.finish(Finish::after(exposed, Finish::Everyone));
    result
}

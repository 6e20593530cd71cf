//! Allgather, with equal or varying blocks: every member posts its block and copies everyone's.
//!
//! Members start with their right neighbour, so that they do not all read one buffer at once.

use super::blocks::copy_whole;
use super::choice::{meets_once, scheduled};
use super::round::{Finish, Round};
use super::wide;
use super::{Blocks, Call, Group};
use crate::EngineError;
use crate::datatype::Layout;

/// `MPI_Allgather` and `MPI_Allgatherv`; `send` is `None` for in-place.
///
/// # Safety
/// The buffers are live; those of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds.
pub unsafe fn allgather(
    group: &Group<'_>,
    send: Option<Layout<'_>>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    let (me, size) = (group.me(), group.size());
    if size > 1 && group.shared.spread().is_none() {
        let call = Call::Allgather { send, receive };
        let by_itself = || meets_once(group, receive.equal_bytes(1), size * size);
        // SAFETY: the caller's conditions.
        if let Some(done) = unsafe { scheduled(group, |it| it.allgather, by_itself, &call) } {
            return done;
        }
    }
    let own = receive.block(me);
    let mut result = Ok(());
    if let Some(send) = send {
        // SAFETY: the caller's buffers.
        result = unsafe { copy_whole(own, send) };
    }
    if size == 1 {
        return result;
    }
    let send = send.unwrap_or(own);
    if let Some(spread) = group.shared.spread() {
        // SAFETY: the caller's conditions; the own block is in place.
        let gathered = unsafe {
            match spread.has_neighbours() {
                true => wide::allgather_by_node(group, spread, send, receive),
                false => wide::allgather(group, send, receive),
            }
        };
        return result.and(gathered);
    }
    let round = Round::begin(group);
    // SAFETY: the caller's buffer; it stays until `finish`.
    let exposed = unsafe { round.post_layout(&send) };
    round.exchange();
    for member in (me + 1..size).chain(0..me) {
        // SAFETY: all members posted layouts; the buffer is the caller's.
        let received = unsafe { round.receive_layout(member, receive.block(member)) };
        result = result.and(received);
    }
    round.finish(if exposed {
        Finish::Everyone
    } else {
        Finish::Nobody
    });
    result
}

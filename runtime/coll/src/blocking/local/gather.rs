//! Gather and scatter, with equal or varying blocks.
//!
//! Gather: every member posts its block (small: in the entry or a side buffer), the root copies each to its
//! place, and members whose memory it reads wait for it. With a CPU for each rank they copy a long one with it.
//!
//! Scatter: the root posts all blocks (small and equal: packed in the entry or a side buffer, large: the address
//! of their description), and every member copies its own.

use crate::args::Blocks;
use crate::blocking::round::{Finish, Round};
use crate::data::copy_whole;
use crate::members::LocalGroup;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// `MPI_Gather` and `MPI_Gatherv` to member `root`.
///
/// `send` is `None` for in-place (at the root only); `receive` is used at the root only.
///
/// # Errors
/// [`EngineError::Truncated`] at the root.
#[inline(always)]
pub(super) fn gather(
    group: &LocalGroup<'_>,
    send: Option<Buffer<'_>>,
    receive: Option<Blocks<'_>>,
    root: usize,
) -> Result<(), EngineError> {
    let me = group.me();
    let Some(receive) = receive.filter(|_| me == root) else {
        let Some(send) = send else { return Ok(()) };
        let round = Round::begin(group);
        if round.is_lent(send.bytes()) {
            round.lend(&send, root);
            return Ok(());
        }
        let exposed = round.post_copied(&send);
        round.announce_to(root);
        round.finish(Finish::after(exposed, Finish::Member(root)));
        return Ok(());
    };
    let mut result = Ok(());
    let own = |send| copy_whole(receive.block(me), send);
    if group.size() == 1 {
        return send.map_or(result, own);
    }
    let round = Round::begin(group);
    let others = || (0..group.size()).filter(|&member| member != me);
    if let Some(send) = send {
        if round.is_lent(send.bytes()) {
            // Those that have come begin meanwhile.
            // SAFETY: all members post buffers or lend them; they are received below.
            others().for_each(|it| unsafe { round.open_lent(it, receive.block(it)) });
        }
        result = own(send);
    }
    round.await_all();
    for member in others() {
        let received = round.receive_exposed(member, receive.block(member));
        result = result.and(received);
    }
    round.finish(Finish::Nobody);
    result
}

/// `MPI_Scatter` and `MPI_Scatterv` from member `root`.
///
/// `send` is used at the root only; `receive` is `None` for in-place (at the root only).
///
/// # Errors
/// [`EngineError::Truncated`] when the root sends more than `receive` holds.
#[inline(always)]
pub(super) fn scatter(
    group: &LocalGroup<'_>,
    send: Option<Blocks<'_>>,
    receive: Option<Buffer<'_>>,
    root: usize,
) -> Result<(), EngineError> {
    let me = group.me();
    let Some(send) = send.filter(|_| me == root) else {
        let Some(receive) = receive else {
            return Ok(());
        };
        let round = Round::begin(group);
        round.await_member(root);
        let result = round.receive_block(root, receive);
        round.finish(Finish::Nobody);
        return result;
    };
    let mut result = Ok(());
    if group.size() > 1 {
        let round = Round::begin(group);
        let exposed = round.post_blocks(&send, round.copy_max());
        round.announce();
        if let Some(receive) = receive {
            result = copy_whole(receive, send.block(me));
        }
        round.finish(Finish::after(exposed, Finish::Everyone));
    } else if let Some(receive) = receive {
        result = copy_whole(receive, send.block(me));
    }
    result
}

//! Broadcast: the root posts, everyone reads.
//!
//! Small data travels in the root's entry, and the root runs ahead. Of larger data the root
//! posts the address; all members copy straight out of its buffer at the same time, and the
//! root waits for the last of them.

use super::choice::{is_long_bcast, scheduled};
use super::round::{Finish, Round};
use super::wide;
use super::{Call, Group};
use crate::EngineError;
use crate::datatype::Layout;

/// `MPI_Bcast` of `buffer` from member `root`.
///
/// # Safety
/// `buffer` is a live buffer, writable at members other than the root.
///
/// # Errors
/// [`EngineError::Truncated`] when the root sends more than `buffer` holds.
pub unsafe fn bcast(group: &Group<'_>, buffer: Layout<'_>, root: u32) -> Result<(), EngineError> {
    if group.size() == 1 {
        return Ok(());
    }
    if let Some(spread) = group.shared.spread() {
        // SAFETY: the caller's conditions.
        return unsafe { wide::bcast(group, spread, buffer, root) };
    }
    let long = is_long_bcast(buffer.bytes());
    let call = Call::Bcast { buffer, root };
    // SAFETY: the caller's conditions.
    if let Some(done) = unsafe { scheduled(group, |it| it.bcast, long, &call) } {
        return done;
    }
    let round = Round::begin(group);
    if group.me == root {
        // SAFETY: the caller's buffer; it stays until `finish`.
        let exposed = unsafe { round.post_layout(&buffer) };
        round.announce();
        round.finish(if exposed {
            Finish::Everyone
        } else {
            Finish::Nobody
        });
        return Ok(());
    }
    round.await_member(root as usize);
    // SAFETY: the root has posted a layout; the buffer is the caller's.
    let result = unsafe { round.receive_layout(root as usize, buffer) };
    round.finish(Finish::Nobody);
    result
}

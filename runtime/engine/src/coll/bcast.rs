//! Broadcast: the root posts, everyone reads.
//!
//! Small data travels in the root's entry or in a parcel, and the root runs ahead. Of larger data the root
//! posts the address; all members copy straight out of its buffer at the same time, and the
//! root waits for the last of them.

use super::call::run_schedule;
use super::choice::{is_long_bcast, movers};
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
    let wants_schedule = is_long_bcast(group, buffer.bytes());
    let round = Round::begin(group);
    let at_root = group.me == root;
    let root_place = root as usize;
    let is_scheduled = if wants_schedule {
        round.is_scheduled_instead_of(root_place)
    } else if at_root {
        // SAFETY: the caller's buffer; it stays until `finish`.
        match unsafe { round.leave_layout_unless_scheduled(&buffer) } {
            None => true,
            Some(exposed) => {
                round.announce();
                round.finish(if exposed {
                    Finish::Everyone
                } else {
                    Finish::Nobody
                });
                return Ok(());
            }
        }
    } else {
        round.awaits_schedule_instead_of(root_place)
    };
    if is_scheduled {
        round.finish(Finish::Nobody);
        let movers = movers(group, buffer.bytes().saturating_mul(group.size() as u64));
        // SAFETY: the caller's conditions.
        return unsafe { run_schedule(group, &Call::Bcast { buffer, root }, movers) };
    }
    // SAFETY: the root has posted a layout; the buffer is the caller's.
    let result = unsafe { round.receive_layout(root_place, buffer) };
    round.finish(Finish::Nobody);
    result
}

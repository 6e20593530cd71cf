//! Broadcast: the root posts, everyone reads.
//!
//! Small data travels in the root's entry or in a side buffer, and the root runs ahead. Of larger data the root
//! posts the address; all members copy straight out of its buffer at the same time, and the
//! root waits for the last of them.

use crate::args::Call;
use crate::blocking::choice::{is_long_bcast, movers, run_pool};
use crate::blocking::round::{Finish, Round};
use crate::members::LocalGroup;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// `MPI_Bcast` of `buffer` from member `root`.
///
/// # Errors
/// [`EngineError::Truncated`] when the root sends more or less than `buffer` holds.
#[inline(always)]
pub(super) fn bcast(group: &LocalGroup<'_>, buffer: Buffer<'_>, root: u32) -> Result<(), EngineError> {
    if group.size() == 1 {
        return Ok(());
    }
    let wants_pool = is_long_bcast(group, buffer.bytes());
    let round = Round::begin(group);
    let at_root = group.me == root;
    let root_place = root as usize;
    let is_pooled = if wants_pool {
        round.is_scheduled_instead_of(root_place)
    } else if at_root {
        match round.post_copied_unless_pooled(&buffer) {
            None => true,
            Some(exposed) => {
                round.announce();
                round.finish(Finish::after(exposed, Finish::Everyone));
                return Ok(());
            }
        }
    } else {
        round.awaits_pool_instead_of(root_place)
    };
    if is_pooled {
        round.finish(Finish::Nobody);
        let movers = movers(group, buffer.bytes().saturating_mul(group.size() as u64));
        return run_pool(group, &Call::Bcast { buffer, root }, movers);
    }
    let result = round.receive_value(root_place, buffer);
    round.finish(Finish::Nobody);
    result
}

//! The beginning and the end of a rank.

pub use crate::abort::{abort, abort_members};
use crate::ranks::Claim;
use crate::ranks::{Owner, hooks};
use crate::wait;
use crate::waits::Awaited;
use cohort_base::picture::{Fact, Told};

/// Begins: has every subsystem start what it has for the rank. By the rank's own task, at
/// initialisation. Without memory or threads for it the rank simply progresses inside its own
/// calls.
pub fn begin(owner: Owner<'static>) {
    hooks::begin(owner);
}

/// Ends the rank's use of the network, once all it has sent has left, and stops what [`begin`] started. By the
/// rank's own task, at finalisation.
pub fn end(owner: Owner<'static>) {
    hooks::end(owner);
}

/// Waits until every rank of the node has come here or has left ([`abort_members`]), so that nobody's
/// memory goes away while another still reads it. Once per rank, for a job of one node.
pub fn meet_at_end(owner: Owner<'_>) {
    let rank = owner.rank();
    let node = rank.node();
    rank.mark_done();
    wait::until(owner, TheEnd, || node.all_done());
}

/// What a rank waits for that has come to its end.
struct TheEnd;

impl Awaited for TheEnd {
    fn tell(&self, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(Fact::new(Told::End));
    }
}

//! Places of ranks that have ended, for others.
//!
//! A rank that is spawned may take the place of one whose world is over. What belongs to the place stays as it is: its
//! heap, with the blocks that others still give back to it, its rings and those to it, and what both sides count of
//! them. None of that knows whose it is. So a place is used again only if its last rank has left nothing there that
//! belongs to it: no message, no receive, no collective, no window, no thread within a call, no claim. What was the
//! last rank's own and always there, its process, policies, signal and level of threads, begins anew.
//!
//! Nothing of others can reach the new rank by what it has from the old one: communicators' numbers are never drawn
//! twice, and the one that belongs to the place, that of `MPI_COMM_SELF`, only the rank itself sends with.

use super::{Claim, Node, Rank, hooks};
use cohort_base::LocalRank;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use core::ptr::null_mut;

impl Node {
    /// Makes the places of so many ranks from this index on ready for others ([`Node::add`]): their tasks have ended,
    /// and no communicator joins them with anybody. `false`: something of one of them is left, or somebody is busy with
    /// it; then nothing has changed.
    ///
    /// # Safety
    /// One task at a time, which has seen the ends of the ranks.
    pub unsafe fn renew(&'static self, first: LocalRank, count: u32) -> bool {
        let places = || (first..first + count).map(|id| self.rank(id));
        let has_left_nothing = |rank: &'static Rank| {
            let claim = rank.try_steal(rank.id());
            claim.is_some_and(|mut claim| is_unused(&mut claim))
        };
        let is_ready = !self.has_network() && places().all(has_left_nothing);
        if is_ready {
            places().for_each(Rank::renew);
        }
        is_ready
    }
}

/// Whether nothing of a rank that has ended is left in its place.
fn is_unused(claim: &mut Claim<'_>) -> bool {
    let rank = claim.rank();
    let (parked, _) = rank.park.parked();
    parked == 0
        && rank.sleepers.are_none()
        && rank.waits.is_nobody_there()
        && !rank.pending_events.has_users()
        && rank.policies.try_lock().is_some()
        && claim.is_without_reasons()
        && hooks::is_idle(claim)
        && hooks::is_quiet(claim)
        && hooks::is_unused(claim)
}

impl Rank {
    /// Forgets whose place it was.
    fn renew(&'static self) {
        self.local.store(null_mut(), Ordering::Release);
        self.trace.store(null_mut(), Ordering::Release);
        self.last_fruitless.store(0, Ordering::Relaxed);
        self.threads.renew();
        self.cpu.renew();
        self.waits.renew();
        self.policies.renew(self.node.settings().progress);
        hooks::renew(self);
    }

    /// Its new rank is about to start; `all_done` counts those that have come to their end.
    pub(super) fn rejoin(&self, all_done: &AtomicU32) {
        self.trace.store(self.boot().trace.cast_mut(), Ordering::Release);
        if self.is_done.swap(false, Ordering::AcqRel) {
            all_done.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

//! The machinery of the policies as a part of the engine.

use crate::parts::{Machinery, OfRank as _, Parts, Tables, Workers};
use crate::worker::DedicatedWorker;
use crate::{help, helper, lifecycle, offload, watch};
use cohort_base::LocalRank;
use cohort_base::sync::atomic::Ordering;
use cohort_core::memory::{Cursor, Plan};
use cohort_core::subsystem::{Mark, Need, Subsystem};
use cohort_core::{Claim, Envelope, Node, Owner, Rank, Work};
use cohort_steal::policy::DedicatedWorkers;

// SAFETY: no other subsystem has this place.
unsafe impl Subsystem for Machinery {
    const SLOT: usize = 4;
    type Node = Workers;
    type Shared = Parts;
    type State = ();
    type Tables = Tables;

    fn tables(cursor: &mut Cursor, plan: &Plan) -> Tables {
        Tables {
            dedicated_workers: cursor.table(plan.workers),
            workers: plan.workers,
            mailboxes: cursor.table(plan.ranks),
            offloads: cursor.table(plan.ranks),
        }
    }

    fn node(node: &'static Node, tables: &mut Tables) -> Workers {
        let dedicated_workers = tables.dedicated_workers.take(tables.workers);
        for number in 0..tables.workers {
            // SAFETY: the table has so many entries, which are ours.
            unsafe { dedicated_workers.add(number).write(DedicatedWorker::new(node, number as u32)) };
        }
        // SAFETY: they were just made, and live as long as the node.
        Workers(unsafe { core::slice::from_raw_parts(dedicated_workers, tables.workers) })
    }

    fn rank(node: &'static Node, id: LocalRank, tables: &mut Tables) -> (Parts, ()) {
        (Parts::new(node, id, tables), ())
    }

    fn begin(owner: Owner<'static>) {
        lifecycle::begin(owner.rank());
    }

    fn end(owner: Owner<'static>) {
        lifecycle::end(owner.rank());
    }

    #[inline]
    fn own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work> {
        let errands = claim.rank().errands();
        if owner.is_none() || errands.is_empty() || !claim.is_by_owner() {
            return None;
        }
        claim.rank().forever().errands().take().map(Work::new)
    }

    #[inline]
    fn is_idle(claim: &mut Claim<'_>) -> bool {
        claim.rank().errands().is_empty()
    }

    /// Places that dedicated workers know by what they have been told are not used again.
    fn is_unused(claim: &mut Claim<'_>) -> bool {
        let rank = claim.rank();
        rank.mailbox().is_none() && rank.offload().is_none() && rank.watched().load(Ordering::Relaxed) == 0
    }

    fn renew(rank: &Rank) {
        rank.interrupter().renew();
        rank.observer().renew();
    }

    fn claimed(claim: &mut Claim<'_>) {
        if claim.rank().has_posts() {
            match claim.is_by_owner() {
                true => offload::drain(claim),
                false => offload::drain_some(claim),
            }
        }
    }

    fn wait_begins(rank: &Rank) {
        rank.interrupter().suspend();
        if rank.capabilities().adapts() {
            rank.observer().enter();
        }
    }

    fn wait_goes_on(rank: &Rank) {
        if rank.capabilities().adapts() {
            rank.observer().wait();
        }
    }

    fn wait_ends(claim: &mut Claim<'_>, since: u64) {
        let rank = claim.rank();
        if rank.capabilities().adapts() {
            rank.observer().leave(since);
        }
        rank.interrupter().resume(claim);
    }

    fn help(rank: &Rank, by: &Rank, need: Need) -> bool {
        help::find(rank, by, need)
    }

    fn wake_dedicated(near: &Rank) -> Option<bool> {
        near.worker_of(DedicatedWorkers::Ghosts).map(DedicatedWorker::wake)
    }

    #[inline]
    fn offered(receiver: &Rank, sender: &Rank, envelope: &Envelope, number: u32) {
        helper::announce(receiver, sender, *envelope, number);
    }

    fn left_behind(claim: &mut Claim<'_>) -> Mark {
        watch::leave_collective_behind(claim)
    }

    fn under_way(claim: &mut Claim<'_>) -> Mark {
        watch::under_way(claim)
    }

    fn met(claim: &mut Claim<'_>, mark: Mark) {
        watch::met(claim, mark);
    }

    fn over(claim: &mut Claim<'_>, mark: Mark) {
        watch::over(claim, mark);
    }
}

/// Has a thread of the program's run something, in its next call that makes progress, and waits until it has. By a
/// thread of the runtime's own, which has a [`Block`](cohort_core::threads::Block).
pub fn leave_errand(rank: &Rank, what: &dyn Fn()) {
    rank.errands().ask(rank, what);
}

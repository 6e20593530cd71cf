//! Point-to-point communication (MPI-4.1, chapters 3 and 4).
//!
//! This crate is **stealable** (`no_std`, no thread-local data, no allocator): any task of the node may run it for any rank whose
//! claim it holds. Only calls that wait are for the rank's own task: they ask for its [`Owner`](cohort_core::Owner).
//!
//! | module | what it holds |
//! |---|---|
//! | [`messages`], [`probe`](mod@probe), [`partitioned`] | the calls of the layers above |
//! | `outbox`, `ring`, `inbox` | the way from one rank to another: one ring for each pair |
//! | `poll` | taking messages out of the rings |
//! | [`matching`] | which message goes to which receive |
//! | [`protocol`] | how bytes travel: inline in a ring, in a block, or straight between user buffers |
//! | [`remote`] | messages between nodes |
//!
//! Under `--cfg loom` only the lock-free parts exist, for their models.
#![no_std]
#![cfg_attr(loom, allow(dead_code, reason = "the models use parts"))]

#[cfg(test)]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(not(loom))]
mod inbox;
#[cfg(not(loom))]
pub mod matching;
#[cfg(not(loom))]
pub mod messages;
#[cfg(not(loom))]
pub mod operation;
#[cfg(not(loom))]
mod outbox;
#[cfg(not(loom))]
pub mod partitioned;
#[cfg(not(loom))]
pub mod poll;
#[cfg(not(loom))]
pub mod probe;
#[cfg(not(loom))]
pub mod protocol;
#[cfg(not(loom))]
pub mod remote;
mod ring;
mod rounds;
#[cfg(not(loom))]
mod state;

#[cfg(not(loom))]
pub use messages::{irecv, isend, isend_owned, receive_now, recv, send};
#[cfg(not(loom))]
pub use probe::{MessageRef, improbe, imrecv, iprobe, mprobe, probe};
#[cfg(not(loom))]
pub use subsystem::P2p;

#[cfg(not(loom))]
mod subsystem {
    use crate::inbox::Inbox;
    use crate::outbox::{self, Outbox};
    use crate::partitioned;
    use crate::poll;
    use crate::protocol::job::Job;
    use crate::ring::Ring;
    use crate::state::{Shared, State};
    use cohort_base::LocalRank;
    use cohort_base::sync::atomic::{AtomicPtr, AtomicU32};
    use cohort_core::memory::{Cursor, Plan, Table};
    use cohort_core::subsystem::Subsystem;
    use cohort_core::{Claim, Look, Node, Owner, Turn, Work};

    /// The subsystem.
    #[derive(Debug)]
    pub struct P2p;

    /// Tables with an entry for each pair of ranks of the node.
    #[derive(Debug)]
    pub struct Tables {
        rings: Table<AtomicPtr<Ring>>,
        senders: Table<AtomicU32>,
        outboxes: Table<Outbox>,
        accepted: Table<AtomicU32>,
    }

    // SAFETY: no other subsystem has this place.
    unsafe impl Subsystem for P2p {
        const SLOT: usize = 1;
        type Node = ();
        type Shared = Shared;
        type State = State;
        type Tables = Tables;

        fn tables(cursor: &mut Cursor, plan: &Plan) -> Tables {
            let pairs = plan.ranks * plan.ranks;
            Tables {
                rings: cursor.table(pairs),
                senders: cursor.table(pairs),
                outboxes: cursor.table(pairs),
                accepted: cursor.table(pairs),
            }
        }

        fn node(_node: &'static Node, _tables: &mut Tables) {}

        fn rank(node: &'static Node, _id: LocalRank, tables: &mut Tables) -> (Shared, State) {
            let (size, count) = (node.size(), node.size() as usize);
            // SAFETY: the tables are zeroed, dealt out to one rank each, and live as long as the node.
            let shared = unsafe {
                let inbox = Inbox::new(tables.rings.take(count), tables.senders.take(count), size);
                Shared::new(inbox, tables.accepted.take(count), size)
            };
            (shared, State::new(tables.outboxes.take(count)))
        }

        #[inline]
        fn turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn) {
            if look.is_within_node() {
                turn_within_node(claim, turn);
            }
            if matches!(look, Look::Own { .. }) && !claim.of::<Self>().away.first().is_null() {
                turn.moved |= partitioned::go_on(claim);
            }
        }

        #[inline]
        fn own_work(claim: &mut Claim<'_>, _owner: Option<Owner<'_>>) -> Option<Work> {
            poll::job_of_own_send(claim).map(Work::new)
        }

        fn is_stalled(claim: &mut Claim<'_>) -> bool {
            claim.of::<Self>().remote.is_stalled()
        }

        fn is_quiet(claim: &mut Claim<'_>) -> bool {
            claim.of::<Self>().remote.is_quiet()
        }
    }

    #[inline]
    fn turn_within_node(claim: &mut Claim<'_>, turn: &mut Turn) {
        if claim.of::<P2p>().receivers_waited_for != 0 {
            turn.moved |= outbox::flush(claim) > 0;
        }
        if !claim.of::<P2p>().posted.is_empty() {
            poll::poll_rings(claim, turn);
        }
        if turn.work.is_none() && !claim.of::<P2p>().jobs.first().is_null() {
            turn.work = Job::next(claim).map(Work::new);
        }
        if turn.work.is_none() && !claim.of::<P2p>().awaiting.first().is_null() {
            turn.work = partitioned::next_opened(claim).map(Work::new);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod joined_for_tests {
    use crate::P2p;
    use cohort_net::Network;

    cohort_core::engine!(Network, P2p);
    cohort_net::receivers!(P2p);
}

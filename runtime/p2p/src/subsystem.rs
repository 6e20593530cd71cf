//! Messages as a part of the engine: their tables, and their part of a turn.

use crate::failing;
use crate::inbox::{Inbox, Outbox};
use crate::operation::SLOT;
use crate::outbox;
use crate::poll;
use crate::protocol::{handover, jobs, lent, pipelined};
use crate::ring::Ring;
use crate::state::{P2p, P2pState, Shared};
use cohort_base::LocalRank;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32};
use cohort_core::memory::{Cursor, Plan, Table};
use cohort_core::subsystem::Subsystem;
use cohort_core::{Claim, Look, Node, Owner, Turn, Work};
use core::slice;

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
    const SLOT: usize = SLOT;
    type Node = ();
    type Shared = Shared;
    type State = P2pState;
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

    fn rank(node: &'static Node, _id: LocalRank, tables: &mut Tables) -> (Shared, P2pState) {
        let (size, count) = (node.capacity(), node.capacity() as usize);
        // SAFETY: the tables are zeroed, dealt out to one rank each, and live as long as the node.
        let (inbox, accepted, outboxes) = unsafe {
            let inbox = Inbox::new(tables.rings.take(count), tables.senders.take(count), size);
            let accepted = slice::from_raw_parts(tables.accepted.take(count), count);
            (inbox, accepted, slice::from_raw_parts(tables.outboxes.take(count), count))
        };
        (Shared::new(inbox, accepted), P2pState::new(outboxes))
    }

    #[inline]
    fn turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn) {
        if look == (Look::Own { waits: true }) {
            turn.moved |= pipelined::fill(claim) > 0;
        }
        if look.is_own() {
            turn.moved |= lent::recall_late(claim, look == Look::Last);
        }
        if look.is_within_node() {
            turn_within_node(claim, turn);
        }
    }

    #[inline]
    fn own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work> {
        if let Some(owner) = owner
            && let Some(retry) = handover::take(owner)
        {
            return Some(Work::new(retry));
        }
        poll::job_of_own_send(claim).map(Work::new)
    }

    #[inline]
    fn is_idle(claim: &mut Claim<'_>) -> bool {
        let state = claim.of::<P2p>();
        state.receivers_waited_for == 0
            && state.jobs.is_empty()
            && state.offered.is_empty()
            && (state.posted.is_empty() || poll::are_rings_empty(claim))
            && claim.rank().shared::<P2p>().retries.is_empty()
    }

    fn claimed(claim: &mut Claim<'_>) {
        failing::sweep(claim, poll::take_last_words);
    }

    fn is_unused(claim: &mut Claim<'_>) -> bool {
        let state = claim.of::<P2p>();
        let are_queues_empty = state.posted.is_empty() && state.unexpected.is_empty() && state.sending.is_empty();
        are_queues_empty && state.receivers_waited_for == 0 && poll::are_rings_empty(claim)
    }

    #[inline]
    fn awaits_help(claim: &mut Claim<'_>) -> bool {
        crate::state::awaits_help(claim)
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
    if turn.work.is_none() && !claim.of::<P2p>().jobs.is_empty() {
        turn.work = jobs::next(claim).map(Work::new);
    }
}

//! What becomes of messages between nodes when a rank has failed, or a context is closed ([`crate::failing`]).
//!
//! A node whose rank has died goes on to move what that rank had given to the network, and its memory can still be
//! read. So a read that is under way comes to its end, unless the node is gone too. What only the dead rank's own task
//! would do never comes: answers to offers, data in packets. Its messages that nobody has taken, and whose data is
//! still with it, are forgotten.
//!
//! A send whose context was closed may be being read. So its receiver is asked to forget it, as for `MPI_Cancel`; what
//! it answers says whether the message has arrived.

use super::arrival::{Arrival, Data, Inbound};
use super::outbound::{IN_SENDS, Outbound, Stage};
use super::{Remote, early};
use crate::P2p;
use crate::failing::{close, closed_error, door, failed, is_collective};
use crate::operation::Operation;
use cohort_alloc::Heap;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::list::List;
use cohort_core::message::Envelope;
use cohort_core::record::RecordRef;
use cohort_core::subsystem::hooks;
use cohort_net::link::{answer, link_to};
use cohort_net::wire::{Header, PacketKind};
use cohort_net::{Net, fail, kick, names};
use cohort_steal::TaskKind;
use core::ptr::{NonNull, null_mut};

/// How far a rank has looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Failures and closed contexts of the node.
    epoch: u32,
    /// Packets that have come.
    packets: u64,
}

/// Which of a rank's sends.
const STAGES: [Stage; 4] = [Stage::Offered, Stage::Streaming, Stage::Leaving, Stage::Over];

/// Fails what can come to no good end any more. By the rank's own task, whose claim was just taken.
#[cold]
pub(super) fn sweep(claim: &mut Claim<'_>) {
    let node = claim.rank().node();
    let epoch = node.failure_epoch();
    if epoch == 0 || !claim.is_by_owner() || Net::of(node).is_none() {
        return;
    }
    if claim.of::<Remote>().seen == Seen::default() {
        // From now on it is asked to forget messages, whatever it waits for: who watches the network wakes it.
        claim.expect_more(TaskKind::Net);
    }
    let seen = Seen { epoch, packets: cohort_net::packets_received(claim) };
    if claim.of::<Remote>().seen != seen {
        claim.of::<Remote>().seen = seen;
        cohort_net::link::gate_all(claim);
        forget_messages(claim);
        fail_inbound(claim);
        // Those whose data was on its way.
        forget_messages(claim);
    }
    let mut has_changed = fail_held(claim);
    for stage in STAGES {
        has_changed |= fail_sends(claim, stage);
    }
    if has_changed {
        kick(claim);
    }
}

fn sends<'a>(claim: &'a mut Claim<'_>, stage: Stage) -> &'a mut List<Outbound, IN_SENDS> {
    let state = claim.of::<Remote>();
    match stage {
        Stage::Offered | Stage::Held => &mut state.offered,
        Stage::Streaming => &mut state.streaming,
        Stage::Leaving => &mut state.leaving,
        Stage::Over => &mut state.over,
    }
}

/// Why a send cannot go on, if that is so.
fn reason(claim: &Claim<'_>, send: &Outbound) -> Option<EngineError> {
    let node = claim.rank().node();
    let envelope: Envelope = send.request.get().map_or(send.envelope.get(), |request| request.want.envelope);
    if node.has_failed(send.peer) {
        if is_collective(&envelope) {
            close(node, claim.rank().id(), envelope.context);
        }
        return Some(EngineError::Failed);
    }
    node.is_closed(door(&envelope)).then(|| closed_error(node, door(&envelope)))
}

/// Fails sends in a stage that nobody will take. Whether there were any.
fn fail_sends(claim: &mut Claim<'_>, stage: Stage) -> bool {
    let mut has_changed = false;
    let mut next = sends(claim, stage).first();
    while let Some(send) = next {
        next = sends(claim, stage).next(send);
        let Some(error) = reason(claim, &send) else {
            continue;
        };
        let is_dead = claim.rank().node().has_failed(send.peer);
        if stage == Stage::Over {
            // It waits for an answer to a retraction at most, and nobody answers.
            has_changed |= is_dead && send.is_retracted.take();
        } else if is_dead {
            send.error.set(Some(error));
            // Nobody answers.
            send.is_retracted.set(false);
            // No more data is lined up; what was has to leave first.
            send.wanted.set(send.next.get());
            if send.packets.get() == 0 {
                Outbound::enter(send, claim, Stage::Over);
                has_changed = true;
            }
        } else if stage == Stage::Offered && !send.is_retracted.replace(true) {
            send.error.set(Some(error));
            answer(claim, send.peer, Header::new(PacketKind::Retract, send.name.get()));
            has_changed = true;
        }
    }
    has_changed
}

/// Fails sends that are not offered yet. Whether there were any.
fn fail_held(claim: &mut Claim<'_>) -> bool {
    let mut has_changed = false;
    let mut next = claim.of::<Remote>().queues.first();
    while let Some(queue) = next {
        // The queue ends when sends are released.
        next = claim.of::<Remote>().queues.next(queue);
        let mut held = queue.sends.first();
        while let Some(send) = held {
            held = queue.sends.next(send);
            let Some(error) = reason(claim, &send) else {
                continue;
            };
            queue.sends.remove(send);
            if let Ok(link) = link_to(claim, send.peer) {
                link.release();
            }
            send.error.set(Some(error));
            Outbound::enter(send, claim, Stage::Over);
            has_changed = true;
        }
    }
    has_changed
}

/// Forgets messages of the dead that nobody has taken, and whose data has not come.
fn forget_messages(claim: &mut Claim<'_>) {
    let node = claim.rank().node();
    let is_lost = |arrival: &Arrival| {
        matches!(arrival.data.get(), Data::Offered | Data::Waiting) && node.has_failed(arrival.peer)
    };
    while let Some(stored) = claim
        .of::<P2p>()
        .unexpected
        .find_where(|stored| Arrival::in_message(stored).is_some_and(|arrival| is_lost(&arrival)))
    {
        claim.of::<P2p>().unexpected.remove(stored);
        // SAFETY: it is an arrival, as was seen, and ours once it is out of the queue.
        unsafe {
            let arrival = Arrival::of(stored);
            early::withdraw(claim, &arrival);
            stored.free(claim);
        }
    }
}

/// Fails receives whose data the dead would have sent in packets.
fn fail_inbound(claim: &mut Claim<'_>) {
    while let Some(inbound) = dead_inbound(claim) {
        end_inbound(claim, inbound);
    }
}

fn dead_inbound(claim: &mut Claim<'_>) -> Option<RecordRef<Inbound>> {
    let node = claim.rank().node();
    names::find_where(claim, |peer| node.has_failed(peer))
}

/// Ends a receive of the claimed rank whose data does not come. It is in no list, and no read of it is under way.
pub(super) fn end_inbound(claim: &mut Claim<'_>, inbound: RecordRef<Inbound>) {
    if let Some(block) = NonNull::new(inbound.block.replace(null_mut())) {
        // SAFETY: it was made for this data, and nobody else knows it.
        unsafe { Heap::free(block) };
        early::release(claim, inbound.peer, inbound.wanted);
    }
    if let Some(arrival) = inbound.arrival.take() {
        arrival.data.set(Data::Offered);
    }
    if let Some(request) = inbound.request.take() {
        let node = claim.rank().node();
        let envelope = request.want.envelope;
        if is_collective(&envelope) {
            close(node, claim.rank().id(), envelope.context);
        }
        // SAFETY: the receive is pending, in no queue, and nobody else completes it.
        unsafe { Operation::complete(request, failed(EngineError::Failed)) };
    }
    names::forget(claim, inbound.name.get());
    hooks::over(claim, inbound.mark);
    // SAFETY: it has no name any more, and is in no list.
    unsafe { inbound.free(claim) };
    claim.expect_less(TaskKind::Net);
}

/// A read has failed, or cannot be made: its node is gone. The receive fails when no other read of it is under way.
#[cold]
pub(super) fn read_lost(claim: &mut Claim<'_>, inbound: RecordRef<Inbound>, code: i32) {
    let node = claim.rank().node();
    if !node.survives() {
        fail::broken(claim.rank(), inbound.peer, code);
    }
    node.suspect(node.home_node(inbound.peer));
    inbound.next.set(inbound.wanted);
    inbound.is_lost.set(true);
    if inbound.pieces.get() == 0 {
        claim.of::<Remote>().reading.remove(inbound);
        end_inbound(claim, inbound);
    }
}

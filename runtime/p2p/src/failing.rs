//! What becomes of messages when a rank has failed, or a context is closed
//! ([`cohort_core::failures`]).
//!
//! With `COHORT_ON_FAILURE=continue` no task touches what another rank has, so what a dead rank leaves behind is what
//! it had at its last instruction, and nobody changes it. Its memory stays. So:
//!
//! * A message that has shown itself in a ring is received, also later. One that has not never will.
//! * A long message that its receiver has begun to copy comes to its end, whoever has sent it: the receiver copies it
//!   all.
//! * A posted receive that only the dead could match fails; one from anybody does as long as the failure is not
//!   acknowledged; one in a closed context does.
//! * A send that is offered to a dead rank fails, and what waits for room in the way to it is dropped. One that nobody
//!   has taken yet in a closed context is withdrawn: its receiver has given up too.
//!
//! A collective of which a message fails so cannot come to its end, so its context is closed, and its other members
//! give up. Each rank does this for itself, in the first claim that its own task takes after something has changed,
//! and again when it has posted more.

use crate::P2p;
use crate::operation::Operation;
use crate::seen::Seen;
use crate::state::{leave_offers, outbox_to, unpost_receive};
use crate::want::{Shape, Want};
use cohort_base::LocalRank;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::lifecycle::abort;
use cohort_core::message::{Envelope, Source, Status, Tag};
use cohort_core::node::Node;
use cohort_core::record::RecordRef;
use cohort_core::{Peer, Verdict};

/// Receives that are looked for at a time.
const BATCH: usize = 32;

/// The error of a verdict.
fn error_of(verdict: Verdict) -> Option<EngineError> {
    match verdict {
        Verdict::Fine => None,
        Verdict::Failed => Some(EngineError::Failed),
        Verdict::Pending => Some(EngineError::Pending),
        Verdict::Revoked => Some(EngineError::Revoked),
    }
}

/// An empty status with an error.
pub(crate) fn failed(error: EngineError) -> Status {
    Status { error: error.as_failure().unwrap_or(Status::PROC_FAILED), ..Status::EMPTY }
}

/// Fails what can come to no good end any more, when `take` has taken what the dead have sent. By the rank's own task,
/// whose claim was just taken.
#[cold]
pub(crate) fn sweep(claim: &mut Claim<'_>, take: fn(&mut Claim<'_>)) {
    let epoch = claim.rank().node().failure_epoch();
    if epoch == 0 || !claim.is_by_owner() {
        return;
    }
    let seen = Seen { epoch, posted: claim.of::<P2p>().posted.next_sequence() };
    if claim.of::<P2p>().seen != seen {
        claim.of::<P2p>().seen = seen;
        take(claim);
        fail_receives(claim);
    }
    fail_sends(claim);
    drop_waiting(claim);
}

/// Fails receives that nobody will match.
fn fail_receives(claim: &mut Claim<'_>) {
    loop {
        let rank = claim.rank();
        let mut found: [Option<(RecordRef<Operation>, EngineError)>; BATCH] = [None; BATCH];
        let mut count = 0;
        claim.of::<P2p>().posted.each(|receive| {
            let verdict = verdict_of(rank.node(), rank.id(), &receive.want);
            if let Some(error) = error_of(verdict) {
                found[count] = Some((receive, error));
                count += 1;
            }
            count < BATCH
        });
        for (receive, error) in found.into_iter().flatten() {
            if error == EngineError::Failed && is_collective(&receive.want.envelope) {
                close(claim.rank().node(), claim.rank().id(), receive.want.envelope.context);
            }
            unpost_receive(claim, receive);
            // SAFETY: what was posted is pending, and ours once it is out of the queue.
            unsafe { Operation::complete(receive, failed(error)) };
        }
        if count < BATCH {
            return;
        }
    }
}

pub(crate) fn verdict_of(node: &'static Node, rank: LocalRank, want: &Want) -> Verdict {
    let is_any = want.shape.index() & Shape::ANY_SOURCE.index() != 0;
    let source = (!is_any).then_some(want.envelope.source);
    node.judge(node.rank(rank), door(&want.envelope), source)
}

/// Whether a message is part of a collective: those of programs, and those that only some members exchange to make a
/// communicator, have tags that are not negative. So has what a receive leaves open.
pub(crate) fn is_collective(envelope: &Envelope) -> bool {
    const INTERNAL: core::ops::Range<u32> = 2..4;
    envelope.tag < 0 && !INTERNAL.contains(&envelope.context)
}

/// The context that is closed when a message cannot be. Those that make a communicator travel in that of collectives,
/// but only a revocation ends them.
pub(crate) fn door(envelope: &Envelope) -> u32 {
    match envelope.tag < 0 {
        true => envelope.context,
        false => envelope.context & !1,
    }
}

/// Closes a context, whose collectives cannot come to their end any more. If it is that of a group of an
/// intercommunicator, the other group is not to wait either.
pub(crate) fn close(node: &'static Node, rank: LocalRank, context: u32) {
    let between = node.context_between(node.rank(rank), context);
    if ![Some(context), between].into_iter().flatten().all(|context| node.close(context)) {
        let why = "cohort: no room is left to note which communicators have failed";
        abort(node.rank(rank), 1, why);
    }
}

/// Fails sends that nobody will take.
fn fail_sends(claim: &mut Claim<'_>) {
    let node = claim.rank().node();
    let mut next = claim.of::<P2p>().offered.first();
    while let Some(send) = next {
        next = claim.of::<P2p>().offered.next(send);
        if send.request.is_complete() {
            leave_offers(claim, send);
            continue;
        }
        let (to, context) = (send.want.envelope.source, door(&send.want.envelope));
        let is_dead = node.has_failed(Peer::local(to as LocalRank));
        if !is_dead && !node.is_closed(context) {
            continue;
        }
        let error = match is_dead {
            true => EngineError::Failed,
            false => closed_error(node, context),
        };
        if is_dead && is_collective(&send.want.envelope) {
            close(node, claim.rank().id(), context);
        }
        let is_ours = send.request.withdraw_with(failed(error));
        if !is_ours && is_dead {
            // It had begun to copy: nobody goes on with that.
            leave_offers(claim, send);
            // SAFETY: the receiver, which would complete it, is dead, and nobody else copies.
            unsafe { Operation::complete(send, failed(error)) };
        } else if is_ours {
            leave_offers(claim, send);
        }
    }
}

/// Why nobody communicates in a closed context: a communicator that is revoked has both of its contexts closed.
pub(crate) fn closed_error(node: &Node, context: u32) -> EngineError {
    match node.is_closed(context & !1) {
        true => EngineError::Revoked,
        false => EngineError::Failed,
    }
}

/// Forgets messages that wait for room in the ways to dead ranks.
fn drop_waiting(claim: &mut Claim<'_>) {
    let node = claim.rank().node();
    for dead in node.failed().filter_map(|peer| node.local(peer)) {
        let outbox = outbox_to(claim, dead);
        while let Some(message) = outbox.first.get() {
            outbox.first.set(message.next.get());
            outbox.waiting.set(outbox.waiting.get() - 1);
            // SAFETY: nobody else knows it.
            unsafe { message.free(claim) };
        }
    }
}

/// Whether a message may be sent now that something has changed.
///
/// # Errors
/// Why not.
#[cold]
pub(crate) fn may_send(claim: &Claim<'_>, to: Peer, envelope: &Envelope) -> Result<(), EngineError> {
    let (node, rank) = (claim.rank().node(), claim.rank().id());
    if node.is_closed(door(envelope)) {
        return Err(closed_error(node, door(envelope)));
    }
    if !node.has_failed(to) {
        return Ok(());
    }
    if is_collective(envelope) {
        close(node, rank, envelope.context);
    }
    Err(EngineError::Failed)
}

/// Whether a receive or a probe that finds nothing may still find something.
///
/// # Errors
/// Why not.
pub fn may_receive(claim: &Claim<'_>, from: Source, context: u32, tag: Tag) -> Result<(), EngineError> {
    let rank = claim.rank();
    if rank.node().failure_epoch() == 0 {
        return Ok(());
    }
    let want = Want::new(rank.node(), from, context, tag);
    error_of(verdict_of(rank.node(), rank.id(), &want)).map_or(Ok(()), Err)
}

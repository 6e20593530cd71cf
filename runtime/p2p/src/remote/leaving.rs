//! What a rank has sent and nobody has taken yet: it waits for that before it parts from those who may still take it.

use super::Remote;
use super::outbound::Outbound;
use crate::operation::Operation;
use crate::state::P2p;
use cohort_base::picture::{Fact, Told};
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use cohort_core::owner::Owner;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::wait::until_with;
use cohort_core::waits::Awaited;
use cohort_net::calls::is_gone;

/// Which messages a rank waits for: buffered ones, for which the program does not wait, and those whose request it has
/// freed, among them.
#[derive(Clone, Copy)]
pub enum Untaken<'a> {
    /// At the end of MPI: nobody could fetch a message from a process that is gone.
    ToAnybody,
    /// At the end of MPI after it has met its world, whose ranks have received what they will.
    ToOtherWorlds,
    /// Those in these contexts, whose communicator ends.
    In(&'a dyn Fn(u32) -> bool),
}

/// Waits until others have taken all such messages. Ranks that have come to their end, or have said goodbye, take
/// nothing more and are not waited for.
pub fn await_receivers(owner: Owner<'_>, which: Untaken<'_>) {
    until_with(owner, Receivers(which), |claim| owed(claim, which).is_none());
}

impl Untaken<'_> {
    /// Whether such a message to a rank of this node is waited for.
    fn has_local(self, from: &Rank, to: Peer, envelope: &Envelope) -> bool {
        match self {
            Self::In(has_context) => has_context(envelope.context),
            // Memory of the first world stays as long as the job; that of a spawned one is given back when all of it
            // have ended.
            Self::ToAnybody | Self::ToOtherWorlds => from.world().is_some() && is_beyond(from, to),
        }
    }

    /// Whether such a message to a rank of another node is waited for.
    fn has_remote(self, from: &Rank, to: Peer, envelope: &Envelope) -> bool {
        match self {
            Self::In(has_context) => has_context(envelope.context),
            Self::ToAnybody => true,
            Self::ToOtherWorlds => is_beyond(from, to),
        }
    }
}

/// Whether a peer is of another world than the rank, or of another job.
fn is_beyond(rank: &Rank, peer: Peer) -> bool {
    let node = rank.node();
    let number = node.world_rank(peer);
    rank.world().map_or(number >= node.world_size(), |world| !world.contains(number))
}

/// A message that somebody may still take from the claimed rank.
struct Owed {
    to: Peer,
    envelope: Envelope,
    bytes: u64,
}

fn owed(claim: &mut Claim<'_>, which: Untaken<'_>) -> Option<Owed> {
    owed_here(claim, which).or_else(|| owed_elsewhere(claim, which))
}

/// One for a rank of this node.
fn owed_here(claim: &mut Claim<'_>, which: Untaken<'_>) -> Option<Owed> {
    let rank = claim.rank();
    let node = rank.node();
    let to = |send: &Operation| send.want.envelope.source as LocalRank;
    let found = claim.of::<P2p>().offered.find(|send| {
        let is_over = send.request.is_complete() || node.rank(to(&send)).has_come_to_end();
        !is_over && which.has_local(rank, Peer::local(to(&send)), &send.want.envelope)
    });
    found.map(|send| Owed { to: Peer::local(to(&send)), envelope: send.want.envelope, bytes: send.buffer().bytes() })
}

/// One for a rank of another node or job.
fn owed_elsewhere(claim: &mut Claim<'_>, which: Untaken<'_>) -> Option<Owed> {
    let rank = claim.rank();
    if !rank.node().has_network() {
        return None;
    }
    let is_wanted = |claim: &mut Claim<'_>, send: RecordRef<Outbound>| {
        which.has_remote(rank, send.peer, &send.envelope.get()) && !is_gone(claim, send.peer)
    };
    let told = |send: RecordRef<Outbound>| Owed { to: send.peer, envelope: send.envelope.get(), bytes: send.bytes };
    for stage in 0..3 {
        let list = |claim: &mut Claim<'_>, after: Option<RecordRef<Outbound>>| {
            let state = claim.of::<Remote>();
            let list = [&state.offered, &state.streaming, &state.leaving][stage];
            after.map_or_else(|| list.first(), |send| list.next(send))
        };
        let mut next = list(claim, None);
        while let Some(send) = next {
            if is_wanted(claim, send) {
                return Some(told(send));
            }
            next = list(claim, Some(send));
        }
    }
    let mut next = claim.of::<Remote>().queues.first();
    while let Some(queue) = next {
        let mut sends = queue.sends.first();
        while let Some(send) = sends {
            if is_wanted(claim, send) {
                return Some(told(send));
            }
            sends = queue.sends.next(send);
        }
        next = claim.of::<Remote>().queues.next(queue);
    }
    None
}

/// Those who have not taken their messages yet; one is named.
struct Receivers<'a>(Untaken<'a>);

impl Awaited for Receivers<'_> {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let Some(Owed { to, envelope, bytes }) = owed(claim, self.0) else {
            return tell(Fact::new(Told::Outside));
        };
        tell(Fact {
            context: envelope.context,
            world: claim.rank().node().world_rank(to) as i32,
            tag: envelope.tag,
            number: bytes,
            ..Fact::new(Told::Send)
        });
    }
}

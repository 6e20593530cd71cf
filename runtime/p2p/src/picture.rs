//! What a rank's messages wait for, for whoever asks why a job hangs.
//!
//! By anybody with the claim: nothing here changes anything.

use crate::operation::{Operation, OperationKind};
use crate::protocol::Payload;
use crate::state::P2p;
use crate::want::{PARTITIONED, Shape, Want};
use cohort_base::Peer;
use cohort_base::picture::{ANY, Fact, Told};
use cohort_core::claim::Claim;
use cohort_core::node::Node;
use cohort_core::waits::Awaited;

/// Most facts of one kind about a rank.
const TOLD_MAX: usize = 16;

impl Want {
    /// As a fact.
    pub(crate) fn told(&self, told: Told) -> Fact {
        let is_open = |bit| self.shape.0 & bit != 0;
        Fact {
            context: self.envelope.context,
            member: if is_open(Shape::ANY_SOURCE.0) { ANY } else { self.envelope.source },
            tag: if is_open(Shape::ANY_TAG.0) { ANY } else { self.envelope.tag },
            ..Fact::new(told)
        }
    }
}

impl Operation {
    /// What the operation, which is not complete, waits for.
    pub(crate) fn told(&self, kind: &OperationKind, node: &Node, waits: bool) -> Fact {
        let is_unknown = self.want.envelope.context == u32::MAX;
        match kind {
            // What has met its other half is being copied by somebody.
            OperationKind::Receive if !self.is_posted.get() => Fact::new(Told::Outside),
            OperationKind::Receive => self.want.told(if waits { Told::Receive } else { Told::Posted }),
            OperationKind::Rts | OperationKind::Remote if !is_unknown && self.request.is_pending() => {
                let to = Peer::of_index(self.want.envelope.source as u32);
                Fact {
                    context: self.want.envelope.context,
                    world: node.world_rank(to) as i32,
                    tag: self.want.envelope.tag,
                    number: self.buffer().bytes(),
                    ..Fact::new(if waits { Told::Send } else { Told::Offered })
                }
            }
            OperationKind::Rts | OperationKind::Remote => Fact::new(Told::Outside),
        }
    }
}

/// A message that a rank looks for.
pub(crate) struct Probed(pub(crate) Want);

impl Awaited for Probed {
    fn tell(&self, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(self.0.told(Told::Probe));
    }
}

/// Room for a message in the ring to a peer of this node.
pub(crate) struct RoomFor(pub(crate) Peer);

impl Awaited for RoomFor {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let world = claim.rank().node().world_rank(self.0) as i32;
        tell(Fact { world, ..Fact::new(Told::Room) });
    }
}

/// Whether messages in this context are parts of partitioned ones, which the program does not know.
fn is_of_partitions(context: u32) -> bool {
    context != u32::MAX && context & PARTITIONED != 0
}

/// Tells what is in the queues of a rank, some of each.
pub fn tell_queues(claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
    let node = claim.rank().node();
    let state = claim.of::<P2p>();
    let mut left = TOLD_MAX;
    state.posted.each(|receive| {
        if !is_of_partitions(receive.want.envelope.context) {
            tell(receive.told(&OperationKind::Receive, node, false));
            left -= 1;
        }
        left > 0
    });
    let mut left = TOLD_MAX;
    state.offered.find(|send| {
        if send.request.is_pending() && !is_of_partitions(send.want.envelope.context) {
            tell(send.told(&OperationKind::Rts, node, false));
            left -= 1;
        }
        left == 0
    });
    let mut left = TOLD_MAX;
    state.unexpected.find_where(|message| {
        let payload = Payload::Stored(message);
        let envelope = payload.header().envelope();
        if is_of_partitions(envelope.context) {
            return false;
        }
        tell(Fact {
            context: envelope.context,
            member: envelope.source,
            tag: envelope.tag,
            number: payload.bytes(),
            ..Fact::new(Told::Unexpected)
        });
        left -= 1;
        left == 0
    });
}

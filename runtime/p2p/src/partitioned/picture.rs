//! What partitioned operations wait for, for whoever asks why a job hangs.
//!
//! By anybody with the claim: nothing here changes anything. Who copies a partition is awake, so when all ranks sleep
//! no partition is under way within a node.

use super::{PartitionedReceive, PartitionedSend};
use crate::want::PARTITIONED;
use cohort_base::Peer;
use cohort_base::picture::{Fact, Told};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;

/// A send of so many bytes, of which so many partitions are not ready.
pub(super) fn outgoing(claim: &Claim<'_>, to: Peer, envelope: Envelope, (number, count): (u64, u32)) -> Fact {
    let world = claim.rank().node().world_rank(to) as i32;
    let context = envelope.context & !PARTITIONED;
    Fact { context, world, tag: envelope.tag, number, count, ..Fact::new(Told::Send) }
}

/// A receive.
pub(super) fn incoming(from: Envelope) -> Fact {
    let context = from.context & !PARTITIONED;
    Fact { context, member: from.source, tag: from.tag, ..Fact::new(Told::Receive) }
}

impl PartitionedSend {
    /// Tells what a round that is not over waits for.
    pub fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let channel = self.channel();
        tell(outgoing(claim, self.to, channel.envelope, (channel.source.all().bytes(), self.marks.left())));
    }
}

impl PartitionedReceive {
    /// Tells what a round that is not over waits for.
    pub fn tell(&self, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let receiver = self.receiver();
        match receiver.introduction.is_complete() && receiver.awaits.get() {
            // The next turn opens it.
            true => tell(Fact::new(Told::Outside)),
            false => tell(incoming(receiver.from)),
        }
    }
}

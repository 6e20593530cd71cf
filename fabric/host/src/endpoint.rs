//! What the transport asks of an endpoint, an end of the network that some of the node's ranks share.

use crate::event_queue::{Delivery, Ticket};
use crate::job::Job;
use crate::packet::Way;
use crate::peers;
use cohort_fabric::{LocalRank, Packet, Refused, Region, Sent, Transfer, WorldRank};
use std::fmt::Debug;
use std::sync::Arc;

/// Which endpoint of the node one is.
#[derive(Clone, Debug)]
pub struct EndpointPlace {
    /// The job.
    pub job: Arc<Job>,
    /// World ranks of this node, in the order of their local ranks.
    pub own_ranks: Arc<[WorldRank]>,
    /// Its number on the node.
    pub index: usize,
    /// Endpoints of the node.
    pub count: usize,
}

impl EndpointPlace {
    /// The local ranks that it serves now.
    pub fn served(&self) -> impl Iterator<Item = LocalRank> + use<> {
        let all = self.index..self.job.present() as usize;
        all.step_by(self.count).map(|rank| rank as LocalRank)
    }

    /// Whether it serves a rank of the job; the local rank then.
    #[must_use]
    #[inline]
    pub fn serves(&self, rank: WorldRank) -> Option<LocalRank> {
        self.job.local(rank).filter(|&local| peers::serves(self.index, self.count, local))
    }

    /// The first rank that it serves.
    #[must_use]
    pub fn first_rank(&self) -> WorldRank {
        self.own_ranks[self.index]
    }
}

/// An endpoint. Used by one call at a time, on a seat. What comes for the ranks that it serves, and what becomes of
/// their operations, goes into the delivery of whichever call finds it.
pub trait Endpoint: Debug + Send {
    /// Its address, for other nodes.
    fn name(&self) -> &[u8];

    /// The descriptor that is readable while there are events, if there is one.
    fn wait_descriptor(&self) -> Option<i32>;

    /// Whether one may sleep on the descriptor now: false if there are events already.
    fn may_sleep(&mut self) -> bool;

    /// Makes all connections, where the transport cannot do that later. Called when the addresses are known and before
    /// the ranks start, for all endpoints of the job at once, on a thread for each.
    ///
    /// # Errors
    /// A text that says who cannot be reached.
    fn meet(&mut self, _delivery: &mut Delivery<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Sends a packet of a rank that it serves.
    ///
    /// # Errors
    /// [`Refused`].
    ///
    /// # Safety
    /// After [`Sent::Pending`] the packet's memory stays valid until the completion.
    unsafe fn send(
        &mut self,
        way: Way,
        packet: Packet<'_>,
        ticket: Ticket,
        delivery: &mut Delivery<'_>,
    ) -> Result<Sent, Refused>;

    /// Registers memory for other ranks.
    ///
    /// # Errors
    /// [`Refused::OutOfMemory`].
    ///
    /// # Safety
    /// The memory stays mapped until it is withdrawn.
    unsafe fn expose(&mut self, start: *mut u8, length: usize) -> Result<Region, Refused>;

    /// Ends the use of a region.
    fn withdraw(&mut self, region: Region);

    /// Starts a read, or a write; what becomes of it is told by the ticket, not by the transfer's own token.
    ///
    /// # Errors
    /// [`Refused`].
    ///
    /// # Safety
    /// The memory stays valid until the completion, and writable for a read.
    unsafe fn transfer(
        &mut self,
        transfer: Transfer,
        ticket: Ticket,
        delivery: &mut Delivery<'_>,
    ) -> Result<(), Refused>;

    /// Takes what has come, once.
    fn poll(&mut self, delivery: &mut Delivery<'_>);

    /// Takes leave of the endpoints that this one has exchanged packets with, and looks whether they have. True when
    /// nothing is on its way any more, either way. By the root, when no rank runs.
    fn leave(&mut self, _delivery: &mut Delivery<'_>) -> bool {
        true
    }
}

/// Reports what comes from outside of the job, the first time and then ever more rarely.
#[derive(Debug, Default)]
pub struct RejectedPackets(u64);

impl RejectedPackets {
    /// Rank `own` has refused `what`: a connection, or a packet.
    pub fn refuse(&mut self, own: WorldRank, what: std::fmt::Arguments<'_>) {
        self.0 += 1;
        if self.0.is_power_of_two() {
            cohort_base::complain!(
                "cohort: rank {own}: refused {what} that is not of this job ({} so \
                 far); another job's address is stale, or somebody scans ports",
                self.0
            );
        }
    }
}

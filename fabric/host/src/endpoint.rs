//! What the transport asks of one rank's end of the network, be it libfabric's or the kernel's sockets.

use cohort_fabric::{Budget, Event, Packet, Refused, Region, Sent, Token, Transfer, WorldRank};
use std::fmt::Debug;

/// One rank's end of the network. Used by one call at a time, on a seat.
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
    fn meet(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// [`Refused`].
    ///
    /// # Safety
    /// After [`Sent::Pending`] the packet's memory stays valid until the completion.
    unsafe fn send(
        &mut self,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
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

    /// Starts a read, or a write.
    ///
    /// # Errors
    /// [`Refused`].
    ///
    /// # Safety
    /// The memory stays valid until the completion, and writable for a read.
    unsafe fn transfer(&mut self, transfer: Transfer) -> Result<(), Refused>;

    /// Takes events as far as `budget` goes; returns how many.
    fn poll(&mut self, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> u32;
}

/// An event that was found outside of [`Endpoint::poll`].
#[derive(Clone, Copy, Debug)]
pub enum PendingEvent {
    /// A send, read or write is complete.
    Completed(Token),
    /// One has failed for good.
    Failed {
        /// The operation.
        token: Token,
        /// Why.
        code: i32,
    },
    /// A rank cannot be reached any more.
    Lost {
        /// The rank.
        rank: WorldRank,
        /// Why.
        code: i32,
    },
}

impl PendingEvent {
    /// As the engine gets it.
    #[must_use]
    #[inline]
    pub fn event(self) -> Event<'static> {
        match self {
            Self::Completed(token) => Event::Completed(token),
            Self::Failed { token, code } => Event::Failed { token, code },
            Self::Lost { rank, code } => Event::Lost { rank, code },
        }
    }
}

/// Reports what comes from outside of the job, the first time and then ever more rarely.
#[derive(Debug, Default)]
pub struct RejectedPackets(u64);

impl RejectedPackets {
    /// A packet of `length` bytes was refused by rank `own`.
    pub fn refuse(&mut self, own: WorldRank, length: usize) {
        self.0 += 1;
        if self.0.is_power_of_two() {
            eprintln!(
                "cohort: rank {own}: refused a packet of {length} bytes that is not of this job ({} so \
                 far); another job's address is stale, or somebody scans ports",
                self.0
            );
        }
    }
}

//! Connects an endpoint with all of its peers before the ranks start, where a provider cannot do it later.
//!
//! PSM2 makes a connection within the first send, and waits there until the peer has polled. A peer that
//! computes, or has left, would hold up the sender for that long, and its seat. So while no rank runs yet,
//! every endpoint sends each rank of other nodes a packet of a prefix alone, and polls until it has one of
//! each of them. Then all connections are there, both ways, and nobody waits for its polls any more.
//! Packets of ranks that run already are kept for the engine.

use super::{NO_ENTRY, OfiEndpoint};
use crate::operations::Operation;
use crate::sys;
use cohort_fabric::{Event, Packet, Refused, WorldRank};
use cohort_fabric_host::packet::Prefix;

/// A packet that came before the engine could take it: its buffer and its length.
pub(super) type Early = (*mut Operation, usize);

impl OfiEndpoint {
    /// Connects with all ranks of other nodes.
    ///
    /// # Errors
    /// A text that says which rank cannot be reached.
    pub(super) fn connect_all(&mut self) -> Result<(), String> {
        let home = |rank: &u32| self.job.homes[*rank as usize].node;
        let world = 0..self.job.ranks() as WorldRank;
        let peers: Vec<WorldRank> = world.filter(|rank| home(rank) != self.job.node).collect();
        let mut silent = peers.len();
        for &peer in &peers {
            while !self.greet(peer)? {
                silent -= self.count_greetings();
            }
        }
        while silent > 0 {
            let greeted = self.count_greetings();
            if greeted == 0 {
                std::thread::yield_now();
            }
            silent -= greeted;
        }
        Ok(())
    }

    /// Sends a greeting; false if there is no room now.
    fn greet(&mut self, peer: WorldRank) -> Result<bool, String> {
        let packet = Packet {
            header: &[],
            body: &[],
        };
        // SAFETY: it has no memory that would have to stay.
        match unsafe { self.send_packet(peer, packet, 0) } {
            Ok(_sent) => Ok(true),
            Err(Refused::Busy) => Ok(false),
            Err(refused) => Err(format!("rank {peer} cannot be reached: {refused:?}")),
        }
    }

    /// Takes a completion; says how many greetings it was.
    fn count_greetings(&mut self) -> usize {
        let mut entry = NO_ENTRY;
        let queue = self.objects.completions;
        // SAFETY: an open queue, and room for an entry of its format.
        let read = unsafe { ((*(*queue).ops).read)(queue, (&raw mut entry).cast(), 1) };
        if read == -(sys::EAVAIL as isize) {
            self.take_error();
        }
        if read != 1 {
            return 0;
        }
        let Some(receive) = self.receives.find(entry.op_context) else {
            if let Some(operation) = self.sends.find(entry.op_context) {
                self.finish(operation);
            }
            return 0;
        };
        let packet = self.receives.bytes(receive, entry.len);
        match Prefix::split(packet) {
            Some((prefix, [])) if prefix.cookie == self.job.cookie && prefix.to == self.own => {
                self.unposted.push(receive);
                self.post();
                1
            }
            _ => {
                self.early.push_back((receive, entry.len));
                0
            }
        }
    }

    /// Gives the engine a packet that came before it could take it; says whether it took one.
    #[cold]
    pub(super) fn give_early(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> u32 {
        let Some((receive, length)) = self.early.pop_front() else {
            return 0;
        };
        self.unposted.push(receive);
        u32::from(self.arrive(receive, length, sink))
    }
}

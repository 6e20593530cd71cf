//! Connects an endpoint with all of its peers before the ranks start, where a provider cannot do it later.
//!
//! PSM2 makes a connection within the first send, and waits there until the peer has polled. A peer that computes, or
//! has left, would hold up the sender for that long, and its seat. So while no rank runs yet, every endpoint sends
//! each one of other nodes a packet of a prefix alone, and polls until it has one of each of them. It says that it is
//! from and to the first ranks that the two serve. Then all connections are there, both ways, and nobody waits for
//! its polls any more. Packets of ranks that run already go into a queue.
//!
//! At the end, endpoints that have exchanged packets take leave of each other by the same empty packets, which are the
//! last of each. An end that closed earlier would lose what the other has not read: the provider that finds a
//! connection broken when it sends does not read what has come.

use super::{NO_ENTRY, OfiEndpoint, Peer};
use crate::sys;
use cohort_fabric::{Packet, Refused, Sent, WorldRank};
use cohort_fabric_host::event_queue::{Delivery, Ticket};
use cohort_fabric_host::packet::{Prefix, Way};
use std::sync::Arc;

impl OfiEndpoint {
    /// Connects with all endpoints of other nodes.
    ///
    /// # Errors
    /// A text that says which rank cannot be reached.
    pub(super) fn connect_all(&mut self, delivery: &mut Delivery<'_>) -> Result<(), String> {
        let job = Arc::clone(&self.place.job);
        let peers = job.peers().ok_or("there are no addresses")?;
        let all = 0..peers.count() as u32;
        let others = all.filter(|peer| !peers.of_node(job.node).contains(peer));
        let first = others.filter_map(|peer| job.ranks_of_peer(peer).next());
        let others: Vec<WorldRank> = first.collect();
        let mut silent = others.len();
        for &other in &others {
            while !self.greet(other, delivery)? {
                silent -= self.count_greetings(delivery);
            }
        }
        while silent > 0 {
            let greeted = self.count_greetings(delivery);
            if greeted == 0 {
                std::thread::yield_now();
            }
            silent -= greeted;
        }
        Ok(())
    }

    /// Sends a greeting; false if there is no room now.
    fn greet(&mut self, to: WorldRank, delivery: &mut Delivery<'_>) -> Result<bool, String> {
        match self.say_nothing(to, delivery) {
            Ok(_sent) => Ok(true),
            Err(Refused::Busy) => Ok(false),
            Err(refused) => Err(format!("rank {to} cannot be reached: {refused:?}")),
        }
    }

    /// Takes leave of those that are not told yet, and looks what has come; whether all have.
    pub(super) fn take_leave(&mut self, delivery: &mut Delivery<'_>) -> bool {
        let job = Arc::clone(&self.place.job);
        for peer in 0..self.peers.len() {
            let known = self.peers[peer];
            if known.is_over() || known.has_bye[0] {
                continue;
            }
            let first = job.ranks_of_peer(peer as u32).next();
            if let Some(to) = first {
                let told = self.say_nothing(to, delivery);
                self.peers[peer].has_bye[0] = told.is_ok();
            }
        }
        self.take_events(delivery);
        self.peers.iter().all(Peer::is_over)
    }

    /// Sends an empty packet.
    fn say_nothing(&mut self, to: WorldRank, delivery: &mut Delivery<'_>) -> Result<Sent, Refused> {
        let packet = Packet { header: &[], body: &[] };
        let from = self.place.first_rank();
        let ticket = Ticket { rank: 0, token: 0 };
        // SAFETY: it has no memory that would have to stay.
        unsafe { self.send_packet(Way { from, to }, packet, ticket, delivery) }
    }

    /// Takes a completion; says how many greetings it was.
    fn count_greetings(&mut self, delivery: &mut Delivery<'_>) -> usize {
        let mut entry = NO_ENTRY;
        let queue = self.objects.completions;
        // SAFETY: an open queue, and room for an entry of its format.
        let read = unsafe { ((*(*queue).ops).read)(queue, (&raw mut entry).cast(), 1) };
        if read == -(sys::EAVAIL as isize) {
            self.take_error(delivery);
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
        self.unposted.push(receive);
        let packet = self.receives.bytes(receive, entry.len);
        let is_greeting = matches!(Prefix::split(packet), Some((prefix, []))
            if prefix.cookie == self.place.job.cookie && prefix.to == self.place.first_rank());
        if !is_greeting {
            self.arrive(receive, entry.len, delivery);
        }
        self.post();
        usize::from(is_greeting)
    }
}

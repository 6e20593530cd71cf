//! Takes completions and turns them into events.

use super::OfiEndpoint;
use crate::operations::{Operation, OperationKind};
use crate::sys;
use cohort_fabric_host::event_queue::Delivery;
use cohort_fabric_host::packet::Prefix;
use cohort_fabric_host::peers::Peers;

/// Completions that are read at once.
const BATCH: usize = 16;

/// How often at most they are read within one look.
const BATCHES: usize = 4;

pub(super) const NO_ENTRY: sys::CqEntry = sys::CqEntry { op_context: std::ptr::null_mut(), flags: 0, len: 0 };

impl OfiEndpoint {
    /// Takes what has come.
    pub(super) fn take_events(&mut self, delivery: &mut Delivery<'_>) {
        if self.peers.is_empty()
            && let Some(count) = self.place.job.peers().map(Peers::count)
        {
            self.know(count);
        }
        self.notice_deaths(delivery);
        for _ in 0..BATCHES {
            if delivery.is_full() || !self.look(delivery) {
                break;
            }
        }
        self.post();
    }

    /// Reads completions; whether there may be more.
    fn look(&mut self, delivery: &mut Delivery<'_>) -> bool {
        let mut entries = [NO_ENTRY; BATCH];
        let queue = self.objects.completions;
        // SAFETY: an open queue, and room for so many entries of its format.
        let read = unsafe { ((*(*queue).ops).read)(queue, entries.as_mut_ptr().cast(), BATCH) };
        match usize::try_from(read) {
            Ok(read) => {
                for entry in &entries[..read] {
                    self.complete(entry, delivery);
                }
                read > 0
            }
            Err(_) if read == -(sys::EAVAIL as isize) => {
                self.take_error(delivery);
                true
            }
            Err(_) => false,
        }
    }

    /// Deals with a completion.
    fn complete(&mut self, entry: &sys::CqEntry, delivery: &mut Delivery<'_>) {
        if let Some(receive) = self.receives.find(entry.op_context) {
            self.unposted.push(receive);
            self.arrive(receive, entry.len, delivery);
        } else if let Some(operation) = self.sends.find(entry.op_context)
            && let (OperationKind::Ticket(ticket), _) = self.finish(operation)
        {
            delivery.completed(ticket);
        }
    }

    /// Frees an operation; says what it was, and with whom.
    pub(super) fn finish(&mut self, operation: *mut Operation) -> (OperationKind, u32) {
        // SAFETY: an operation of the pool `sends`, which libfabric has given back.
        let (kind, peer, local) = unsafe { ((*operation).kind, (*operation).peer, (*operation).local) };
        if let Some(key) = local {
            self.regions.release(key);
        }
        self.give(operation);
        (kind, peer)
    }

    /// Delivers a packet, if it is of this job and for a rank that this endpoint serves.
    pub(super) fn arrive(&mut self, receive: *mut Operation, length: usize, delivery: &mut Delivery<'_>) {
        let packet = self.receives.bytes(receive, length);
        let job = &self.place.job;
        let known = Prefix::split(packet).and_then(|(prefix, bytes)| {
            let to = self.place.serves(prefix.to)?;
            let home = job.home(prefix.from)?;
            let peer = job.peers()?.of_rank(home);
            (prefix.cookie == job.cookie).then_some((to, prefix.from, peer, bytes))
        });
        match known {
            Some((to, from, peer, bytes)) => {
                job.contacted(from);
                // None before the first look.
                if let Some(peer) = self.peers.get_mut(peer as usize) {
                    peer.is_heard = true;
                    peer.has_bye[1] |= bytes.is_empty();
                }
                if !bytes.is_empty() {
                    delivery.packet(to, from, bytes);
                }
            }
            None => self.rejected.refuse(self.place.first_rank(), format_args!("a packet of {length} bytes")),
        }
    }

    /// Takes an entry of the error queue.
    pub(super) fn take_error(&mut self, delivery: &mut Delivery<'_>) {
        // SAFETY: zeros are valid for this record of numbers and pointers.
        let mut room: sys::ErrorRoom = unsafe { std::mem::zeroed() };
        let queue = self.objects.completions;
        // SAFETY: an open queue and a record of its format.
        let read = unsafe { ((*(*queue).ops).readerr)(queue, (&raw mut room).cast(), 0) };
        if read != 1 {
            return;
        }
        let entry = room.entry;
        if let Some(receive) = self.receives.find(entry.op_context) {
            // A packet that was too long, or a connection that ended: post the buffer again.
            self.unposted.push(receive);
            return;
        }
        let Some(operation) = self.sends.find(entry.op_context) else {
            return;
        };
        let code = entry.err.abs();
        let (kind, peer) = self.finish(operation);
        if let OperationKind::Ticket(ticket) = kind {
            delivery.failed(ticket, code);
        }
        // A packet that is lost breaks the order of all later ones; a refused access does not.
        let refused_access = [libc::EACCES, libc::EINVAL, libc::EFAULT, libc::EPERM];
        if kind == OperationKind::Copied || !refused_access.contains(&code) {
            let _ = self.lose(peer, code, delivery);
        }
    }

    /// Reports nodes that the service found dead.
    fn notice_deaths(&mut self, delivery: &mut Delivery<'_>) {
        let deaths = self.place.job.deaths();
        if deaths != self.deaths_seen {
            self.deaths_seen = deaths;
            self.lose_dead_nodes(delivery);
        }
    }

    #[cold]
    fn lose_dead_nodes(&mut self, delivery: &mut Delivery<'_>) {
        let job = std::sync::Arc::clone(&self.place.job);
        let Some(peers) = job.peers() else {
            return;
        };
        for node in 0..job.nodes() as u32 {
            if let Some(code) = job.node_death(node) {
                for peer in peers.of_node(node) {
                    let _ = self.lose(peer, code, delivery);
                }
            }
        }
    }

    /// Posts receive buffers that are not.
    pub(super) fn post(&mut self) {
        while let Some(receive) = self.unposted.pop() {
            let endpoint = self.objects.endpoint;
            // SAFETY: an open endpoint; the buffer belongs to the pool and to nobody else until it comes back.
            let result = unsafe {
                ((*(*endpoint).msg).recv)(
                    endpoint,
                    (*receive).buffer.cast(),
                    self.receives.room(),
                    self.descriptors[1],
                    sys::ADDRESS_NONE,
                    receive.cast(),
                )
            };
            if result != 0 {
                self.unposted.push(receive);
                return;
            }
        }
    }
}

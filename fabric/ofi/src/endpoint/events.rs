//! Takes completions and turns them into events.

use super::OfiEndpoint;
use crate::operations::{Kind, Operation};
use crate::sys;
use cohort_fabric::{Budget, Event, WorldRank};
use cohort_fabric_host::endpoint::PendingEvent;
use cohort_fabric_host::packet::Prefix;

/// Completions that are read at once.
const BATCH: usize = 16;

pub(super) const NO_ENTRY: sys::CqEntry = sys::CqEntry {
    op_context: std::ptr::null_mut(),
    flags: 0,
    len: 0,
};

impl OfiEndpoint {
    /// Takes events as far as `budget` goes; returns how many.
    pub(super) fn take_events(&mut self, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> u32 {
        self.notice_deaths();
        if !self.early.is_empty() {
            return self.give_early(sink);
        }
        let mut given = 0;
        for _ in 0..budget.looks {
            given = self.look(budget.events, sink);
            self.post();
            if given > 0 {
                break;
            }
        }
        given
    }

    /// Takes at most `most` events of those that there are.
    fn look(&mut self, most: u32, sink: &mut dyn FnMut(Event<'_>)) -> u32 {
        let mut given = 0;
        while given < most {
            if let Some(found) = self.pending.pop_front() {
                sink(found.event());
                given += 1;
                continue;
            }
            let mut entries = [NO_ENTRY; BATCH];
            let count = BATCH.min((most - given) as usize);
            let queue = self.objects.completions;
            // SAFETY: an open queue, and room for `count` entries of its format.
            let read = unsafe { ((*(*queue).ops).read)(queue, entries.as_mut_ptr().cast(), count) };
            match usize::try_from(read) {
                Ok(0) => break,
                Ok(read) => {
                    for entry in &entries[..read] {
                        given += u32::from(self.complete(entry, sink));
                    }
                }
                Err(_) if read == -(sys::EAVAIL as isize) => self.take_error(),
                Err(_) => break,
            }
        }
        given
    }

    /// Deals with a completion; says whether it was an event.
    fn complete(&mut self, entry: &sys::CqEntry, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        if let Some(receive) = self.receives.find(entry.op_context) {
            self.unposted.push(receive);
            return self.arrive(receive, entry.len, sink);
        }
        let Some(operation) = self.sends.find(entry.op_context) else {
            return false;
        };
        match self.finish(operation) {
            (Kind::Token(token), _) => {
                sink(Event::Completed(token));
                true
            }
            _ => false,
        }
    }

    /// Frees an operation; says what it was, and with whom.
    pub(super) fn finish(&mut self, operation: *mut Operation) -> (Kind, WorldRank) {
        // SAFETY: an operation of the pool `sends`, which libfabric has given back.
        let (kind, peer, local) =
            unsafe { ((*operation).kind, (*operation).peer, (*operation).local) };
        if let Some(key) = local {
            self.regions.release(key);
        }
        self.sends.give(operation);
        (kind, peer)
    }

    /// Gives a packet to the sink, if it is of this job and for this rank.
    pub(super) fn arrive(
        &mut self,
        receive: *mut Operation,
        length: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> bool {
        let packet = self.receives.bytes(receive, length);
        let known = Prefix::split(packet).filter(|(prefix, _)| {
            prefix.cookie == self.job.cookie
                && prefix.to == self.own
                && (prefix.from as usize) < self.peers.len()
        });
        match known {
            Some((prefix, bytes)) => {
                let from = prefix.from;
                self.job.contacted(from);
                sink(Event::Packet { from, bytes });
                true
            }
            None => {
                self.rejected.refuse(self.own, length);
                false
            }
        }
    }

    /// Takes an entry of the error queue.
    pub(super) fn take_error(&mut self) {
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
        if let Kind::Token(token) = kind {
            self.pending.push_back(PendingEvent::Failed { token, code });
        }
        // A packet that is lost breaks the order of all later ones; a refused access does not.
        let refused_access = [libc::EACCES, libc::EINVAL, libc::EFAULT, libc::EPERM];
        if kind == Kind::Copied || !refused_access.contains(&code) {
            let _ = self.lose(peer, code);
        }
    }

    /// Reports ranks that the service found dead.
    fn notice_deaths(&mut self) {
        let job = std::sync::Arc::clone(&self.job);
        let deaths = job.deaths();
        if deaths == self.deaths_seen {
            return;
        }
        self.deaths_seen = deaths;
        for rank in 0..self.peers.len() {
            if let Some(code) = job.death(rank as WorldRank) {
                let _ = self.lose(rank as WorldRank, code);
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

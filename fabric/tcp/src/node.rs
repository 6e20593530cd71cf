//! What all rails of a node share.

use crate::regions::Regions;
use cohort_base::lock::FutexLock;
use cohort_fabric::{Direction, LocalRank, Packet, Transfer, WorldRank};
use cohort_fabric_host::event_queue::{Delivery, EventQueue, Ticket};
use cohort_fabric_host::handles::Handle;
use cohort_fabric_host::job::Job;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The node.
#[derive(Debug)]
pub struct Node {
    /// The job.
    pub job: Arc<Job>,
    /// The event queue of each rank that this node may have.
    pub queues: Vec<EventQueue>,
    /// Memory that other nodes may use.
    pub regions: Regions,
    /// Nodes whose loss is in everybody's queue.
    announced: FutexLock<BTreeSet<u32>>,
    /// How many these are, for who asks outside of a seat.
    announced_count: AtomicU32,
    /// Sockets of lost nodes, which the root has to close.
    buried: FutexLock<Vec<Handle>>,
}

impl Node {
    /// This node of the job, which may have so many ranks; `seed` is a random number.
    #[must_use]
    pub fn new(job: Arc<Job>, capacity: usize, seed: u32) -> Self {
        Self {
            job,
            queues: (0..capacity).map(|_| EventQueue::default()).collect(),
            regions: Regions::new(seed),
            announced: FutexLock::default(),
            announced_count: AtomicU32::new(0),
            buried: FutexLock::default(),
        }
    }

    /// The local rank that a packet is for; none if no such packet can come from `node`.
    #[must_use]
    #[inline]
    pub fn receiver(&self, node: u32, from: WorldRank, to: WorldRank) -> Option<LocalRank> {
        (self.job.home(from)?.node == node).then_some(())?;
        self.job.local(to)
    }

    /// A packet from one rank of this node to another, or to itself.
    pub fn send_within(&self, from: WorldRank, to: WorldRank, packet: Packet<'_>) {
        if let Some(to) = self.job.local(to) {
            let bytes = [packet.header, packet.body].concat();
            Delivery::to_queues(&self.queues).packet(to, from, &bytes);
        }
    }

    /// A read or a write of this node's own memory.
    ///
    /// # Safety
    /// The transfer's memory is valid, and writable for a read.
    pub unsafe fn transfer_within(&self, transfer: Transfer, ticket: Ticket, delivery: &mut Delivery<'_>) {
        let length = transfer.length as u64;
        let place = self.regions.find(transfer.region.key, transfer.offset, length);
        let Some(place) = place else {
            delivery.failed(ticket, libc::EACCES);
            return;
        };
        let place: *mut u8 = std::ptr::with_exposed_provenance_mut(place);
        // SAFETY: the caller's promise; a region stays mapped and has this part. The two may overlap.
        unsafe {
            match transfer.direction {
                Direction::Read => transfer.memory.copy_from(place, transfer.length),
                Direction::Write => place.copy_from(transfer.memory, transfer.length),
            }
        }
        delivery.completed(ticket);
    }

    /// A node is lost: nothing goes there any more, and all ranks are told.
    #[cold]
    pub fn lose(&self, node: u32, code: i32) {
        self.job.mark_node_dead(node, code);
        self.announce(node, code);
    }

    /// Tells all ranks, once.
    #[cold]
    pub fn announce(&self, node: u32, code: i32) {
        if self.announced.lock().insert(node) {
            for queue in &self.queues {
                queue.put_loss(node, code);
            }
            // Release pairs with the Acquire of `announced_deaths`: who sees the number finds the event.
            self.announced_count.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether something waits for a rank that is there.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        self.queues.iter().take(self.job.present() as usize).any(EventQueue::waits)
    }

    /// How many nodes all ranks were told of.
    #[must_use]
    pub fn announced_deaths(&self) -> u32 {
        self.announced_count.load(Ordering::Acquire)
    }

    /// Leaves a socket to the root.
    pub fn bury(&self, socket: Handle) {
        self.buried.lock().push(socket);
    }

    /// What was left to the root.
    pub fn take_buried(&self) -> Vec<Handle> {
        std::mem::take(&mut *self.buried.lock())
    }
}

//! What the policies keep for a rank and for a node.

use crate::errand::Errands;
use crate::interrupter::Interrupter;
use crate::kernel_thread::KernelThread;
use crate::mailbox::HelperMailbox;
use crate::observer::Observer;
use crate::posts::Offload;
use crate::worker::{self, DedicatedWorker};
use cohort_base::LocalRank;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use cohort_core::memory::Table;
use cohort_core::{Node, Rank};
use cohort_p2p::P2p;
use cohort_steal::park::ParkSlot;
use cohort_steal::policy::{Capabilities, DedicatedWorkers};
use core::ptr::null_mut;

/// The machinery of the policies, a subsystem of the engine.
#[derive(Debug)]
pub struct Machinery;

/// What acts for one rank. Any task may use it.
#[derive(Debug)]
pub struct Parts {
    /// The rank's own progress thread.
    thread: KernelThread,
    /// Where that thread sleeps under policies that wake it on purpose.
    sleeper: ParkSlot,
    /// Posted receives that the program left behind and the policy watches for.
    watched: AtomicU32,
    /// The dedicated workers that serve this rank, if there are any.
    ghost_number: u32,
    helper_number: u32,
    /// What this rank and its senders tell the helper; null until a policy with helpers.
    mailbox: AtomicPtr<HelperMailbox>,
    mailbox_room: *mut HelperMailbox,
    /// Null until a policy that leaves posts to dedicated workers.
    offload: AtomicPtr<Offload>,
    offload_room: *mut Offload,
    interrupter: Interrupter,
    observer: Observer,
    errands: Errands,
}

// SAFETY: the rooms are written once, by `furnish`, and published by the pointers beside them.
unsafe impl Sync for Parts {}

/// Room for what only some policies need.
#[derive(Debug)]
pub struct Tables {
    pub(crate) dedicated_workers: Table<DedicatedWorker>,
    pub(crate) workers: usize,
    pub(crate) mailboxes: Table<HelperMailbox>,
    pub(crate) offloads: Table<Offload>,
}

impl Parts {
    /// Those of a new rank.
    pub(crate) fn new(node: &Node, id: LocalRank, tables: &mut Tables) -> Self {
        Self {
            thread: KernelThread::new(),
            sleeper: ParkSlot::new(),
            watched: AtomicU32::new(0),
            ghost_number: worker::number_of(node, id, DedicatedWorkers::Ghosts),
            helper_number: worker::number_of(node, id, DedicatedWorkers::Helpers),
            mailbox: AtomicPtr::new(null_mut()),
            mailbox_room: tables.mailboxes.take(1),
            offload: AtomicPtr::new(null_mut()),
            offload_room: tables.offloads.take(1),
            interrupter: Interrupter::new(),
            observer: Observer::new(),
            errands: Errands::new(),
        }
    }
}

/// What the policies keep for a node: its dedicated workers.
#[derive(Debug)]
pub struct Workers(pub(crate) &'static [DedicatedWorker]);

/// The node's dedicated workers.
pub(crate) trait OfNode {
    /// All of them.
    fn dedicated_workers(&self) -> &'static [DedicatedWorker];
}

impl OfNode for Node {
    #[inline]
    fn dedicated_workers(&self) -> &'static [DedicatedWorker] {
        self.part::<Machinery>().0
    }
}

/// The policies' parts of a rank, as if they were its own.
pub(crate) trait OfRank {
    fn parts(&self) -> &Parts;

    /// The rank's own progress thread.
    fn thread(&self) -> &KernelThread;

    /// Where it sleeps.
    fn sleeper(&self) -> &ParkSlot;

    /// Posted receives that the program left behind and the policy watches for; written under the claim.
    fn watched(&self) -> &AtomicU32;

    /// The number of the dedicated worker of a kind that serves this rank, if there are any. It never changes.
    fn dedicated_number(&self, dedicated_workers: DedicatedWorkers) -> u32;

    /// Whether dedicated workers of this kind serve the rank.
    fn is_served_by(&self, dedicated_workers: DedicatedWorkers) -> bool;

    /// The dedicated worker of this kind that serves this rank, if the rank has one.
    fn worker_of(&self, dedicated_workers: DedicatedWorkers) -> Option<&'static DedicatedWorker>;

    /// Makes the room that these capabilities need. By a task of the rank, one at a time.
    fn furnish(&self, capabilities: Capabilities);

    /// What the rank leaves to dedicated workers to post, once a policy does so.
    fn offload(&self) -> Option<&'static Offload>;

    /// Whether there are posts that the rank left to a dedicated worker. Exact for the owner.
    fn has_posts(&self) -> bool;

    /// The rank's mailbox, once a policy with helpers has made it.
    fn mailbox(&self) -> Option<&'static HelperMailbox>;

    fn observer(&self) -> &Observer;

    fn interrupter(&self) -> &Interrupter;

    /// What threads of the runtime's own have its program's threads do.
    fn errands(&self) -> &Errands;

    /// Whether the RTS of this number from `by` is out of the ring.
    fn has_taken(&self, by: &Rank, rts: u32) -> bool;
}

impl OfRank for Rank {
    #[inline]
    fn parts(&self) -> &Parts {
        self.shared::<Machinery>()
    }

    fn thread(&self) -> &KernelThread {
        &self.parts().thread
    }

    fn sleeper(&self) -> &ParkSlot {
        &self.parts().sleeper
    }

    fn watched(&self) -> &AtomicU32 {
        &self.parts().watched
    }

    #[inline]
    fn dedicated_number(&self, dedicated_workers: DedicatedWorkers) -> u32 {
        match dedicated_workers {
            DedicatedWorkers::Ghosts => self.parts().ghost_number,
            DedicatedWorkers::None | DedicatedWorkers::Helpers => self.parts().helper_number,
        }
    }

    #[inline]
    fn is_served_by(&self, dedicated_workers: DedicatedWorkers) -> bool {
        match dedicated_workers {
            DedicatedWorkers::None => false,
            DedicatedWorkers::Ghosts => self.capabilities().has_ghost(),
            DedicatedWorkers::Helpers => self.capabilities().has_helper(),
        }
    }

    #[inline]
    fn worker_of(&self, dedicated_workers: DedicatedWorkers) -> Option<&'static DedicatedWorker> {
        if !self.is_served_by(dedicated_workers) {
            return None;
        }
        self.node().dedicated_workers().get(self.dedicated_number(dedicated_workers) as usize)
    }

    fn furnish(&self, capabilities: Capabilities) {
        let parts = self.parts();
        if capabilities.has_helper() && self.mailbox().is_none() {
            // SAFETY: the room is this rank's, lives as long as the node, and is filled once: tasks of one
            // rank do not do this at the same time.
            unsafe { parts.mailbox_room.write(HelperMailbox::new()) };
            parts.mailbox.store(parts.mailbox_room, Ordering::Release);
        }
        if capabilities.has_ghost() && self.offload().is_none() {
            // SAFETY: as above.
            unsafe { parts.offload_room.write(Offload::new()) };
            parts.offload.store(parts.offload_room, Ordering::Release);
            self.call_when_claimed();
        }
    }

    #[inline]
    fn offload(&self) -> Option<&'static Offload> {
        // SAFETY: as for mailboxes. Acquire pairs with the Release in `furnish`.
        unsafe { self.parts().offload.load(Ordering::Acquire).as_ref() }
    }

    #[inline]
    fn has_posts(&self) -> bool {
        self.offload().is_some_and(Offload::has_posts)
    }

    #[inline]
    fn mailbox(&self) -> Option<&'static HelperMailbox> {
        // SAFETY: mailboxes live as long as the node. Acquire pairs with the Release in `furnish`.
        unsafe { self.parts().mailbox.load(Ordering::Acquire).as_ref() }
    }

    fn observer(&self) -> &Observer {
        &self.parts().observer
    }

    fn interrupter(&self) -> &Interrupter {
        &self.parts().interrupter
    }

    #[inline]
    fn errands(&self) -> &Errands {
        &self.parts().errands
    }

    fn has_taken(&self, by: &Rank, rts: u32) -> bool {
        // Numbers wrap; half of their range is far more than can be under way.
        let accepted = self.shared::<P2p>().accepted_from(by.id());
        accepted.wrapping_sub(rts) as i32 >= 0
    }
}

//! The node: all ranks of one address space.

use crate::courtesy::Courtesy;
use crate::crew::{self, CrewWorker};
use crate::helper::Board;
use crate::inbox::Inbox;
use crate::net::{Link, Net};
use crate::offload::Offload;
use crate::outbox::Outbox;
use crate::peers::Peers;
use crate::rank::{Parts, Rank};
use crate::ring::Ring;
use cohort_base::boot::{CpuPlace, NodeBoot};
use cohort_base::settings::{Row, Settings, WaitMode};
use cohort_base::sync::Barriers;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_fabric::Transport;
use cohort_steal::idle::IdleSet;
use cohort_steal::policy::{Crew, ProgressPolicy, Worker, policy};
use cohort_steal::stats::Counters;
use core::ffi::CStr;
use core::fmt;
use core::ptr::{NonNull, null_mut};

/// Communicator numbers below this one are predefined.
const FIRST_CONTEXT: u32 = 2;

/// All ranks of one address space. Never unmade.
pub struct Node {
    ranks: *const Rank,
    size: u32,
    crowded: bool,
    /// Ranks that wait, counted under policies that want to know.
    waiting: AtomicU32,
    /// Ranks that have come to their end.
    done: AtomicU32,
    courtesy: Courtesy,
    crew: &'static [CrewWorker],
    barriers: Barriers,
    policy: &'static dyn ProgressPolicy,
    settings: Settings,
    boot: &'static NodeBoot,
    idle: &'static [AtomicU64],
    contexts: AtomicU32,
    peers: Peers,
    net: Option<Net>,
}

// SAFETY: `ranks` points to ranks that are shared and live for ever.
unsafe impl Sync for Node {}
// SAFETY: as above.
unsafe impl Send for Node {}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({} ranks)", self.size)
    }
}

impl Node {
    /// Makes the node that `boot` describes; `None` when memory is short. It is never unmade. A job of more
    /// than one node has a network.
    #[must_use]
    pub fn create(
        boot: &'static NodeBoot,
        settings: Settings,
        network: Option<&'static dyn Transport>,
    ) -> Option<&'static Self> {
        let size = boot.node_ranks;
        let mut memory = Memory::map(
            size,
            settings.ghosts.max(settings.helpers),
            boot.world_ranks.saturating_sub(size),
        )?;
        let policy = policy(settings.progress);
        let crew_size = settings.ghosts.max(settings.helpers);
        let crew_running = match policy.crew() {
            Crew::None => 0,
            Crew::Ghosts => settings.ghosts,
            Crew::Helpers => settings.helpers,
        };
        let crowded = match settings.wait {
            WaitMode::Auto => size + crew_running > boot.cpus,
            WaitMode::Spin => false,
            WaitMode::Park => true,
        };
        let node = memory.node;
        let ranks = memory.ranks;
        let idle = memory.idle.take(IdleSet::words(size));
        let crew = memory.crew.take(crew_size as usize);
        // SAFETY: the memory is zeroed, exclusively ours, large enough for every table and never
        // unmapped; nobody sees the node before it is complete.
        unsafe {
            node.write(Self {
                ranks: ranks.as_ptr(),
                size,
                crowded,
                waiting: AtomicU32::new(0),
                done: AtomicU32::new(0),
                courtesy: Courtesy::new(),
                crew: core::slice::from_raw_parts(crew, crew_size as usize),
                barriers: Barriers::detect(crowded),
                policy,
                settings,
                boot,
                idle: core::slice::from_raw_parts(idle, IdleSet::words(size)),
                contexts: AtomicU32::new(0),
                peers: Peers::new(boot),
                net: network.map(|transport| Net::new(transport, settings.net_eager_max)),
            });
            let node: &'static Self = node.as_ref();
            for number in 0..crew_size {
                crew.add(number as usize)
                    .write(CrewWorker::new(node, number));
            }
            for id in 0..size {
                ranks
                    .add(id as usize)
                    .write(Rank::new(memory.parts(node, id)));
            }
            Some(node)
        }
    }

    /// The rank with this index. Panics when there is none.
    #[inline]
    #[must_use]
    pub fn rank(&self, index: LocalRank) -> &'static Rank {
        assert!(index < self.size, "no such rank");
        // SAFETY: there are `size` ranks, which live for ever.
        unsafe { &*self.ranks.add(index as usize) }
    }

    /// Number of ranks.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Counts one more rank that has come to its end; the last one wakes all who wait for that.
    pub(crate) fn count_done(&self) {
        // Release: what the rank did before is seen by those who see everyone counted; acquire in
        // `all_done`.
        if self.done.fetch_add(1, Ordering::AcqRel) + 1 == self.size {
            (0..self.size).for_each(|index| {
                self.rank(index).wake();
            });
        }
    }

    /// Whether every rank of the node has come to its end.
    pub(crate) fn all_done(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.size
    }

    /// The settings in force.
    #[inline]
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The value of a setting in force, as one would type it.
    #[must_use]
    pub fn setting(&self, row: &Row) -> &'static str {
        let mut value = row.default;
        let mut next = self.boot.environment;
        // SAFETY: NULL or a list of strings that ends with NULL, which the loader keeps.
        unsafe {
            while let Some(&entry) = next.as_ref().filter(|entry| !entry.is_null()) {
                let entry = CStr::from_ptr(entry).to_str().unwrap_or_default();
                if let Some((name, given)) = entry.split_once('=')
                    && name == row.name
                {
                    value = given;
                }
                next = next.add(1);
            }
        }
        value
    }

    /// What the loader said about this node.
    #[must_use]
    pub fn boot(&self) -> &'static NodeBoot {
        self.boot
    }

    /// A number that no communicator of the job has had: it owns contexts `2n` and `2n + 1`.
    /// Number 0 is that of `MPI_COMM_WORLD`, 1 that of the runtime's own messages.
    ///
    /// Nodes draw from interleaved sequences, so that they need not agree.
    pub fn next_context(&self) -> u32 {
        let drawn = self.contexts.fetch_add(1, Ordering::Relaxed);
        FIRST_CONTEXT + drawn * self.boot.nodes.max(1) + self.boot.node
    }

    /// The index of a peer that is a rank of this node.
    #[inline]
    #[must_use]
    pub fn local(&self, peer: Peer) -> Option<LocalRank> {
        (peer.index() < self.size).then_some(peer.index())
    }

    /// The peer with this rank in `MPI_COMM_WORLD`. Panics when there is none.
    #[must_use]
    pub fn peer(&self, world: WorldRank) -> Peer {
        self.peers.of_world(world)
    }

    /// A peer's rank in `MPI_COMM_WORLD`. Panics when there is none.
    #[must_use]
    pub fn world_rank(&self, peer: Peer) -> WorldRank {
        self.peers.world_rank(peer)
    }

    /// The index in the job of the node that a peer lives on.
    #[must_use]
    pub fn home_node(&self, peer: Peer) -> u32 {
        self.peers.home_node(peer)
    }

    /// The network, if the job has more than one node.
    #[inline]
    pub(crate) fn net(&self) -> Option<&Net> {
        self.net.as_ref()
    }

    /// Ranks of the job.
    #[must_use]
    pub fn world_size(&self) -> u32 {
        self.boot.world_ranks
    }

    /// Whether ranks outnumber CPUs, so that waiting ranks sleep soon.
    #[inline]
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// When the ranks of the node give their CPUs away.
    pub(crate) fn courtesy(&self) -> &Courtesy {
        &self.courtesy
    }

    #[inline]
    pub(crate) fn barriers(&self) -> Barriers {
        self.barriers
    }

    #[inline]
    pub(crate) fn policy(&self) -> &'static dyn ProgressPolicy {
        self.policy
    }

    pub(crate) fn idle(&self) -> IdleSet<'static> {
        IdleSet::new(self.idle)
    }

    /// The CPUs of the job.
    pub(crate) fn places(&self) -> &'static [CpuPlace] {
        if self.boot.places.is_null() {
            return &[];
        }
        // SAFETY: the loader's record holds this many places.
        unsafe { core::slice::from_raw_parts(self.boot.places, self.boot.places_len as usize) }
    }

    /// Wakes one sleeping worker, preferably near `near`; says whether there was one.
    pub(crate) fn wake_worker(&self, near: LocalRank) -> bool {
        if let Some(ghost) = self.rank(near).worker_of(Crew::Ghosts) {
            return ghost.wake();
        }
        let Some(worker) = self.idle().pick(near) else {
            return false;
        };
        self.rank(worker).wake();
        true
    }

    /// The dedicated workers.
    #[inline]
    pub(crate) fn crew(&self) -> &'static [CrewWorker] {
        self.crew
    }

    /// Which of the dedicated workers of a kind serves a rank.
    pub(crate) fn crew_number_for(&self, rank: LocalRank, crew: Crew) -> u32 {
        let workers = match crew {
            Crew::Ghosts => self.settings.ghosts,
            Crew::None | Crew::Helpers => self.settings.helpers,
        };
        let placement = self.settings.crew_placement;
        crew::number_for(rank, self.size, workers, placement, |id| self.numa_of(id))
    }

    /// The CPU that a rank is bound to, or -1.
    fn cpu_of(&self, rank: LocalRank) -> i32 {
        assert!(rank < self.size, "no such rank");
        // SAFETY: the loader's record has one entry per rank.
        unsafe { (*self.boot.ranks.add(rank as usize)).cpu }
    }

    /// The NUMA node that a rank is bound to; 0 for one that is not bound.
    pub(crate) fn numa_of(&self, rank: LocalRank) -> u32 {
        let cpu = self.cpu_of(rank);
        let is_its_place = |place: &&CpuPlace| i64::from(place.cpu) == i64::from(cpu);
        self.places()
            .iter()
            .find(is_its_place)
            .map_or(0, |place| place.numa)
    }

    /// Whether a rank is bound to this CPU.
    pub(crate) fn has_rank_on(&self, place: &CpuPlace) -> bool {
        (0..self.size).any(|rank| i64::from(self.cpu_of(rank)) == i64::from(place.cpu))
    }

    /// Ranks that wait, as far as their policies want them counted.
    pub(crate) fn waiting(&self) -> &AtomicU32 {
        &self.waiting
    }

    /// Whether timers and dedicated workers rest now, because a rank waits and steals.
    #[inline]
    pub(crate) fn rests(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }
}

/// The one mapping that holds a node and its ranks. The kernel's pages are zero, and those that
/// nobody touches cost nothing, so the quadratic tables are only address space.
struct Memory {
    node: NonNull<Node>,
    ranks: NonNull<Rank>,
    idle: Table<AtomicU64>,
    rings: Table<AtomicPtr<Ring>>,
    senders: Table<AtomicU32>,
    outboxes: Table<Outbox>,
    victims: Table<LocalRank>,
    workers: Table<Worker<'static>>,
    hits: Table<AtomicU64>,
    links: Table<*mut Link>,
    crew: Table<CrewWorker>,
    boards: Table<Board>,
    offloads: Table<Offload>,
    accepted: Table<AtomicU32>,
    /// Ranks of other nodes.
    remotes: u32,
}

/// A part of the mapping, dealt out from its beginning.
struct Table<T> {
    next: *mut T,
    left: usize,
}

impl<T> Table<T> {
    fn take(&mut self, count: usize) -> *mut T {
        assert!(count <= self.left, "a table of the node is too short");
        let start = self.next;
        self.left -= count;
        // SAFETY: `count` elements are left.
        self.next = unsafe { start.add(count) };
        start
    }
}

/// Lays parts out one behind the other; a first pass, over no memory, measures.
struct Cursor {
    base: *mut u8,
    offset: usize,
}

impl Cursor {
    fn table<T>(&mut self, count: usize) -> Table<T> {
        self.offset = self.offset.next_multiple_of(align_of::<T>().max(64));
        let next = self.base.wrapping_add(self.offset).cast::<T>();
        self.offset += count * size_of::<T>();
        Table { next, left: count }
    }
}

impl Memory {
    fn map(size: u32, workers: u32, remotes: u32) -> Option<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let mut measure = Cursor {
            base: core::ptr::without_provenance_mut(4096),
            offset: 0,
        };
        Self::lay_out(&mut measure, size, workers, remotes);
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap_anonymous(
                null_mut(),
                measure.offset.next_multiple_of(4096),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let mut cursor = Cursor {
            base: base.ok()?.cast(),
            offset: 0,
        };
        Self::lay_out(&mut cursor, size, workers, remotes)
    }

    fn lay_out(cursor: &mut Cursor, size: u32, workers: u32, remotes: u32) -> Option<Self> {
        let count = size as usize;
        let node = cursor.table::<Node>(1).next;
        let ranks = cursor.table::<Rank>(count).next;
        let idle = cursor.table(IdleSet::words(size));
        Some(Self {
            idle,
            rings: cursor.table(count * count),
            senders: cursor.table(count * count),
            outboxes: cursor.table(count * count),
            victims: cursor.table(count * count),
            workers: cursor.table(count),
            hits: cursor.table(count * count),
            links: cursor.table(count * remotes as usize),
            crew: cursor.table(workers as usize),
            boards: cursor.table(count),
            offloads: cursor.table(count),
            accepted: cursor.table(count * count),
            remotes,
            node: NonNull::new(node)?,
            ranks: NonNull::new(ranks)?,
        })
    }

    /// The parts of the next rank.
    ///
    /// # Safety
    /// The mapping is real, and `id` counts from 0.
    unsafe fn parts(&mut self, node: &'static Node, id: LocalRank) -> Parts {
        let count = node.size as usize;
        // SAFETY: the tables are zeroed, and dealt out to one rank each; the loader's record has
        // one entry per rank.
        unsafe {
            Parts {
                id,
                node,
                boot: &*node.boot.ranks.add(id as usize),
                inbox: Inbox::new(self.rings.take(count), self.senders.take(count), node.size),
                outboxes: self.outboxes.take(count),
                links: self.links.take(self.remotes as usize),
                victims: self.victims.take(count),
                worker_room: self.workers.take(1),
                counters: Counters::new(core::slice::from_raw_parts(self.hits.take(count), count)),
                board_room: self.boards.take(1),
                offload_room: self.offloads.take(1),
                accepted: self.accepted.take(count),
            }
        }
    }
}

#[cfg(any(test, feature = "testing"))]
mod testing;

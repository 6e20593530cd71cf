//! The node: all ranks of one address space.

pub use super::Node;
use super::failures::{self, Failures};
use super::links::Links;
use super::{FirstWorld, Rank, hooks, rank};
use crate::memory::{Cursor, Plan, Room, SLOTS, Table};
pub use crate::peers::Identity;
use crate::peers::{self, Peers};
use crate::yield_policy::YieldPolicy;
use cohort_base::boot::{CpuLocation, NodeBoot};
use cohort_base::clock;
use cohort_base::settings::{Row, Settings, WaitMode};
use cohort_base::spawn::ROOM;
use cohort_base::sync::Barriers;
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_bridge::Bridge;
use cohort_fabric::Transport;
use cohort_steal::idle::IdleSet;
use cohort_steal::policy::{DedicatedWorkers, policy};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::ptr::NonNull;

/// Communicator numbers below this one are predefined.
const FIRST_CONTEXT: u32 = 2;

/// Numbers of communicators of one job are below this one, those with members in several jobs from there on.
const CONTEXTS_END: u32 = cohort_base::spawn::SHARED_NUMBERS;

/// Threads of a launcher that move what travels between two jobs.
const CARRIERS: u32 = 2;

/// Messages of fewer bytes are eager; nobody's are that somebody follows.
fn eager_below(settings: &Settings, is_followed: bool) -> u64 {
    match is_followed {
        true => 0,
        false => settings.eager_max as u64 + 1,
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
        // Now, before any thief or handler asks.
        clock::measure();
        let size = boot.node_ranks;
        let workers = settings.ghosts.max(settings.helpers);
        let running = match policy(settings.progress).capabilities().dedicated_workers() {
            DedicatedWorkers::None => 0,
            DedicatedWorkers::Ghosts => settings.ghosts,
            DedicatedWorkers::Helpers => settings.helpers,
        };
        let crowded = match settings.wait {
            WaitMode::Auto => size + running > boot.cpus,
            WaitMode::Spin => false,
            WaitMode::Park => true,
        };
        let capacity = boot.capacity.max(size);
        let plan = Plan { ranks: capacity as usize, workers: workers as usize };
        let mut measured = Cursor::measuring();
        Memory::lay_out(&mut measured, boot, settings.survives)?;
        hooks::measure(&mut measured, &plan);
        let mut cursor = Cursor::over_fresh(&measured)?;
        let mut memory = Memory::lay_out(&mut cursor, boot, settings.survives)?;
        let entries = Peers::entries(boot);
        let peers = memory.peers.take(entries);
        let idle = memory.idle.take(IdleSet::words(capacity));
        // SAFETY: the memory is zeroed, exclusively ours, large enough for every table and never
        // unmapped; nobody sees the node before it is complete.
        unsafe {
            memory.node.write(Self {
                ranks: memory.ranks.as_ptr(),
                size: AtomicU32::new(size),
                first_world: FirstWorld::default(),
                crowded: AtomicBool::new(crowded),
                waiting: AtomicU32::new(0),
                done: AtomicU32::new(0),
                followers: AtomicU32::new(u32::from(settings.trace)),
                eager_below: AtomicU64::new(eager_below(&settings, settings.trace)),
                yield_policy: YieldPolicy::default(),
                barriers: Barriers::detect(crowded),
                settings,
                boot,
                idle: core::slice::from_raw_parts(idle, IdleSet::words(capacity)),
                contexts: AtomicU32::new(capacity),
                peers: Peers::new(boot, core::slice::from_raw_parts_mut(peers, entries)),
                network,
                bridge: AtomicPtr::new(core::ptr::null_mut()),
                has_network: AtomicBool::new(network.is_some()),
                at_ports: AtomicU32::new(0),
                links: Links::new(boot, |count| core::slice::from_raw_parts(memory.links.take(count), count)),
                failures: memory.failures.failures(),
                rest: UnsafeCell::new(None),
                rooms: [const { Room::empty() }; SLOTS],
            });
            let node: &'static Self = memory.node.as_ref();
            for id in 0..size {
                let rank = Rank::new(node, id, &mut memory.tables);
                memory.ranks.add(id as usize).write(rank);
            }
            hooks::furnish(&mut cursor, &plan, node);
            for id in 0..size {
                hooks::furnish_rank(node, node.rank(id));
            }
            *node.rest.get() = Some(Rest { ranks: memory.ranks, tables: memory.tables });
            Some(node)
        }
    }

    #[inline]
    pub(crate) fn room(&self, slot: usize) -> &Room {
        &self.rooms[slot]
    }

    #[inline]
    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The rank with this index. Panics when there is none.
    #[inline]
    #[must_use]
    pub fn rank(&self, index: LocalRank) -> &'static Rank {
        assert!(index < self.size(), "no such rank");
        // SAFETY: there are `size` ranks, which live for ever.
        unsafe { &*self.ranks.add(index as usize) }
    }

    /// Number of ranks. It grows: a rank below it is complete.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        // Acquire pairs with the Release in `add`.
        self.size.load(Ordering::Acquire)
    }

    /// How many ranks there may be in all.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.boot.capacity.max(self.boot.node_ranks)
    }

    /// Adds so many ranks from this index on: the next ones, or ones in the places of others that were
    /// [renewed](Node::renew). The loader's records of them are complete.
    ///
    /// # Safety
    /// One task at a time. Panics if there is no room.
    pub unsafe fn add(&'static self, first: LocalRank, count: u32) {
        let ranks = first + count;
        if ranks <= self.size() {
            return (first..ranks).for_each(|id| self.rank(id).rejoin(&self.done));
        }
        assert!(ranks <= self.capacity(), "no room for so many ranks");
        // SAFETY: the caller's promise: nobody else uses it.
        let Some(rest) = (unsafe { &mut *self.rest.get() }) else {
            return;
        };
        for id in self.size()..ranks {
            // SAFETY: tables and records have an entry for each rank up to the capacity, and ids count up; the rank is
            // seen by others when the size has grown.
            unsafe {
                let rank = rest.ranks.add(id as usize);
                rank.write(Rank::new(self, id, &mut rest.tables));
                hooks::furnish_rank(self, rank.as_ref());
            }
        }
        let is_crowded = self.settings.wait == WaitMode::Auto && ranks > self.boot.cpus;
        if is_crowded {
            self.crowded.store(true, Ordering::Relaxed);
        }
        if let Some(network) = self.network {
            network.grow(ranks);
        }
        self.size.store(ranks, Ordering::Release);
        // They look at more victims from now on.
        (0..ranks).for_each(|id| self.rank(id).forget_worker());
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
        self.variable(row.name).unwrap_or(row.default)
    }

    /// The value of a variable of the environment in which the job was started.
    #[must_use]
    pub fn variable(&self, wanted: &str) -> Option<&'static str> {
        let mut value = None;
        let mut next = self.boot.environment;
        // SAFETY: NULL or a list of strings that ends with NULL, which the loader keeps.
        unsafe {
            while let Some(&entry) = next.as_ref().filter(|entry| !entry.is_null()) {
                let entry = CStr::from_ptr(entry).to_str().unwrap_or_default();
                if let Some((name, given)) = entry.split_once('=')
                    && name == wanted
                {
                    value = Some(given);
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

    /// A number that no communicator of the job has had: it owns contexts `2n` and `2n + 1`. Number 0 is that
    /// of `MPI_COMM_WORLD`, 1 that of the runtime's own messages. `None` when this node has drawn all of its
    /// [`Node::contexts`].
    ///
    /// Nodes draw from interleaved sequences, so that they need not agree.
    #[must_use]
    pub fn next_context(&self) -> Option<u32> {
        let end = self.contexts();
        let one_more = |drawn| (drawn < end).then_some(drawn + 1);
        // Relaxed: nothing else is told by it.
        let drawn = self.contexts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        Some(self.context(drawn.ok()?))
    }

    /// The number of the communicator of one rank alone, `MPI_COMM_SELF`: the first numbers of the node's sequence,
    /// which [`Node::next_context`] leaves out.
    #[must_use]
    pub fn context_of_self(&self, rank: LocalRank) -> u32 {
        self.context(rank)
    }

    /// How many numbers of communicators a node has, with those of [`Node::context_of_self`].
    #[must_use]
    pub fn contexts(&self) -> u32 {
        (CONTEXTS_END - FIRST_CONTEXT - self.boot.node) / self.boot.nodes.max(1)
    }

    fn context(&self, drawn: u32) -> u32 {
        FIRST_CONTEXT + drawn * self.boot.nodes.max(1) + self.boot.node
    }

    /// The index of a peer that is a rank of this node.
    #[inline]
    #[must_use]
    pub fn local(&self, peer: Peer) -> Option<LocalRank> {
        (peer.index() < self.size()).then_some(peer.index())
    }

    /// Whether there may be a rank of this number in the job, or in one that it is connected with.
    #[must_use]
    pub fn has_number(&self, rank: WorldRank) -> bool {
        self.peers.has(rank) || self.bridge().is_some_and(|bridge| bridge.line_of(rank).is_some())
    }

    /// The peer with this number in the job: a rank in the `MPI_COMM_WORLD` that the job began with, or of a rank that
    /// is [spawned](cohort_base::spawn::number_of). Panics when there is none.
    #[must_use]
    pub fn peer(&self, world: WorldRank) -> Peer {
        self.peers.of_world(world)
    }

    /// A peer's number in the job. Panics when there is none.
    #[must_use]
    pub fn world_rank(&self, peer: Peer) -> WorldRank {
        self.peers.world_rank(peer)
    }

    /// The index in the job of the node that a peer lives on; those of other jobs follow, as this node counts them.
    #[must_use]
    pub fn home_node(&self, peer: Peer) -> u32 {
        match self.bridge().filter(|_| self.is_foreign(peer)) {
            None => self.peers.home_node(peer),
            Some(bridge) => {
                let line = bridge.index_of(self.world_rank(peer)).unwrap_or(0);
                self.boot.nodes.max(1) + line as u32
            }
        }
    }

    /// How many nodes there are, with those of other jobs that this one was ever connected with.
    #[must_use]
    pub fn home_nodes(&self) -> u32 {
        let others = self.bridge().map_or(0, |bridge| bridge.lines().count() as u32);
        self.boot.nodes.max(1) + others
    }

    /// What a peer is known as in all jobs; the number of the own one is told by whoever has it.
    #[must_use]
    pub fn identity(&self, peer: Peer) -> Identity {
        let number = self.world_rank(peer);
        if let Some(line) = self.bridge().and_then(|bridge| bridge.line_of(number)) {
            return Identity { job: line.job, node: line.node, index: number - line.first };
        }
        let job = self.bridge().map_or(self.boot.job, |bridge| bridge.own.0);
        let (node, index) = self.peers.location(self.boot, peer);
        Identity { job, node, index }
    }

    /// The peer with this place in another job that the node is connected with.
    #[must_use]
    pub fn foreign_peer(&self, identity: Identity) -> Option<Peer> {
        let line = self.bridge()?.line_to(identity.job, identity.node)?;
        (identity.index < line.ranks).then(|| self.peer(line.first + identity.index))
    }

    /// Whether one process comes before another one in an order that all who are connected with both agree on, also
    /// those of other jobs, who do not know the ranks in `MPI_COMM_WORLD` of these.
    #[must_use]
    pub fn comes_first(&self, one: Peer, other: Peer) -> bool {
        self.identity(one) < self.identity(other)
    }

    /// Whether somewhere in the job ranks of several nodes outnumber the CPUs that they share, so that each message
    /// costs all of them. The same at all nodes.
    #[inline]
    #[must_use]
    pub fn job_shares_cpus(&self) -> bool {
        self.boot.shares_cpus != 0
    }

    /// Whether a peer is a process of another job.
    #[inline]
    #[must_use]
    pub fn is_foreign(&self, peer: Peer) -> bool {
        self.bridge().is_some() && self.world_rank(peer) >= self.first_foreign()
    }

    /// The first number of processes of other jobs.
    #[must_use]
    pub fn first_foreign(&self) -> WorldRank {
        self.boot.world_ranks + self.boot.nodes.max(1) * ROOM
    }

    /// What joins the node with other jobs, once something does.
    #[inline]
    #[must_use]
    pub fn bridge(&self) -> Option<&'static Bridge> {
        // SAFETY: null, or a bridge that stays.
        unsafe { self.bridge.load(Ordering::Acquire).as_ref() }
    }

    /// The node is joined with other jobs from now on. What carries packets is ready for it. Once.
    pub fn open_bridge(&self, bridge: &'static Bridge) {
        self.bridge.store(core::ptr::from_ref(bridge).cast_mut(), Ordering::Release);
        // The launcher's threads need a CPU now and then.
        if self.settings.wait == WaitMode::Auto && self.size() + CARRIERS > self.boot.cpus {
            self.crowded.store(true, Ordering::Relaxed);
        }
        self.has_network.store(true, Ordering::Release);
    }

    /// One more rank waits at a port, or one less.
    pub(crate) fn wait_at_port(&self, more: bool) {
        match more {
            true => self.at_ports.fetch_add(1, Ordering::Relaxed),
            false => self.at_ports.fetch_sub(1, Ordering::Relaxed),
        };
    }

    /// Whether somebody of another job may wake ranks that all sleep: a rank waits at a port that others may know.
    pub(crate) fn awaits_others(&self) -> bool {
        self.at_ports.load(Ordering::Relaxed) > 0 && self.bridge().is_some()
    }

    /// The network, if the job has more than one node.
    #[inline]
    #[must_use]
    pub fn network(&self) -> Option<&'static dyn Transport> {
        self.network
    }

    /// Whether there is anybody to be reached beyond the node: the job has several, or is joined with others.
    #[inline]
    #[must_use]
    pub fn has_network(&self) -> bool {
        self.has_network.load(Ordering::Acquire)
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
        self.crowded.load(Ordering::Relaxed)
    }

    /// Whether a message of so many bytes is sent in the shortest way.
    #[inline]
    #[must_use]
    pub fn is_eager(&self, bytes: u64) -> bool {
        // Relaxed: each message for itself is followed, or not.
        bytes < self.eager_below.load(Ordering::Relaxed)
    }

    /// Whether somebody wants to see the ends of messages.
    #[must_use]
    pub fn follows_messages(&self) -> bool {
        self.followers.load(Ordering::Relaxed) != 0
    }

    /// One more wants to see the ends of messages, or one less. Messages that are under way are seen, or not.
    pub fn follow_messages(&self, on: bool) {
        match on {
            true => self.followers.fetch_add(1, Ordering::SeqCst),
            false => self.followers.fetch_sub(1, Ordering::SeqCst),
        };
        // Whoever stores last has looked at the count after that, so what it stored belongs to the last count.
        loop {
            let is_followed = self.followers.load(Ordering::SeqCst) != 0;
            let below = eager_below(&self.settings, is_followed);
            self.eager_below.store(below, Ordering::SeqCst);
            if (self.followers.load(Ordering::SeqCst) != 0) == is_followed {
                return;
            }
        }
    }

    /// When the ranks of the node give their CPUs away.
    pub fn yield_policy(&self) -> &YieldPolicy {
        &self.yield_policy
    }

    /// How its tasks order stores and loads.
    #[inline]
    #[must_use]
    pub fn barriers(&self) -> Barriers {
        self.barriers
    }

    pub(crate) fn idle(&self) -> IdleSet<'static> {
        // Those of ranks that are not there yet would be looked at for nothing.
        IdleSet::new(self.idle.get(..IdleSet::words(self.size())).unwrap_or(self.idle))
    }

    /// The CPUs of the job.
    pub fn places(&self) -> &'static [CpuLocation] {
        if self.boot.places.is_null() {
            return &[];
        }
        // SAFETY: the loader's record holds this many places.
        unsafe { core::slice::from_raw_parts(self.boot.places, self.boot.places_len as usize) }
    }

    /// Wakes one sleeping worker, preferably near `near`; says whether there was one.
    pub fn wake_worker(&self, near: LocalRank) -> bool {
        if self.rank(near).capabilities().has_ghost()
            && let Some(woken) = hooks::wake_dedicated(self.rank(near))
        {
            return woken;
        }
        let Some(worker) = self.idle().pick(near) else {
            return false;
        };
        self.rank(worker).wake();
        true
    }

    /// The CPU that a rank is bound to, or -1.
    fn cpu_of(&self, rank: LocalRank) -> i32 {
        assert!(rank < self.size(), "no such rank");
        // SAFETY: the loader's record has one entry per rank.
        unsafe { (*self.boot.ranks.add(rank as usize)).cpu }
    }

    /// The NUMA node that a rank is bound to; 0 for one that is not bound.
    pub fn numa_of(&self, rank: LocalRank) -> u32 {
        let cpu = self.cpu_of(rank);
        let is_its_place = |place: &&CpuLocation| i64::from(place.cpu) == i64::from(cpu);
        self.places().iter().find(is_its_place).map_or(0, |place| place.numa)
    }

    /// Whether a rank is bound to this CPU.
    pub fn has_rank_on(&self, place: &CpuLocation) -> bool {
        (0..self.size()).any(|rank| i64::from(self.cpu_of(rank)) == i64::from(place.cpu))
    }

    /// Ranks that wait, as far as their policies want them counted.
    pub fn waiting(&self) -> &AtomicU32 {
        &self.waiting
    }

    /// Whether timers and dedicated workers rest now, because a rank waits and steals.
    #[inline]
    pub fn rests(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }
}

/// What further ranks are made from.
pub(super) struct Rest {
    ranks: NonNull<Rank>,
    tables: rank::Tables,
}

/// The core's tables.
struct Memory {
    node: NonNull<Node>,
    ranks: NonNull<Rank>,
    idle: Table<AtomicU64>,
    links: Table<AtomicU32>,
    peers: Table<peers::Entry>,
    tables: rank::Tables,
    failures: failures::Tables,
}

impl Memory {
    fn lay_out(cursor: &mut Cursor, boot: &NodeBoot, survives: bool) -> Option<Self> {
        let size = boot.capacity.max(boot.node_ranks);
        let count = size as usize;
        Some(Self {
            node: NonNull::new(cursor.table::<Node>(1).take(1))?,
            ranks: NonNull::new(cursor.table::<Rank>(count).take(count))?,
            idle: cursor.table(IdleSet::words(size)),
            links: cursor.table(Links::entries(boot)),
            peers: cursor.table(Peers::entries(boot)),
            tables: rank::Tables::lay_out(cursor, count),
            failures: failures::Tables::lay_out(cursor, boot, survives),
        })
    }
}

#[cfg(any(test, feature = "testing"))]
mod testing;

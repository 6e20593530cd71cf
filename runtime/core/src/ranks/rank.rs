//! One rank of the node.

pub use super::Rank;
use super::spare::Spare;
use super::waits::Waits;
use super::{Claim, Node, State, Thieving, hooks};
use crate::cpu::Cpu;
use crate::event_count::EventCount;
use crate::memory::{Cursor, Room, SLOTS, Table};
use crate::policies::Policies;
use crate::threads::Threads;
use crate::work::Need;
use cohort_alloc::Heap;
use cohort_base::boot::{CpuLocation, RankBoot};
use cohort_base::settings::Progress;
use cohort_base::spawn::WorldBoot;
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
use cohort_base::trace::{Event, EventKind, Ring};
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_steal::avail::Availability;
use cohort_steal::claim::ClaimWord;
use cohort_steal::idle::Sleepers;
use cohort_steal::park::ParkSlot;
use cohort_steal::policy::{Capabilities, Policy, Worker, policy};
use cohort_steal::stats::Counters;
pub use cohort_steal::stats::Snapshot as StealCounts;
use cohort_steal::victim;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::fmt;
use core::ptr::null_mut;
use core::time::Duration;

/// The core's tables of ranks.
pub(crate) struct Tables {
    victims: Table<LocalRank>,
    workers: Table<Worker<'static>>,
    hits: Table<AtomicU64>,
}

impl Tables {
    pub fn lay_out(cursor: &mut Cursor, ranks: usize) -> Self {
        Self { victims: cursor.table(ranks * ranks), workers: cursor.table(ranks), hits: cursor.table(ranks * ranks) }
    }
}

/// A rank in words: by its number in `MPI_COMM_WORLD`, and which world that is if it was spawned.
#[derive(Debug)]
pub struct Name<'a>(&'a Rank);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "rank {}", self.0.world_rank())?;
        match self.0.world() {
            Some(world) => write!(formatter, " of spawned world {}", world.number),
            None => Ok(()),
        }
    }
}

impl Rank {
    /// A rank without rooms.
    ///
    /// # Safety
    /// The tables are real, and `id` counts from 0; the loader's record has an entry for it.
    pub(crate) unsafe fn new(node: &'static Node, id: LocalRank, tables: &mut Tables) -> Self {
        let count = node.capacity() as usize;
        // SAFETY: the caller's promise; the tables are zeroed, and dealt out to one rank each.
        let (boot, hits) = unsafe {
            let hits = core::slice::from_raw_parts(tables.hits.take(count), count);
            (&*node.boot().ranks.add(id as usize), hits)
        };
        Self {
            word: ClaimWord::new(node.barriers()),
            park: ParkSlot::new(),
            expected: Availability::new(),
            id,
            threads: Threads::default(),
            is_called_when_claimed: AtomicBool::new(false),
            is_done: AtomicBool::new(false),
            node,
            pending_events: EventCount::default(),
            boot,
            local: AtomicPtr::new(null_mut()),
            waits: Waits::default(),
            thieving: Thieving {
                worker: AtomicPtr::new(null_mut()),
                last: AtomicPtr::new(null_mut()),
                worker_room: tables.workers.take(1),
                victims: tables.victims.take(count),
            },
            counters: Counters::new(hits),
            last_fruitless: AtomicU64::new(0),
            spare: Spare::default(),
            sleepers: Sleepers::default(),
            policies: Policies::new(node.settings().progress),
            cpu: Cpu::default(),
            trace: AtomicPtr::new(boot.trace.cast_mut()),
            heap: Heap::new(),
            state: UnsafeCell::new(State::new()),
            rooms: [const { Room::empty() }; SLOTS],
        }
    }

    #[inline]
    pub(crate) fn room(&self, slot: usize) -> &Room {
        &self.rooms[slot]
    }

    /// Where events of the rank are noted, if somebody wants a timeline.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Option<&'static Ring> {
        // SAFETY: NULL, or a ring that stays; Acquire pairs with the Release of `note_events`.
        unsafe { self.trace.load(Ordering::Acquire).as_ref() }
    }

    /// Has the rank's events noted from now on, or no more.
    pub fn note_events(&self, ring: Option<&'static Ring>) {
        let ring = ring.map_or(core::ptr::null(), core::ptr::from_ref);
        self.trace.store(ring.cast_mut(), Ordering::Release);
    }

    /// Index on the node.
    #[inline]
    #[must_use]
    pub fn id(&self) -> LocalRank {
        self.id
    }

    /// The rank as its own node numbers it.
    #[inline]
    #[must_use]
    pub fn peer(&self) -> Peer {
        Peer::local(self.id)
    }

    /// Rank in `MPI_COMM_WORLD`.
    #[must_use]
    pub fn world_rank(&self) -> WorldRank {
        self.boot.world_rank
    }

    /// What messages to users call it.
    #[must_use]
    pub fn name(&self) -> Name<'_> {
        Name(self)
    }

    /// The world that the rank was spawned into; `None` for one that the job began with.
    #[must_use]
    pub fn world(&self) -> Option<&'static WorldBoot> {
        // SAFETY: NULL, or a record that is never freed.
        unsafe { self.boot.world.as_ref() }
    }

    /// The node.
    #[inline]
    #[must_use]
    pub fn node(&self) -> &'static Node {
        self.node
    }

    /// The loader's record of this rank.
    #[must_use]
    pub fn boot(&self) -> &'static RankBoot {
        self.boot
    }

    /// The CPU that the rank is bound to, if it is bound and the loader knows the machine.
    #[must_use]
    pub fn place(&self) -> Option<CpuLocation> {
        let cpu = u32::try_from(self.boot().cpu).ok()?;
        let mut places = self.node.places().iter();
        places.find(|place| place.cpu == cpu).copied()
    }

    /// The claim of this rank, for its own tasks; waits while another task holds it.
    /// Not reentrant.
    #[inline]
    pub fn enter(&self) -> Claim<'_> {
        let crowded = || self.threads.share_a_cpu();
        self.word.claim_yielding(crowded, self.threads.yielding(self.node.yield_policy()));
        Claim::of_taken(self, self.id, true)
    }

    /// What its threads wait for.
    #[inline]
    #[must_use]
    pub fn waits(&self) -> &Waits {
        &self.waits
    }

    /// Its threads that sleep and would work for others.
    pub(crate) fn sleepers(&self) -> &Sleepers {
        &self.sleepers
    }

    /// How the rank's threads share it.
    #[inline]
    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// The claim of this rank, for a task of `caller` that does not wait: `None` if anybody holds it.
    #[inline]
    pub fn try_steal(&self, caller: LocalRank) -> Option<Claim<'_>> {
        let taken = self.word.try_claim();
        taken.then(|| Claim::of_taken(self, caller, false))
    }

    /// Where its thread runs.
    #[inline]
    pub(crate) fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// Takes the claim for ever, or has it reserved for ever if its holder keeps it for longer.
    pub(crate) fn retire_claim(&self, limit: Duration) {
        self.word.retire(limit);
    }

    /// Ends a claim.
    ///
    /// # Safety
    /// A [`Claim`] of this rank that ends with the call holds it.
    #[inline]
    pub(crate) unsafe fn release_claim(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.word.release() };
    }

    /// Whether the rank needs nobody any more: it is in the last wait of `MPI_Finalize`, or has ended. What its program
    /// has in its own memory may be gone then.
    #[must_use]
    pub fn has_come_to_end(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }

    /// Counts this rank among those that have come to their end, once.
    pub(crate) fn mark_done(&self) {
        if !self.is_done.swap(true, Ordering::Relaxed) {
            self.node.count_done(self);
        }
    }

    /// Undoes [`Rank::mark_done`]: the rank needs others again.
    pub(crate) fn unmark_done(&self) {
        if self.is_done.swap(false, Ordering::Relaxed) {
            self.node.count_back(self);
        }
    }

    /// The slot of the object layer. Owner only.
    #[inline]
    #[must_use]
    pub fn local(&self) -> *mut c_void {
        self.local.load(Ordering::Acquire)
    }

    /// Fills the slot of the object layer. Owner only.
    pub fn set_local(&self, value: *mut c_void) {
        self.local.store(value, Ordering::Release);
    }

    /// Whether several threads of the rank may call at once (`MPI_THREAD_MULTIPLE`): waits then
    /// give the claim back between turns.
    pub fn set_threads_multiple(&self) {
        self.threads.set_multiple();
    }

    /// A thread of the runtime's own may be in calls that wait, beside the program's, from now on, or none
    /// ([`Block`](crate::threads::Block)). By a thread of the program's that does not wait, before the first of those
    /// calls and after the last one.
    pub fn set_helped(&self, helped: bool) {
        if helped {
            // Who takes the claim is looked at.
            self.call_when_claimed();
        }
        self.threads.set_helped(helped);
    }

    /// Whether they may.
    #[inline]
    #[must_use]
    pub fn threads_multiple(&self) -> bool {
        self.threads.are_multiple()
    }

    /// Does `work`, during which no handler of the rank's signal works in this thread: one that comes finds the rank
    /// busy, as if it was claimed. For ranks with one thread in calls ([`Rank::threads_multiple`]).
    #[inline(always)]
    pub fn without_handler<R>(&self, work: impl FnOnce() -> R) -> R {
        self.threads.keep_handler_out(true);
        let result = work();
        self.threads.keep_handler_out(false);
        result
    }

    /// Whether a handler of the rank's signal must not work now ([`Rank::without_handler`]). For handlers.
    #[must_use]
    pub fn keeps_handler_out(&self) -> bool {
        self.threads.keeps_handler_out()
    }

    /// The state; to be dereferenced under the claim only.
    #[inline]
    pub(super) fn state(&self) -> *mut State {
        self.state.get()
    }

    /// Whether a blocking receive may poll for its message alone for a while.
    #[inline]
    pub fn polls_directly(&self) -> bool {
        !self.node.is_crowded() && !self.threads_multiple()
    }

    /// Its heap.
    #[inline]
    #[must_use]
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// What it expects, so that thieves look at it.
    #[inline]
    #[must_use]
    pub fn expected(&self) -> &Availability {
        &self.expected
    }

    /// Where it sleeps.
    #[must_use]
    pub fn park(&self) -> &ParkSlot {
        &self.park
    }

    /// What this rank did for others until now.
    #[must_use]
    pub fn steal_counts(&self) -> StealCounts {
        self.counters.snapshot()
    }

    /// The same, to count.
    #[must_use]
    pub fn counters(&self) -> &Counters<'static> {
        &self.counters
    }

    /// When a nonblocking call last found nothing, in ticks.
    pub(crate) fn last_fruitless(&self) -> &AtomicU64 {
        &self.last_fruitless
    }

    /// Its policies.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// What the rank's policies need.
    #[inline]
    pub fn capabilities(&self) -> Capabilities {
        self.policies.capabilities()
    }

    /// The policy that this rank has for all that has none of its own.
    #[inline]
    pub fn policy(&self) -> &'static Policy {
        policy(self.progress())
    }

    /// The policy by which this rank steals, if its capabilities say so.
    #[inline]
    pub fn stealing(&self) -> &'static Policy {
        match self.policy() {
            own if own.capabilities().steals() => own,
            _ => policy(Progress::Steal),
        }
    }

    /// The name of [`Rank::policy`].
    #[inline]
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.policies.own()
    }

    /// The same rank: ranks are never unmade.
    #[must_use]
    pub fn forever(&self) -> &'static Self {
        self.node.rank(self.id)
    }

    /// Whether some task progresses this rank, or its owner is about to.
    pub fn is_claimed(&self) -> bool {
        self.word.is_held()
    }

    /// Wakes the rank if it sleeps; says whether it did. The caller has published what the
    /// rank waits for.
    #[inline]
    pub fn wake(&self) -> bool {
        self.node.barriers().light();
        self.wake_after_barrier()
    }

    /// [`Rank::wake`] by a task that has passed the light barrier, or has given a claim back, since it published.
    #[inline]
    pub fn wake_after_barrier(&self) -> bool {
        let woken = self.park.wake_after_barrier();
        if woken && self.node.has_network() {
            hooks::woken(self);
        }
        woken
    }

    /// Wakes the rank also if somebody has noted that it did so, and then has died.
    pub(super) fn wake_again(&self) {
        self.park.wake_again();
        if self.node.has_network() {
            hooks::woken(self);
        }
    }

    /// After a message for this rank was published: wakes it, or, if it computes and somebody could
    /// help it, whoever that is. `by` is the rank that counts the wake-up; without a `need` nobody is asked to help.
    #[inline]
    pub fn notify(&self, by: &Self, need: Option<Need>) {
        if self.wake() {
            by.has_woken(self);
        } else if self.pending_events.has_users() {
            self.announce();
        } else if let Some(need) = need {
            self.find_help(by, need);
        }
    }

    /// Counts a wake-up of another rank.
    #[inline]
    fn has_woken(&self, other: &Self) {
        self.counters.count_wake();
        if let Some(trace) = self.trace() {
            trace.note(&Event::now(EventKind::Wake, other.id));
        }
    }

    /// After `by` did what this rank is late for: wakes it, or whoever its policy has for it.
    pub fn call(&self, by: &Self) {
        if self.wake() {
            by.has_woken(self);
        } else {
            self.find_help(by, Need::Late);
        }
    }

    /// Whether a collective of the rank waits for somebody, and how it is told.
    #[inline]
    #[must_use]
    pub fn pending_events(&self) -> &EventCount {
        &self.pending_events
    }

    /// After something was published that a collective of the rank may wait for: finds somebody who
    /// goes on with it ([`crate::event_count`]).
    #[inline]
    pub fn announce(&self) {
        if self.pending_events.has_users() && self.pending_events.count_event(|| self.is_claimed()) {
            self.call(self);
        }
    }

    /// Wakes a worker for this rank, or interrupts it, if it computes and expects messages.
    fn find_help(&self, by: &Self, need: Need) {
        let capabilities = self.capabilities();
        if capabilities.finds_help() {
            // The rank raises its availability and then looks at its rings: one of us sees the other.
            fence(Ordering::SeqCst);
            hooks::help(self, by, need);
        }
    }

    /// Has subsystems told whenever somebody takes the rank's claim ([`Subsystem::claimed`]).
    pub fn call_when_claimed(&self) {
        // Release: what they need was made before.
        self.is_called_when_claimed.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_called_when_claimed(&self) -> bool {
        self.is_called_when_claimed.load(Ordering::Acquire)
    }

    /// This rank as a worker. Made at its first wait, under its claim.
    pub(crate) fn worker(&self, claim: &mut Claim<'_>) -> &Worker<'static> {
        debug_assert!(core::ptr::eq(claim.rank(), self));
        // SAFETY: the worker, once made, lives as long as the node.
        unsafe {
            if let Some(worker) = self.thieving.worker.load(Ordering::Acquire).as_ref() {
                return worker;
            }
        }
        self.make_worker(claim)
    }

    /// There are more ranks: the next wait makes a worker that knows them.
    pub(crate) fn forget_worker(&self) {
        self.thieving.worker.store(null_mut(), Ordering::Release);
    }

    #[cold]
    fn make_worker(&self, claim: &mut Claim<'_>) -> &Worker<'static> {
        let node = self.node;
        let ranks = node.size();
        let room = ranks.saturating_sub(1) as usize;
        let last = self.thieving.last.load(Ordering::Relaxed);
        let (place, victims) = match last.is_null() {
            true => (self.thieving.worker_room, self.thieving.victims),
            // A thread of the rank may still use the last one, which stays.
            false => {
                let place = claim.alloc_aligned(size_of::<Worker<'static>>(), align_of::<Worker<'static>>());
                let victims = claim.alloc_aligned(size_of::<LocalRank>() * room.max(1), align_of::<LocalRank>());
                match (place, victims) {
                    (Some(place), Some(victims)) => (place.cast().as_ptr(), victims.cast().as_ptr()),
                    // Without memory it goes on with those it knows.
                    _ => (last, null_mut()),
                }
            }
        };
        if !victims.is_null() {
            // SAFETY: there is room for the others, and under the claim we are alone; the counters live as long as the
            // node. Nobody has seen the place of the worker yet.
            unsafe {
                let storage = core::slice::from_raw_parts_mut(victims, room);
                let counters = &*core::ptr::from_ref(&self.counters);
                let limit = node.settings().steal_locality;
                let bound_cpu = |rank| node.rank(rank).boot.cpu;
                let order = victim::build(self.id, ranks, node.places(), bound_cpu, limit, storage);
                place.write(Worker::new(order, counters, node.settings()));
            }
        }
        self.thieving.last.store(place, Ordering::Relaxed);
        self.thieving.worker.store(place, Ordering::Release);
        // SAFETY: it was made, and stays.
        unsafe { &*place }
    }
}

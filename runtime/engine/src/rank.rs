//! One rank of the node.

use crate::arch::{TICKS_PER_US, ticks};
use crate::bell::Bell;
use crate::claim::{Claim, State};
use crate::crew::CrewWorker;
use crate::helper::Board;
use crate::inbox::Inbox;
use crate::kernel_thread::KernelThread;
use crate::net::Link;
use crate::node::Node;
use crate::observer::Observer;
use crate::offload::Offload;
use crate::outbox::Outbox;
use crate::policies::Policies;
use crate::poller;
use crate::request::{Request, RequestRef};
use crate::signal::Parasite;
use crate::threads::Threads;
use cohort_alloc::Heap;
use cohort_base::boot::{CpuPlace, RankBoot};
use cohort_base::settings::Progress;
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use cohort_base::sync::pause;
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_steal::TaskKind;
use cohort_steal::avail::Availability;
use cohort_steal::claim::ClaimWord;
use cohort_steal::park::ParkSlot;
use cohort_steal::policy::{Crew, Means, ProgressPolicy, Worker, policy};
use cohort_steal::stats::Counters;
pub use cohort_steal::stats::Snapshot as StealCounts;
use cohort_steal::victim;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::fmt;
use core::ptr::{NonNull, null_mut};

/// How long a sender waits for the holder of a receiver's claim, which may be copying a message, before it calls for help.
pub(crate) const CALL_US_MAX: u64 = 20;

/// One rank. Any task of the node may hold a reference; what only one may touch at a time is
/// behind its [`Claim`].
#[repr(C)]
pub struct Rank {
    word: ClaimWord,
    park: ParkSlot,
    expected: Availability,
    id: LocalRank,
    threads: Threads,
    /// Null until a policy that leaves posts to dedicated workers.
    offload: AtomicPtr<Offload>,
    /// Whether the node counts this rank among those that need nobody any more.
    is_done: AtomicBool,
    node: &'static Node,
    /// Rung when a collective that others may go on with may have become ready for it.
    bell: Bell,
    boot: &'static RankBoot,
    /// The object layer's slot.
    local: AtomicPtr<c_void>,
    /// Null until the rank waits for the first time.
    worker: AtomicPtr<Worker<'static>>,
    /// Room for the worker's victims, `node.size()` entries.
    victims: *mut LocalRank,
    /// Room for the worker.
    worker_room: *mut Worker<'static>,
    counters: Counters<'static>,
    /// When a nonblocking call last found nothing, in ticks.
    last_fruitless: AtomicU64,
    inbox: Inbox,
    /// The rank's own progress thread.
    thread: KernelThread,
    /// Where that thread sleeps under policies that wake it on purpose.
    sleeper: ParkSlot,
    /// Posted receives that the program left behind and the policy watches for.
    watched: AtomicU32,
    /// The rank's policies, and what they need.
    policies: Policies,
    /// The dedicated workers that serve this rank, if there are any.
    ghost_number: u32,
    helper_number: u32,
    /// What this rank and its senders tell the helper; null until a policy with helpers.
    board: AtomicPtr<Board>,
    board_room: *mut Board,
    offload_room: *mut Offload,
    /// Offers taken out of the rings, by sender; `node.size()` entries, written under the claim.
    accepted: *const AtomicU32,
    parasite: Parasite,
    observer: Observer,
    heap: Heap,
    /// The request of every eager send.
    sent: UnsafeCell<Request>,
    state: UnsafeCell<State>,
}

// SAFETY: the cell is reached through the claim only; the pointers are set once.
unsafe impl Sync for Rank {}
// SAFETY: as above.
unsafe impl Send for Rank {}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rank({})", self.id)
    }
}

/// The parts of a new rank.
pub(crate) struct Parts {
    pub(crate) id: LocalRank,
    pub(crate) node: &'static Node,
    pub(crate) boot: &'static RankBoot,
    pub(crate) inbox: Inbox,
    pub(crate) outboxes: *mut Outbox,
    pub(crate) links: *mut *mut Link,
    pub(crate) victims: *mut LocalRank,
    pub(crate) worker_room: *mut Worker<'static>,
    pub(crate) counters: Counters<'static>,
    pub(crate) board_room: *mut Board,
    pub(crate) offload_room: *mut Offload,
    pub(crate) accepted: *const AtomicU32,
}

impl Rank {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            word: ClaimWord::new(parts.node.barriers()),
            park: ParkSlot::new(),
            expected: Availability::new(),
            id: parts.id,
            threads: Threads::new(),
            offload: AtomicPtr::new(null_mut()),
            is_done: AtomicBool::new(false),
            node: parts.node,
            bell: Bell::new(),
            boot: parts.boot,
            local: AtomicPtr::new(null_mut()),
            worker: AtomicPtr::new(null_mut()),
            victims: parts.victims,
            worker_room: parts.worker_room,
            counters: parts.counters,
            last_fruitless: AtomicU64::new(0),
            inbox: parts.inbox,
            thread: KernelThread::new(),
            sleeper: ParkSlot::new(),
            watched: AtomicU32::new(0),
            policies: Policies::new(parts.node.settings().progress),
            ghost_number: parts.node.crew_number_for(parts.id, Crew::Ghosts),
            helper_number: parts.node.crew_number_for(parts.id, Crew::Helpers),
            board: AtomicPtr::new(null_mut()),
            board_room: parts.board_room,
            offload_room: parts.offload_room,
            accepted: parts.accepted,
            parasite: Parasite::new(),
            observer: Observer::new(),
            heap: Heap::new(),
            sent: UnsafeCell::new(Request::sent()),
            state: UnsafeCell::new(State::new(parts.outboxes, parts.links)),
        }
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
    pub fn place(&self) -> Option<CpuPlace> {
        let cpu = u32::try_from(self.boot().cpu).ok()?;
        let mut places = self.node.places().iter();
        places.find(|place| place.cpu == cpu).copied()
    }

    /// The claim of this rank, for its own tasks; waits while another task holds it.
    /// Not reentrant.
    #[inline]
    pub fn enter(&self) -> Claim<'_> {
        self.word
            .claim_patiently(self.threads.manners(self.node.courtesy()));
        Claim::of_taken(self, self.id, true)
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

    /// Ends a claim; by `Claim` only.
    #[inline]
    pub(crate) fn release_claim(&self) {
        self.word.release();
    }

    /// Counts this rank among those that have come to their end, once.
    pub(crate) fn mark_done(&self) {
        if !self.is_done.swap(true, Ordering::Relaxed) {
            self.node.count_done();
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
    pub fn set_threads_multiple(&self, multiple: bool) {
        self.threads.set_multiple(multiple);
    }

    #[inline]
    pub(crate) fn threads_multiple(&self) -> bool {
        self.threads.are_multiple()
    }

    /// The state; to be dereferenced under the claim only.
    #[inline]
    pub(crate) fn state(&self) -> *mut State {
        self.state.get()
    }

    /// The complete request that stands for all eager sends.
    #[inline]
    pub(crate) fn sent(&self) -> RequestRef {
        // SAFETY: the address of a field.
        RequestRef(unsafe { NonNull::new_unchecked(self.sent.get()) })
    }

    /// Whether a blocking receive may poll for its message alone for a while.
    #[inline]
    pub(crate) fn polls_directly(&self) -> bool {
        !self.node.is_crowded() && !self.threads_multiple()
    }

    #[inline]
    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    #[inline]
    pub(crate) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    #[inline]
    pub(crate) fn expected(&self) -> &Availability {
        &self.expected
    }

    pub(crate) fn park(&self) -> &ParkSlot {
        &self.park
    }

    /// What this rank did for others until now.
    #[must_use]
    pub fn steal_counts(&self) -> StealCounts {
        self.counters.snapshot()
    }

    pub(crate) fn counters(&self) -> &Counters<'static> {
        &self.counters
    }

    /// When a nonblocking call last found nothing, in ticks.
    pub(crate) fn last_fruitless(&self) -> &AtomicU64 {
        &self.last_fruitless
    }

    pub(crate) fn thread(&self) -> &KernelThread {
        &self.thread
    }

    pub(crate) fn sleeper(&self) -> &ParkSlot {
        &self.sleeper
    }

    /// Posted receives that the program left behind and the policy watches for; written under the claim.
    pub(crate) fn watched(&self) -> &AtomicU32 {
        &self.watched
    }

    /// The number of the dedicated worker of a kind that serves this rank, if there are any. It never changes.
    #[inline]
    pub(crate) fn crew_number(&self, crew: Crew) -> u32 {
        match crew {
            Crew::Ghosts => self.ghost_number,
            Crew::None | Crew::Helpers => self.helper_number,
        }
    }

    /// Whether dedicated workers of this kind serve the rank.
    #[inline]
    pub(crate) fn is_served_by(&self, crew: Crew) -> bool {
        match crew {
            Crew::None => false,
            Crew::Ghosts => self.means().has_ghost(),
            Crew::Helpers => self.means().has_helper(),
        }
    }

    /// The dedicated worker of this kind that serves this rank, if the rank has one.
    #[inline]
    pub(crate) fn worker_of(&self, crew: Crew) -> Option<&'static CrewWorker> {
        if !self.is_served_by(crew) {
            return None;
        }
        self.node.crew().get(self.crew_number(crew) as usize)
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    /// What the rank's policies need.
    #[inline]
    pub(crate) fn means(&self) -> Means {
        self.policies.means()
    }

    /// The policy that this rank has for all that has none of its own.
    #[inline]
    pub(crate) fn policy(&self) -> &'static dyn ProgressPolicy {
        policy(self.progress())
    }

    /// The policy by which this rank steals, if its means say so.
    #[inline]
    pub(crate) fn stealing(&self) -> &'static dyn ProgressPolicy {
        match self.policy() {
            own if own.may_steal() => own,
            _ => policy(Progress::Steal),
        }
    }

    /// The name of [`Rank::policy`].
    #[inline]
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.policies.own()
    }

    /// Makes the room that these means need. By a task of the rank, one at a time.
    pub(crate) fn furnish(&self, means: Means) {
        if means.has_helper() && self.board().is_none() {
            // SAFETY: the room is this rank's, lives as long as the node, and is filled once: tasks of one
            // rank do not do this at the same time.
            unsafe { self.board_room.write(Board::new()) };
            self.board.store(self.board_room, Ordering::Release);
        }
        if means.has_ghost() && self.offload().is_none() {
            // SAFETY: as above.
            unsafe { self.offload_room.write(Offload::new()) };
            self.offload.store(self.offload_room, Ordering::Release);
        }
    }

    /// What the rank leaves to dedicated workers to post, once a policy does so.
    #[inline]
    pub(crate) fn offload(&self) -> Option<&'static Offload> {
        // SAFETY: as for boards. Acquire pairs with the Release in `furnish`.
        unsafe { self.offload.load(Ordering::Acquire).as_ref() }
    }

    /// Whether there are posts that the rank left to a dedicated worker. Exact for the owner.
    #[inline]
    pub(crate) fn has_posts(&self) -> bool {
        self.offload().is_some_and(Offload::has_posts)
    }

    /// The rank's board, once a policy with helpers has made it.
    #[inline]
    pub(crate) fn board(&self) -> Option<&'static Board> {
        // SAFETY: boards live as long as the node. Acquire pairs with the Release in `furnish`.
        unsafe { self.board.load(Ordering::Acquire).as_ref() }
    }

    /// Offers of a sender that this rank has taken out of the ring so far, modulo 2^32.
    pub(crate) fn accepted_from(&self, sender: LocalRank) -> u32 {
        self.accepted(sender).load(Ordering::Relaxed)
    }

    /// One more offer of a sender is out of the ring. Under the claim.
    pub(crate) fn count_accepted(&self, sender: LocalRank) {
        let count = self.accepted_from(sender);
        self.accepted(sender)
            .store(count.wrapping_add(1), Ordering::Relaxed);
    }

    fn accepted(&self, sender: LocalRank) -> &AtomicU32 {
        assert!(sender < self.node.size(), "no such rank");
        // SAFETY: the table has an entry per rank of the node.
        unsafe { &*self.accepted.add(sender as usize) }
    }

    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    pub(crate) fn parasite(&self) -> &Parasite {
        &self.parasite
    }

    /// The same rank: ranks are never unmade.
    #[must_use]
    pub fn forever(&self) -> &'static Self {
        self.node.rank(self.id)
    }

    /// Whether some task progresses this rank, or its owner is about to.
    pub(crate) fn is_claimed(&self) -> bool {
        self.word.is_held()
    }

    /// Wakes the rank if it sleeps; says whether it did. The caller has published what the
    /// rank waits for.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        let woken = self.park.wake(self.node.barriers());
        if woken && let Some(net) = self.node.net() {
            net.interrupt(self);
        }
        woken
    }

    /// After a message for this rank was published: wakes it, or, if it computes and a worker could
    /// help it, a worker. `by` is the rank that counts the wake-up.
    #[inline]
    pub(crate) fn notify(&self, by: &Self, is_offer: bool) {
        if self.wake() {
            by.counters.count_wake();
        } else if self.bell.is_hung() {
            self.ring();
        } else if is_offer {
            self.find_help(by, None);
        }
    }

    /// [`Rank::notify`] after an offer of `by` was published, its `number`-th to this rank.
    #[inline]
    pub(crate) fn notify_of_offer(&self, by: &Self, number: u32) {
        if self.wake() {
            by.counters.count_wake();
        } else if self.bell.is_hung() {
            self.ring();
        } else {
            self.find_help(by, Some(number));
        }
    }

    /// After `by` did what this rank is late for (`rma/door.rs`): wakes it, or whoever its policy has for it. Nothing is left to be
    /// matched, so the progress thread that a helper would wake is woken at once, unless somebody has the claim.
    pub(crate) fn call(&self, by: &Self) {
        let has_thread = || self.means().has_helper() && !self.node.rests() && !self.is_claimed();
        if self.wake() || has_thread() && poller::wake_sleeper(self) {
            by.counters.count_wake();
        } else {
            self.find_help(by, None);
        }
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// After something was published that a collective of the rank may wait for: finds somebody who goes on with it ([`crate::bell`]).
    #[inline]
    pub(crate) fn ring(&self) {
        if self.bell.is_hung() && self.bell.ring(|| self.is_claimed()) {
            self.call(self);
        }
    }

    /// Wakes a worker for this rank, or interrupts it, if it computes and expects messages.
    fn find_help(&self, by: &Self, offer: Option<u32>) {
        let means = self.means();
        let (wakes, interrupts) = (means.wakes_worker(), means.may_interrupt());
        if !(wakes || interrupts) {
            return;
        }
        // The rank raises its availability and then looks at its rings: one of us sees the other.
        fence(Ordering::SeqCst);
        let needs_worker = wakes
            && self.expected.is_raised(TaskKind::Shm)
            && (!self.is_claimed() || means.has_ghost() && self.leaves(by, offer));
        if needs_worker && self.node.wake_worker(self.id) {
            by.counters.count_wake();
        } else if interrupts {
            self.parasite.interrupt(self, by, offer);
        }
    }

    /// Whether the offer of this number from `by` is out of the ring.
    pub(crate) fn has_taken(&self, by: &Self, offer: u32) -> bool {
        // Numbers wrap; half of their range is far more than can be under way.
        self.accepted_from(by.id).wrapping_sub(offer) as i32 >= 0
    }

    /// Whether the holder of the rank's claim leaves an offer of `by` in its ring: a rank that waits takes it at once, one
    /// that just sends something does not.
    fn leaves(&self, by: &Self, offer: Option<u32>) -> bool {
        let Some(offer) = offer.filter(|_| self.id != by.id) else {
            return true;
        };
        let since = ticks();
        while self.is_claimed() && ticks().wrapping_sub(since) < CALL_US_MAX * TICKS_PER_US {
            if self.has_taken(by, offer) {
                return false;
            }
            pause();
        }
        !self.has_taken(by, offer)
    }

    /// This rank as a worker. Made at its first wait, under its claim.
    pub(crate) fn worker(&self, claim: &mut Claim<'_>) -> &Worker<'static> {
        debug_assert!(core::ptr::eq(claim.rank(), self));
        // SAFETY: the worker, once made, lives as long as the node.
        unsafe {
            if let Some(worker) = self.worker.load(Ordering::Acquire).as_ref() {
                return worker;
            }
        }
        self.make_worker()
    }

    #[cold]
    fn make_worker(&self) -> &Worker<'static> {
        let node = self.node;
        let room = node.size().saturating_sub(1) as usize;
        // SAFETY: the table has `node.size()` entries, and under the claim we are alone; the
        // counters live as long as the node.
        let (storage, counters) = unsafe {
            (
                core::slice::from_raw_parts_mut(self.victims, room),
                &*core::ptr::from_ref(&self.counters),
            )
        };
        let limit = node.settings().steal_locality;
        let bound_cpu = |rank| node.rank(rank).boot.cpu;
        let order = victim::build(
            self.id,
            node.size(),
            node.places(),
            bound_cpu,
            limit,
            storage,
        );
        // SAFETY: the room is ours, and nobody has seen it yet.
        unsafe {
            let worker = Worker::new(order, counters, node.settings());
            self.worker_room.write(worker);
            self.worker.store(self.worker_room, Ordering::Release);
            &*self.worker_room
        }
    }
}

//! Who is there, and who may act for whom: nodes, ranks, claims and owners.
//!
//! These four know each other, so they are defined together; what they do is in a module for each.

pub mod claim;
pub mod failures;
pub mod hooks;
mod links;
pub mod node;
pub mod owner;
pub mod rank;
mod renewal;
mod spare;
pub mod waits;

use crate::cpu::Cpu;
use crate::event_count::EventCount;
use crate::memory::{Room, SLOTS};
use crate::peers::Peers;
use crate::policies::Policies;
use crate::threads::Threads;
use crate::yield_policy::YieldPolicy;
use cohort_alloc::Heap;
use cohort_base::LocalRank;
use cohort_base::boot::{NodeBoot, RankBoot};
use cohort_base::settings::Settings;
use cohort_base::sync::Barriers;
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use cohort_base::trace::Ring;
use cohort_bridge::Bridge;
use cohort_fabric::Transport;
use cohort_steal::TaskKind;
use cohort_steal::avail::Availability;
use cohort_steal::claim::ClaimWord;
use cohort_steal::idle::Sleepers;
use cohort_steal::park::ParkSlot;
use cohort_steal::policy::Worker;
use cohort_steal::stats::Counters;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use failures::Failures;
use links::Links;
use spare::Spare;
use waits::Waits;

/// All ranks of one address space. Never unmade.
pub struct Node {
    ranks: *const Rank,
    /// Ranks that there are. It grows when ranks are spawned.
    size: AtomicU32,
    /// What has become of the ranks that the job began with.
    first_world: FirstWorld,
    crowded: AtomicBool,
    /// Ranks that wait, counted under policies that want to know.
    waiting: AtomicU32,
    /// Ranks that have come to their end, of all worlds.
    done: AtomicU32,
    /// Who wants to see the ends of messages: a timeline, and ranks that are told of theirs.
    followers: AtomicU32,
    /// Messages of fewer bytes are eager and leave in the shortest way; 0 while somebody follows messages.
    eager_below: AtomicU64,
    yield_policy: YieldPolicy,
    barriers: Barriers,
    settings: Settings,
    boot: &'static NodeBoot,
    idle: &'static [AtomicU64],
    contexts: AtomicU32,
    peers: Peers,
    network: Option<&'static dyn Transport>,
    /// What joins the node with other jobs, or null.
    bridge: AtomicPtr<Bridge>,
    /// Ranks that wait at ports.
    at_ports: AtomicU32,
    /// Which worlds communicators join.
    links: Links,
    failures: Failures,
    /// Whether there is anything to reach beyond the node.
    has_network: AtomicBool,
    /// What further ranks are made from. Only the launcher's task touches it, in [`Node::add`].
    rest: UnsafeCell<Option<node::Rest>>,
    rooms: [Room; SLOTS],
}

/// What of a spawned world is in its [`WorldBoot`](cohort_base::spawn::WorldBoot), of the ranks that began the job.
#[derive(Debug, Default)]
struct FirstWorld {
    done: AtomicU32,
    links: AtomicU32,
}

// SAFETY: `ranks` points to ranks that are shared and live for ever; `rest` is one task's.
unsafe impl Sync for Node {}
// SAFETY: as above.
unsafe impl Send for Node {}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({} ranks)", self.size())
    }
}

/// One rank. Any task of the node may hold a reference; what only one may touch at a time is
/// behind its [`Claim`].
#[repr(C)]
pub struct Rank {
    word: ClaimWord,
    park: ParkSlot,
    expected: Availability,
    id: LocalRank,
    threads: Threads,
    /// Whether subsystems are told when the rank is claimed.
    is_called_when_claimed: AtomicBool,
    /// Whether the node counts this rank among those that need nobody any more.
    is_done: AtomicBool,
    node: &'static Node,
    /// Rung when a collective that others may go on with may have become ready for it.
    pending_events: EventCount,
    boot: &'static RankBoot,
    /// The object layer's slot.
    local: AtomicPtr<c_void>,
    /// What its threads wait for.
    waits: Waits,
    thieving: Thieving,
    counters: Counters<'static>,
    /// When a nonblocking call last found nothing, in ticks.
    last_fruitless: AtomicU64,
    /// When it looks at the memory that the program has freed.
    spare: Spare,
    sleepers: Sleepers,
    /// The rank's policies, and what they need.
    policies: Policies,
    cpu: Cpu,
    /// Where the rank's events are noted, if anywhere: a ring that stays, or NULL.
    trace: AtomicPtr<Ring>,
    heap: Heap,
    state: UnsafeCell<State>,
    rooms: [Room; SLOTS],
}

/// What a rank needs to steal from others.
struct Thieving {
    /// Null until the rank waits for the first time, and again when there are more ranks.
    worker: AtomicPtr<Worker<'static>>,
    /// The last one that was made, or null.
    last: AtomicPtr<Worker<'static>>,
    /// Room for the worker.
    worker_room: *mut Worker<'static>,
    /// Room for the worker's victims, `node.capacity()` entries.
    victims: *mut LocalRank,
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

/// Gives back the claim of a rank for which something is to be done at that moment.
pub type AtRelease = fn(Releasing<'_, '_>);

/// What belongs to the holder of a rank's claim, apart from the states of the subsystems.
struct State {
    /// Why this rank expects progress, by kind. Each subsystem counts what it waits for.
    reasons: [u32; TaskKind::COUNT],
    /// The same, where thieves need not look at this rank.
    unseen: [u32; TaskKind::COUNT],
    /// What to do when the claim is given back, if not simply that.
    at_release: Option<AtRelease>,
}

impl State {
    /// The state of a new rank.
    const fn new() -> Self {
        Self { reasons: [0; TaskKind::COUNT], unseen: [0; TaskKind::COUNT], at_release: None }
    }
}

/// A held claim, which ends with this value. See the module page.
#[derive(Debug)]
pub struct Claim<'rank> {
    rank: &'rank Rank,
    /// The rank whose task holds it.
    caller: LocalRank,
    by_owner: bool,
    /// A claim stays with the task that took it.
    not_send: PhantomData<*mut ()>,
}

/// A claim that is about to be given back. It is, at the latest when this value is dropped.
pub struct Releasing<'a, 'rank>(&'a mut Claim<'rank>);

/// A witness that the caller runs on a task of the rank, in a call of the program, below no claim that was stolen.
///
/// It is `Copy`, but stays on the thread that has it. A wait asks for it:
///
/// ```no_run
/// use cohort_core::{Owner, wait};
///
/// fn wait(owner: Owner<'_>) {
///     wait::until(owner, wait::WaitKind::Request, || true);
/// }
/// ```
///
/// ```compile_fail,E0308
/// use cohort_core::{Claim, wait};
///
/// // A thief does not wait.
/// fn wait(claim: &mut Claim<'_>) {
///     wait::until(claim.rank(), wait::WaitKind::Request, || true);
/// }
/// ```
///
/// ```compile_fail,E0599
/// // A thief has a claim. It leads to its rank, but to no owner.
/// fn stolen<'rank>(claim: &mut cohort_core::Claim<'rank>) -> cohort_core::Owner<'rank> {
///     claim.owner()
/// }
/// ```
///
/// ```compile_fail,E0277
/// // It cannot be handed to another thread.
/// fn hand_over(owner: cohort_core::Owner<'static>) {
///     std::thread::spawn(move || owner.rank().id());
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Owner<'rank> {
    rank: &'rank Rank,
    not_send: PhantomData<*mut ()>,
}

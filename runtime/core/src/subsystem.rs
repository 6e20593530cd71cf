//! Subsystems: what the core runs without knowing it.
//!
//! Point-to-point, collectives, one-sided communication, the network and the machinery of the
//! progress policies stand above the core. Each has a type that implements [`Subsystem`]: it says
//! what the subsystem keeps for a node and for each rank, and what it does at certain moments of
//! the progress loop. One crate above them all, the engine, lists them with
//! [`engine!`](crate::engine), in the order in which a turn visits them. The macro writes the
//! functions that the core declares in `hooks` below; so calls upwards are plain calls that the
//! linker resolves, and link-time optimisation inlines them.
//!
//! # State
//! Every rank and every node has a *room* for each subsystem, at a fixed place: reaching what is in
//! it costs one load. What is in the room of a rank is split by who may touch it: `Shared` by every
//! task, `State` by the holder of the claim.

pub use crate::memory::SLOTS;
use crate::memory::{Cursor, Plan, Table};
use crate::message::Envelope;
pub use crate::ranks::hooks;
use crate::ranks::{Claim, Node, Owner, Rank};
#[doc(hidden)]
pub use crate::sleep::Sleep;
use crate::work::{Look, Turn, Work};
pub use crate::work::{Mark, Need};
use cohort_base::LocalRank;
#[doc(hidden)]
pub use cohort_steal::park::{Awake, Ticket};
use core::cell::UnsafeCell;

/// A part of the engine. See the module page. All functions but those that make state have a default that does nothing.
///
/// # Safety
/// `SLOT` is below [`SLOTS`], and no other subsystem of the same engine has it.
pub unsafe trait Subsystem: Sized + 'static {
    /// The place of its rooms.
    const SLOT: usize;

    /// What it keeps for a node.
    type Node: Sync + 'static;
    /// What it keeps for a rank and all tasks may use.
    type Shared: Sync + 'static;
    /// What it keeps for a rank under its claim.
    type State: 'static;
    /// Its tables in the memory of the node.
    type Tables;

    /// Lays its tables out.
    fn tables(cursor: &mut Cursor, plan: &Plan) -> Self::Tables;

    /// Its part of a node that is being made: its ranks have no rooms yet.
    fn node(node: &'static Node, tables: &mut Self::Tables) -> Self::Node;

    /// Its part of a rank that is being made.
    fn rank(node: &'static Node, id: LocalRank, tables: &mut Self::Tables) -> (Self::Shared, Self::State);

    /// The rank begins (`MPI_Init`, a session). By its own task.
    fn begin(_owner: Owner<'static>) {}

    /// The rank ends (`MPI_Finalize`). By its own task.
    fn end(_owner: Owner<'static>) {}

    /// Its part of a turn: moves what can be moved now, and names one piece of longer work, unless
    /// there is one already. Bounded. By anybody with the claim.
    #[inline]
    fn turn(_claim: &mut Claim<'_>, _look: Look, _turn: &mut Turn) {}

    /// Work that only the rank itself, or its polling thread, looks for: that of its own sends and,
    /// on the owner's task, what only that may do.
    #[inline]
    fn own_work(_claim: &mut Claim<'_>, _owner: Option<Owner<'_>>) -> Option<Work> {
        None
    }

    /// Whether the owner's [`Subsystem::turn`] and [`Subsystem::own_work`] would find nothing to do, as far as a glance
    /// tells. By the owner. Subsystems that have neither are always idle.
    #[inline]
    fn is_idle(_claim: &mut Claim<'_>) -> bool {
        true
    }

    /// Whether a rank that has ended, and is [idle](Subsystem::is_idle), has left nothing that another rank in its
    /// place must not find.
    fn is_unused(_claim: &mut Claim<'_>) -> bool {
        true
    }

    /// Forgets whose place it was, which is [unused](Subsystem::is_unused): a rank of another process is to have it.
    fn renew(_rank: &Rank) {}

    /// Whether something waits of which no event will tell, so that it has to be looked at again soon.
    fn is_stalled(_claim: &mut Claim<'_>) -> bool {
        false
    }

    /// Whether a wait of the rank may end sooner if others make progress. By the rank itself.
    #[inline]
    fn awaits_help(_claim: &mut Claim<'_>) -> bool {
        false
    }

    /// Whether nothing of the rank's is on its way to or from another node.
    fn is_quiet(_claim: &mut Claim<'_>) -> bool {
        true
    }

    /// The claim was just taken, of a rank that asked for this ([`Rank::call_when_claimed`]).
    fn claimed(_claim: &mut Claim<'_>) {}

    /// The owner begins to wait, under a policy that acts for computing ranks.
    fn wait_begins(_rank: &Rank) {}

    /// The first look of that wait found nothing.
    fn wait_goes_on(_rank: &Rank) {}

    /// That wait, which began at `since` (ticks), is over.
    fn wait_ends(_claim: &mut Claim<'_>, _since: u64) {}

    /// A rank that slept was woken, on a node with a network.
    fn woken(_rank: &Rank) {}

    /// Adds what a sleep of the rank is for besides being woken. By a thread of the rank that has announced its sleep.
    #[inline]
    fn sleep_begins(_rank: &Rank, _sleep: &mut Sleep) {}

    /// A rank that has announced its sleep sleeps where descriptors end it, if the subsystem
    /// has such a place now; else it gives the ticket back.
    ///
    /// # Errors
    /// The ticket.
    fn sleep(_rank: &Rank, ticket: Ticket, _sleep: &Sleep) -> Result<Awake, Ticket> {
        Err(ticket)
    }

    /// A wait in which a sleep was announced is over, on a node with a network.
    fn hand_over(_node: &'static Node) {}

    /// Finds somebody for a rank that computes; says whether the policy has somebody for it. `by`
    /// is the rank that asks.
    fn help(_rank: &Rank, _by: &Rank, _need: Need) -> bool {
        false
    }

    /// Wakes the dedicated worker of a rank that has one; `None` if it has none.
    fn wake_dedicated(_near: &Rank) -> Option<bool> {
        None
    }

    /// `sender` has offered `receiver` a message, its `number`-th.
    #[inline]
    fn offered(_receiver: &Rank, _sender: &Rank, _envelope: &Envelope, _number: u32) {}

    /// The program leaves a collective behind that others may go on with. By a thread of the program, with its claim.
    fn left_behind(_claim: &mut Claim<'_>) -> Mark {
        Mark::NONE
    }

    /// A long message of the rank's is on its way to or from another node, where others may go on with it. By
    /// anybody with the claim.
    fn under_way(_claim: &mut Claim<'_>) -> Mark {
        Mark::NONE
    }

    /// A receive that was left behind has met its message, or was withdrawn.
    fn met(_claim: &mut Claim<'_>, _mark: Mark) {}

    /// A collective that was left behind, or a message that was under way, is over.
    fn over(_claim: &mut Claim<'_>, _mark: Mark) {}
}

/// What a subsystem keeps for a rank.
#[repr(C)]
struct Record<S: Subsystem> {
    shared: S::Shared,
    state: UnsafeCell<S::State>,
}

impl Rank {
    /// A subsystem's part of this rank.
    #[inline]
    #[must_use]
    pub fn shared<S: Subsystem>(&self) -> &S::Shared {
        // SAFETY: the room is that of `S`, and was filled before anybody saw the node; nobody writes the record again.
        unsafe { &(*self.room(S::SLOT).get::<Record<S>>()).shared }
    }
}

impl Claim<'_> {
    /// The state of a subsystem.
    #[inline]
    pub fn of<S: Subsystem>(&mut self) -> &mut S::State {
        // SAFETY: as above; the claim excludes every other task, and `&mut self` every other borrow.
        unsafe { &mut *(*self.rank().room(S::SLOT).get::<Record<S>>()).state.get() }
    }
}

impl Node {
    /// A subsystem's part of this node.
    #[inline]
    #[must_use]
    pub fn part<S: Subsystem>(&self) -> &S::Node {
        // SAFETY: as above.
        unsafe { &(*self.room(S::SLOT).get::<Part<S>>()).node }
    }
}

/// What a subsystem keeps for a node, and what it makes ranks from.
#[repr(C)]
struct Part<S: Subsystem> {
    node: S::Node,
    rest: UnsafeCell<(S::Tables, Table<Record<S>>)>,
}

/// Lays out what `S` keeps.
fn lay_out<S: Subsystem>(cursor: &mut Cursor, plan: &Plan) -> (S::Tables, Table<Part<S>>, Table<Record<S>>) {
    let tables = S::tables(cursor, plan);
    (tables, cursor.table(1), cursor.table(plan.ranks))
}

/// Measures what `S` keeps.
#[doc(hidden)]
pub fn measure<S: Subsystem>(cursor: &mut Cursor, plan: &Plan) {
    lay_out::<S>(cursor, plan);
}

/// Makes what `S` keeps for a node that nobody else sees yet.
#[doc(hidden)]
pub fn furnish<S: Subsystem>(cursor: &mut Cursor, plan: &Plan, node: &'static Node) {
    let (mut tables, mut part, records) = lay_out::<S>(cursor, plan);
    let part = part.take(1);
    // SAFETY: the memory and the room are those of `S`, empty, and seen by nobody else.
    unsafe {
        let own = S::node(node, &mut tables);
        part.write(Part { node: own, rest: UnsafeCell::new((tables, records)) });
        node.room(S::SLOT).fill(part);
    }
}

/// Makes what `S` keeps for a rank that nobody else sees yet: the one after those that were made before. One task at a
/// time.
#[doc(hidden)]
pub fn furnish_rank<S: Subsystem>(node: &'static Node, rank: &Rank) {
    let part = node.room(S::SLOT).get::<Part<S>>();
    // SAFETY: `furnish` has filled the room; only this function touches the rest of the part, and is called by one task
    // at a time. The rank's room is that of `S`, empty, and seen by nobody else.
    unsafe {
        let (tables, records) = &mut *(*part).rest.get();
        let (shared, state) = S::rank(node, rank.id(), tables);
        let record = records.take(1);
        record.write(Record { shared, state: UnsafeCell::new(state) });
        rank.room(S::SLOT).fill(record);
    }
}

/// Whether all of these are different places.
#[doc(hidden)]
#[must_use]
pub const fn are_distinct(slots: &[usize]) -> bool {
    let mut seen = [false; SLOTS];
    let mut at = 0;
    while at < slots.len() {
        if slots[at] >= SLOTS || seen[slots[at]] {
            return false;
        }
        seen[slots[at]] = true;
        at += 1;
    }
    true
}

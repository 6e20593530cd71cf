//! The memory that the members of one communicator share on a node.
//!
//! Each member owns one [`Slot`]. The *n*-th collective call on the communicator is *round n*
//! at every member, because MPI has all members call collectives in the same order. In round
//! *n* a member may **post** one entry (data, or the address of a record on its stack) for the
//! others to read, and at its end it **completes** the round: it will read no entry of this
//! round or of earlier ones any more.
//!
//! Invariants:
//! * Only its owner writes a slot, but for marks in `round` (below), and for the ring, which the first makes who needs it. The entry of
//!   round *n* is `ring[n % RING]`, of the first few rounds one in `first`. It holds what was posted
//!   in round *n* from the store of `round = n` on until the owner overwrites it.
//! * An owner overwrites the entry of round *m*, and the parcel that it refers to, only when every member has completed *m*.
//! * `completed` and the number in each entry's `round` only grow.
//!
//! # Choices
//! Some rounds are only there to become a schedule, or not. The members choose by sizes of which MPI demands that they
//! agree; in a wrong program they may not, so the first one to choose decides for all, in one word per round: for a
//! broadcast the `round` of the root's entry, where the root's post is a choice too, else one of `choices`. A word
//! takes the value *n*, or *n* with the mark [`SCHEDULED`], by one swap from whatever it held before.
//!
//! Why all members read the same choice of round *n*: whoever writes the word knows that everybody has completed
//! round *n* − [`RING`]. So nobody reads or writes it for an earlier round any more, and nobody writes it for a later one
//! before everybody has completed *n*: between the two there is one successful swap, and all others find its value.

use super::schedule::{Part, Plan, Schedule};
use super::wide::Spread;
use crate::guarded::Guarded;
use crate::meeting::{Link, release_cursor};
use crate::node::Node;
use alloc::alloc::{alloc, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};

/// Rounds that a member may run ahead of the readers of its entries. Many more than hide the way of a cache line: when
/// ranks outnumber CPUs, a root that runs ahead saves as many switches. A broadcast of 8 bytes to 8 ranks on 2 CPUs takes
/// 0.35 us with 64, and 0.55 with 16.
pub(super) const RING: usize = 64;

/// The first rounds, whose entries are in the slot itself. Many communicators see few collectives, and a ring is large.
const FIRST: usize = 4;

/// Mark of a round whose members chose a schedule.
pub(super) const SCHEDULED: u64 = 1 << 63;

/// Bytes that an entry carries itself.
pub(super) const INLINE: usize = 240;

/// Bytes of a parcel, and parcels of a member: rooms for data that an entry refers to.
pub(super) const PARCEL: usize = 64 << 10;
pub(super) const PARCELS: usize = 4;

/// Longest data that a member copies to a parcel, so as not to wait for its readers: the copy takes less time than that wait. When ranks
/// outnumber CPUs the wait is long, and the limit for data of which each reader takes a share is [`PARCEL`].
pub(super) const LEAVES: usize = 16 << 10;

/// What one member posts in one round. The first 48 bytes of data share the line of `round`.
#[repr(C, align(64))]
pub(super) struct Entry {
    pub(super) round: AtomicU64,
    pub(super) form: UnsafeCell<u64>,
    pub(super) data: UnsafeCell<[u64; INLINE / 8]>,
}

/// One member's part. All fields are written by the owner and read by everyone.
#[repr(C, align(128))]
pub(super) struct Slot {
    /// The last round this member completed.
    pub(super) completed: CacheLine<AtomicU64>,
    /// What the member waits for.
    pub(super) awaits: CacheLine<Awaits>,
    /// The member's counters, which only it reads.
    pub(super) own: CacheLine<Own>,
    ring: CacheLine<AtomicPtr<Entry>>,
    first: [Entry; FIRST],
}

impl Slot {
    const RING_LAYOUT: Layout = match Layout::array::<Entry>(RING) {
        Ok(layout) => layout,
        Err(_) => panic!("a small array"),
    };

    /// The entry of a round, if there is one: otherwise nothing has been posted there yet.
    #[inline]
    pub(super) fn entry(&self, round: u64) -> Option<&Entry> {
        if round < FIRST as u64 {
            return Some(&self.first[round as usize]);
        }
        // Acquire pairs with the Release in `make_ring`.
        let ring = self.ring.load(Ordering::Acquire);
        // SAFETY: a ring has this many entries, and lives as long as its slot.
        (!ring.is_null()).then(|| unsafe { &*ring.add(round as usize % RING) })
    }

    /// The entry of a round. Makes the ring if nobody has.
    #[inline]
    pub(super) fn made_entry(&self, round: u64) -> &Entry {
        loop {
            if let Some(entry) = self.entry(round) {
                return entry;
            }
            self.make_ring();
        }
    }

    #[cold]
    fn make_ring(&self) {
        // All fields of an entry are valid when zero.
        // SAFETY: the layout is not empty.
        let made = unsafe { alloc_zeroed(Self::RING_LAYOUT) };
        if made.is_null() {
            handle_alloc_error(Self::RING_LAYOUT);
        }
        let null = null_mut();
        let swap =
            (self.ring).compare_exchange(null, made.cast(), Ordering::Release, Ordering::Relaxed);
        if swap.is_err() {
            // SAFETY: just allocated, and nobody else knows it.
            unsafe { dealloc(made, Self::RING_LAYOUT) };
        }
    }

    /// Frees what the slot refers to. Nobody uses it any more.
    fn free(&self) {
        release_cursor(&self.own.cursor);
        self.own.parcels.iter().for_each(Parcel::free);
        let ring = self.ring.load(Ordering::Relaxed);
        if !ring.is_null() {
            // SAFETY: allocated in `make_ring` with the same layout.
            unsafe { dealloc(ring.cast(), Self::RING_LAYOUT) };
        }
    }
}

pub(super) struct Awaits {
    /// Round whose posts the member waits for, 0 for none.
    pub(super) posts: AtomicU64,
    /// Round whose completion the member waits for, 0 for none.
    pub(super) completion: AtomicU64,
}

pub(super) struct Own {
    /// The last round this member began.
    pub(super) begun: AtomicU64,
    /// A round that the member knows everyone to have completed.
    pub(super) floor: AtomicU64,
    /// The nonblocking collective that this member began last, or null.
    pub(super) cursor: AtomicPtr<Schedule>,
    pub(super) parcels: [Parcel; PARCELS],
}

/// Room for data of one round that does not fit in an entry, of which readers learn by the entry. Only the owner uses these fields.
pub(super) struct Parcel {
    /// Null until it is needed.
    pub(super) base: AtomicPtr<u8>,
    /// The round whose data it holds.
    pub(super) round: AtomicU64,
}

impl Parcel {
    /// Room of [`PARCEL`] bytes; null when memory is short.
    pub(super) fn room(&self) -> *mut u8 {
        let base = self.base.load(Ordering::Relaxed);
        if !base.is_null() {
            return base;
        }
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc(Self::LAYOUT) };
        self.base.store(base, Ordering::Relaxed);
        base
    }

    const LAYOUT: Layout = match Layout::from_size_align(PARCEL, 64) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    };

    /// Frees the room, which nobody uses any more.
    fn free(&self) {
        let base = self.base.load(Ordering::Relaxed);
        if !base.is_null() {
            // SAFETY: allocated in `room` with the same layout.
            unsafe { dealloc(base, Self::LAYOUT) };
        }
    }
}

/// What the members of a communicator share. See the module page.
pub struct CommShared {
    node: &'static Node,
    context: u32,
    slots: NonNull<Slot>,
    size: u32,
    left: AtomicU32,
    /// Where the members live, if not all on this node. The slots are then those of `Spread::inner`.
    spread: Option<Spread>,
    /// Where nonblocking collectives meet.
    schedules: Link<Part, Plan>,
    /// Choices of rounds, by number.
    pub(super) choices: CacheLine<[AtomicU64; RING]>,
    /// Members that wait for completions, or sleep until all have posted.
    pub(super) watchers: CacheLine<AtomicU32>,
    /// Arrivals at the barriers of large groups, all of them together.
    pub(super) arrivals: CacheLine<AtomicU64>,
    /// Barriers of large groups that everyone has arrived at.
    pub(super) barriers: CacheLine<AtomicU64>,
}

// SAFETY: slots are atomics, and cells that the protocol of the module page lends to one
// writer or to readers.
unsafe impl Send for CommShared {}
// SAFETY: as above.
unsafe impl Sync for CommShared {}

impl CommShared {
    fn new(node: &'static Node, context: u32, members: &[Peer]) -> Self {
        let spread = Spread::of(node, context, members);
        let here = spread.as_ref().map(|spread| spread.members_here());
        let size = here.unwrap_or(members.len()) as u32;
        let mut shared = Self::within_node(node, context, size);
        shared.spread = spread;
        shared
    }

    /// What `size` members of one node share.
    pub(super) fn within_node(node: &'static Node, context: u32, size: u32) -> Self {
        let layout = Self::layout(size);
        // SAFETY: the layout is not empty: a communicator has a member.
        let slots = unsafe { alloc_zeroed(layout) }.cast::<Slot>();
        // All fields of a slot are valid when zero.
        let Some(slots) = NonNull::new(slots) else {
            handle_alloc_error(layout)
        };
        Self {
            node,
            context,
            slots,
            size,
            left: AtomicU32::new(0),
            spread: None,
            schedules: Link::new(),
            choices: CacheLine([const { AtomicU64::new(0) }; RING]),
            watchers: CacheLine(AtomicU32::new(0)),
            arrivals: CacheLine(AtomicU64::new(0)),
            barriers: CacheLine(AtomicU64::new(0)),
        }
    }

    fn layout(size: u32) -> Layout {
        Layout::array::<Slot>(size.max(1) as usize).expect("a communicator fits in memory")
    }

    /// Ends one member's use, which must not touch it any more; the last of all members frees
    /// it. Owner-only.
    pub fn leave(&'static self) {
        TABLE.with(|list| {
            if self.left.fetch_add(1, Ordering::Relaxed) + 1 < self.size {
                return;
            }
            let is_this = |entry: &Entrant| entry.0 == NonNull::from(self);
            if let Some(index) = list.iter().position(is_this) {
                let Entrant(last) = list.swap_remove(index);
                // SAFETY: leaked in `enter`; every member has left, and the list forgot it.
                drop(unsafe { Box::from_raw(last.as_ptr()) });
            }
        });
    }

    /// Where the members live, if not all on one node.
    #[inline]
    pub(super) fn spread(&self) -> Option<&Spread> {
        self.spread.as_ref()
    }

    /// Number of members on this node.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The beginning of the chain of nonblocking collectives.
    pub(super) fn schedules(&self) -> &Link<Part, Plan> {
        &self.schedules
    }

    /// A member's place in that chain.
    pub(super) fn cursor(&self, member: u32) -> &AtomicPtr<Schedule> {
        &self.slots()[member as usize].own.cursor
    }

    pub(super) fn slots(&self) -> &[Slot] {
        // SAFETY: `new` allocated and zeroed this many slots, which live as long as `self`.
        unsafe { core::slice::from_raw_parts(self.slots.as_ptr(), self.size as usize) }
    }
}

impl Drop for CommShared {
    fn drop(&mut self) {
        self.slots().iter().for_each(Slot::free);
        // SAFETY: allocated in `new` with the same layout.
        unsafe { dealloc(self.slots.as_ptr().cast(), Self::layout(self.size)) };
    }
}

impl CommShared {
    /// The shared part of the communicator with this (collective) context number; the first
    /// member that asks makes it. Each of the `members` on this node asks once and later calls
    /// [`CommShared::leave`] once. Owner-only.
    #[must_use]
    pub fn of(node: &'static Node, context: u32, members: &[Peer]) -> &'static Self {
        TABLE.with(|list| {
            let found = list.iter().map(|entry| entry.0).find(|shared| {
                // SAFETY: members of the list live until their last `leave` removes them.
                let shared = unsafe { shared.as_ref() };
                shared.context == context && core::ptr::eq(shared.node, node)
            });
            let shared = found.unwrap_or_else(|| {
                let shared = Box::new(Self::new(node, context, members));
                let shared = NonNull::from(Box::leak(shared));
                list.push(Entrant(shared));
                shared
            });
            // SAFETY: it outlives this member's `leave`.
            unsafe { shared.as_ref() }
        })
    }
}

/// The shared parts in use, of all nodes. Owner-only: it allocates.
static TABLE: Guarded<Vec<Entrant>> = Guarded::new(Vec::new());

/// A shared part that the table keeps.
struct Entrant(NonNull<CommShared>);

// SAFETY: shared parts are `Sync`.
unsafe impl Send for Entrant {}

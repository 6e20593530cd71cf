//! The memory that the members of one communicator share on one node.
//!
//! Each member owns one [`Slot`]. The *n*-th collective call on the communicator is *round n*
//! at every member, because MPI has all members call collectives in the same order. In round
//! *n* a member may **post** one entry (data, or the address of a record on its stack) for the
//! others to read, and at its end it **completes** the round: it will read no entry of this
//! round or of earlier ones any more.
//!
//! Invariants:
//! * Only its owner writes a slot, but for marks in `round` (below), and for the ring, which the first makes who needs
//!   it. The entry of round *n* is `ring[n % RING]`, of the first few rounds one in `first`. It holds what was posted
//!   in round *n* from the store of `round = n` on until the owner overwrites it.
//! * An owner overwrites the entry of round *m*, and the side buffer that it refers to, only when every member has
//!   completed *m*.
//! * `completed` and the number in each entry's `round` only grow.
//!
//! # Choices
//! Before they post in a round, members may choose whether it is to become a pool. They choose by sizes of which MPI
//! demands that they agree; in a wrong program they may not, so the first one to choose decides for all, in one word
//! per round: for a broadcast the `round` of the root's entry, where the root's post is a choice too, else one of
//! `choices`. A word takes the value *n*, or *n* with the mark [`SCHEDULED`], by one swap from whatever it held before.
//!
//! Why all members read the same choice of round *n*: whoever writes the word knows that everybody has completed round
//! *n* − [`RING`]. So nobody reads or writes it for an earlier round any more, and nobody writes it for a later one
//! before everybody has completed *n*: between the two there is one successful swap, and all others find its value.

use crate::args::Label;
use crate::meeting::{Link, release_cursor};
use crate::pool::{Cursor, Lane, Part, Place, Plan, Pool};
use alloc::alloc::{alloc, alloc_zeroed, dealloc, handle_alloc_error};
use cohort_base::Peer;
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use cohort_core::Owner;
use cohort_core::rank::Rank;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};

/// Rounds that a member may run ahead of the readers of its entries. Many more than hide the way of a cache line: when
/// ranks outnumber CPUs, a root that runs ahead saves as many switches. A broadcast of 8 bytes to 8 ranks on 2 CPUs
/// takes 0.35 us with 64, and 0.55 with 16.
pub(crate) const RING: usize = 64;

/// The first rounds, whose entries are in the slot itself. Many communicators see few collectives, and a ring is large.
const FIRST: usize = 4;

/// Mark of a round whose members chose a pool.
pub(crate) const SCHEDULED: u64 = 1 << 63;

/// Bytes that an entry carries itself.
pub(crate) const INLINE: usize = 240;

/// Bytes of a side buffer, and how many a member has: memory for data that an entry refers to.
pub(crate) const SIDE_BYTES: usize = 64 << 10;
pub(crate) const SIDE_BUFFERS: usize = 4;

/// Longest data that a member copies to a side buffer, so as not to wait for its readers: the copy takes less time than
/// that wait. When ranks outnumber CPUs the wait is long, and the limit for data of which each reader takes a share is
/// [`SIDE_BYTES`].
pub(crate) const COPY_MAX: usize = 16 << 10;

/// Bytes beside each entry of a ring, where ranks outnumber CPUs.
pub(crate) const BESIDE_ENTRY: usize = 4 << 10;

/// Whether the entry of a round is in the ring. What is beside it is used again no sooner than the entry.
pub(crate) fn has_ring(round: u64) -> bool {
    round >= FIRST as u64
}

/// What one member posts in one round. The first 48 bytes of data share the line of `round`.
#[repr(C, align(64))]
pub(crate) struct Entry {
    pub(crate) round: AtomicU64,
    pub(crate) form: UnsafeCell<u64>,
    pub(crate) data: UnsafeCell<[u64; INLINE / 8]>,
}

/// One member's part. All fields are written by the owner and read by everyone.
#[repr(C, align(128))]
pub(crate) struct Slot {
    /// The last round this member completed.
    pub(crate) completed: CacheLine<AtomicU64>,
    /// What the member waits for.
    pub(crate) awaits: CacheLine<Awaits>,
    /// The member's counters, which only it reads.
    pub(crate) own: CacheLine<Own>,
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
    pub(crate) fn entry(&self, round: u64) -> Option<&Entry> {
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
    pub(crate) fn made_entry(&self, round: u64) -> &Entry {
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
        let swap = (self.ring).compare_exchange(null, made.cast(), Ordering::Release, Ordering::Relaxed);
        if swap.is_err() {
            // SAFETY: just allocated, and nobody else knows it.
            unsafe { dealloc(made, Self::RING_LAYOUT) };
        }
    }

    /// Frees what the slot refers to. Nobody uses it any more.
    fn free(&self, me: u32) {
        release_cursor(&self.own.cursor);
        self.own.rows.end(me);
        self.own.side_buffers.iter().for_each(|it| it.free(SideBuffer::LAYOUT));
        self.own.side_ring.free(SideBuffer::RING_LAYOUT);
        let ring = self.ring.load(Ordering::Relaxed);
        if !ring.is_null() {
            // SAFETY: allocated in `make_ring` with the same layout.
            unsafe { dealloc(ring.cast(), Self::RING_LAYOUT) };
        }
    }
}

pub(crate) struct Awaits {
    /// Round whose posts the member waits for, 0 for none.
    pub(crate) posts: AtomicU64,
    /// Round whose completion the member waits for, 0 for none.
    pub(crate) completion: AtomicU64,
}

pub(crate) struct Own {
    /// The last round this member began.
    pub(crate) begun: AtomicU64,
    /// A round that the member knows everyone to have completed.
    pub(crate) floor: AtomicU64,
    /// The pool that this member began last, or null.
    pub(crate) cursor: AtomicPtr<Pool>,
    /// Where it is among the rows of nonblocking collectives.
    rows: Cursor,
    pub(crate) side_buffers: [SideBuffer; SIDE_BUFFERS],
    /// [`BESIDE_ENTRY`] bytes for each entry of the ring.
    pub(crate) side_ring: SideBuffer,
}

/// Memory for data of one round that does not fit in an entry, of which readers learn by the entry. Only the owner uses
/// these fields.
pub(crate) struct SideBuffer {
    /// Null until it is needed.
    pub(crate) base: AtomicPtr<u8>,
    /// The round whose data it holds.
    pub(crate) round: AtomicU64,
}

impl SideBuffer {
    /// Room of [`SIDE_BYTES`] bytes; null when memory is short.
    pub(crate) fn room(&self) -> *mut u8 {
        self.room_of(Self::LAYOUT)
    }

    /// Room of [`BESIDE_ENTRY`] bytes for each entry of a ring; null when memory is short.
    pub(crate) fn room_of_ring(&self) -> *mut u8 {
        self.room_of(Self::RING_LAYOUT)
    }

    fn room_of(&self, layout: Layout) -> *mut u8 {
        let base = self.base.load(Ordering::Relaxed);
        if !base.is_null() {
            return base;
        }
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc(layout) };
        self.base.store(base, Ordering::Relaxed);
        base
    }

    const LAYOUT: Layout = match Layout::from_size_align(SIDE_BYTES, 64) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    };

    const RING_LAYOUT: Layout = match Layout::from_size_align(RING * BESIDE_ENTRY, 64) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    };

    /// Frees the room of this layout, which nobody uses any more.
    fn free(&self, layout: Layout) {
        let base = self.base.load(Ordering::Relaxed);
        if !base.is_null() {
            // SAFETY: allocated in `room_of` with the same layout, as callers say.
            unsafe { dealloc(base, layout) };
        }
    }
}

/// One member's view of the members on its node.
#[derive(Clone, Copy)]
pub(crate) struct LocalGroup<'a> {
    /// The witness of the call, and so the calling rank.
    pub(crate) owner: Owner<'a>,
    /// The caller's place among them.
    pub(crate) me: u32,
    /// Who they are.
    pub(crate) members: &'a [Peer],
    /// What they share.
    pub(crate) shared: &'a LocalShared,
    /// What the caller's posts bear.
    pub(crate) label: Label,
}

impl<'a> LocalGroup<'a> {
    /// The calling rank.
    #[inline]
    pub(crate) fn rank(&self) -> &'a Rank {
        self.owner.rank()
    }

    /// How many they are.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.members.len()
    }

    /// The caller's place, as an index.
    #[inline]
    pub(crate) fn me(&self) -> usize {
        self.me as usize
    }

    /// Whether ranks outnumber CPUs, as all members take it.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.shared.is_crowded
    }

    /// The first place of the chain of batches in which nonblocking collectives have their rows.
    #[inline]
    pub(crate) fn rows(&self) -> &'a Link<Lane, ()> {
        &self.shared.rows
    }

    /// Where the caller is in that chain.
    #[inline]
    pub(crate) fn cursor(&self) -> &'a Cursor {
        &self.shared.slots()[self.me()].own.rows
    }

    /// The caller's place in the chain of the group's pools.
    pub(crate) fn place(&self) -> Place<'a> {
        Place {
            first: &self.shared.pools,
            cursor: &self.shared.slots()[self.me()].own.cursor,
            me: self.me,
            size: self.members.len() as u32,
        }
    }
}

/// What the members on one node share. See the module page.
pub(crate) struct LocalShared {
    slots: NonNull<Slot>,
    size: u32,
    /// The communicator's collective context.
    pub(crate) context: u32,
    /// Whether ranks outnumbered CPUs when this was made. Members choose ways by it, and must choose the same: what the
    /// node says changes while it runs, between the call of one member and that of the next.
    is_crowded: bool,
    /// Where the members meet for pools, other than those of nonblocking collectives.
    pools: Link<Part, Plan>,
    /// Where nonblocking collectives meet.
    rows: Link<Lane, ()>,
    /// Choices of rounds, by number.
    pub(crate) choices: CacheLine<[AtomicU64; RING]>,
    /// Members that wait for completions, or sleep until all have posted.
    pub(crate) watchers: CacheLine<AtomicU32>,
    /// Members that sleep until those before them have posted, and are not among the watchers.
    pub(crate) sleepers: CacheLine<AtomicU32>,
    /// Arrivals at the barriers of large groups, all of them together.
    pub(crate) arrivals: CacheLine<AtomicU64>,
    /// Barriers of large groups that everyone has arrived at.
    pub(crate) barriers: CacheLine<AtomicU64>,
}

// SAFETY: slots are atomics, and cells that the protocol of the module page lends to one
// writer or to readers.
unsafe impl Send for LocalShared {}
// SAFETY: as above.
unsafe impl Sync for LocalShared {}

impl LocalShared {
    /// What `size` members of the communicator with this context share, where ranks outnumber CPUs or not. Owner-only:
    /// it allocates.
    pub(crate) fn new(size: u32, context: u32, is_crowded: bool) -> Self {
        let layout = Self::layout(size);
        // SAFETY: the layout is not empty: a communicator has a member.
        let slots = unsafe { alloc_zeroed(layout) }.cast::<Slot>();
        // All fields of a slot are valid when zero.
        let Some(slots) = NonNull::new(slots) else { handle_alloc_error(layout) };
        Self {
            slots,
            size,
            context,
            is_crowded,
            pools: Link::new(),
            rows: Link::new(),
            choices: CacheLine([const { AtomicU64::new(0) }; RING]),
            watchers: CacheLine(AtomicU32::new(0)),
            sleepers: CacheLine(AtomicU32::new(0)),
            arrivals: CacheLine(AtomicU64::new(0)),
            barriers: CacheLine(AtomicU64::new(0)),
        }
    }

    fn layout(size: u32) -> Layout {
        Layout::array::<Slot>(size.max(1) as usize).expect("a communicator fits in memory")
    }

    /// How many members they are.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// One slot for each member.
    #[inline]
    pub(crate) fn slots(&self) -> &[Slot] {
        // SAFETY: `new` allocated and zeroed this many slots, which live as long as `self`.
        unsafe { core::slice::from_raw_parts(self.slots.as_ptr(), self.size as usize) }
    }
}

impl Drop for LocalShared {
    fn drop(&mut self) {
        let slots = self.slots().iter().zip(0..);
        slots.for_each(|(slot, me)| slot.free(me));
        // SAFETY: allocated in `new` with the same layout.
        unsafe { dealloc(self.slots.as_ptr().cast(), Self::layout(self.size)) };
    }
}

//! Where members that begin one operation again and again exchange a few bytes each time.
//!
//! # Protocol
//! Each member has a *lane*: a ring of [`ROUNDS`] entries, which only it writes, and the number of the last start that
//! it has completed. The *n*-th start uses the entry *n* % [`ROUNDS`] of each lane.
//! ```text
//! member that posts                          member that awaits the post
//! P1 knows that all readers have
//!    completed start n - ROUNDS
//! P2 writes its data
//! P3 entry.start = n       (Release)         A1 sees entry.start == n  (Acquire)
//! P4 fence, or a light barrier               A2 reads the data
//! P5 wakes whom it may have to               A3 lane.completed = n     (Release)
//! ```
//! * An entry's numbers only grow, and A1 pairs with P3: who has seen *n* there reads the data of start *n*, as long as
//!   nobody writes the entry again.
//! * Nobody does before A3: P1 of start *n* + [`ROUNDS`] demands it. A member that only posts learns it from
//!   `completed` (Acquire, pairs with A3: all reads of the data came before). Where each awaits the posts of all
//!   (barrier, allreduce), the posts themselves say it: who posts in start *n* - 1 has completed *n* - 2.
//!   So P1 holds without a look if there are two rounds or more.
//! * A start is not begun before the one before is complete, and one is complete only when P1 holds of the next: no
//!   start ever waits.
//!
//! # Who wakes whom
//! A sleeper announces its sleep, passes its heavy barrier and looks once more. Who posts something that one member is
//! enough for, or completes a start, passes the light barrier (P4) and wakes. Where a member awaits the posts of all,
//! only the last to post wakes. All posters pass a full fence between P3 and a look at all posts, so the last of these
//! fences comes after all posts: its poster sees them all and wakes. If a sleeper missed some post at its last look,
//! that post came after its heavy barrier, so the last fence did too, and the poster behind it sees the announcement.
//! Of two members the one that misses the other's post is the one that sleeps or goes on to look, so the light barrier
//! is enough.
//!
//! A root that waits for room awaits the completions of all its readers, and these are many. So a reader that finds it
//! asleep, behind the light barrier, wakes it only if all other readers have completed the start too. Each of them
//! passes a full fence between A3 and that look; so of those that complete the start as the last ones, one sees all.

use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use cohort_core::record::RecordRef;
use core::cell::UnsafeCell;
use core::ops::Range;
use core::ptr::NonNull;

/// Starts that a member may run ahead of the readers of its entries.
pub(crate) const ROUNDS: usize = if cfg!(loom) { 2 } else { 16 };

/// Bytes that an entry carries.
pub(crate) const ROOM: usize = 48;

/// What one member posts in one start: a cache line.
#[repr(C, align(64))]
#[derive(Debug)]
struct Entry {
    start: AtomicU64,
    _unused: u64,
    data: UnsafeCell<[u64; ROOM / 8]>,
}

/// One member's part.
#[repr(C, align(128))]
#[derive(Debug)]
struct Lane {
    entries: [Entry; ROUNDS],
    completed: CacheLine<AtomicU64>,
}

/// See the module page. The lanes lie behind it in the same block.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Board {
    references: AtomicU32,
    size: u32,
    lanes: *const Lane,
}

// SAFETY: lanes are atomics, and cells that the protocol lends to one writer or to readers.
unsafe impl Sync for Board {}
// SAFETY: as above.
unsafe impl Send for Board {}

impl Entry {
    fn new() -> Self {
        Self { start: AtomicU64::new(0), _unused: 0, data: UnsafeCell::new([0; ROOM / 8]) }
    }
}

impl Board {
    /// Alignment of a board's memory.
    pub(crate) const ALIGN: usize = align_of::<Self>();

    /// Bytes of a board's memory.
    pub(crate) fn bytes(size: u32) -> usize {
        size_of::<Self>() + size as usize * size_of::<Lane>()
    }

    /// Makes the board of `size` members in a block, with one reference for each of them.
    ///
    /// # Safety
    /// The block has [`Board::bytes`], and nobody else uses it.
    pub(crate) unsafe fn make(block: NonNull<u8>, size: u32) -> RecordRef<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            let lanes = block.add(size_of::<Self>()).cast::<Lane>();
            for member in 0..size as usize {
                lanes.add(member).write(Lane {
                    entries: core::array::from_fn(|_| Entry::new()),
                    completed: CacheLine(AtomicU64::new(0)),
                });
            }
            let board = block.cast::<Self>();
            board.write(Self { references: AtomicU32::new(size), size, lanes: lanes.as_ptr() });
            RecordRef::new(board)
        }
    }

    /// Gives a member's reference back. Whoever gives back the last one gets the memory to free.
    ///
    /// # Safety
    /// The caller has the reference and does not use the board any more.
    #[must_use = "the memory is to be freed"]
    pub(crate) unsafe fn release(this: RecordRef<Self>) -> Option<NonNull<u8>> {
        if this.references.fetch_sub(1, Ordering::Release) != 1 {
            return None;
        }
        // Pairs with the Release of the other members.
        fence(Ordering::Acquire);
        // SAFETY: the last reference is gone.
        unsafe {
            let lanes = this.lanes.cast_mut();
            (0..this.size as usize).for_each(|member| lanes.add(member).drop_in_place());
            this.as_ptr().drop_in_place();
        }
        Some(this.as_non_null().cast())
    }

    /// Number of members.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn lane(&self, member: u32) -> &Lane {
        debug_assert!(member < self.size);
        // SAFETY: there is one for each member.
        unsafe { &*self.lanes.add(member as usize) }
    }

    #[inline]
    fn entry(&self, member: u32, start: u64) -> &Entry {
        &self.lane(member).entries[start as usize % ROUNDS]
    }

    /// P2 and P3: posts what `fill` writes, at most [`ROOM`] bytes.
    ///
    /// # Safety
    /// The caller is `member`, and P1 holds.
    #[inline]
    pub(crate) unsafe fn post(&self, member: u32, start: u64, fill: impl FnOnce(*mut u8)) {
        let entry = self.entry(member, start);
        fill(entry.data.get().cast());
        entry.start.store(start, Ordering::Release);
    }

    /// A1.
    #[inline]
    pub(crate) fn has_posted(&self, member: u32, start: u64) -> bool {
        self.entry(member, start).start.load(Ordering::Acquire) == start
    }

    /// A2: where the data is.
    #[inline]
    pub(crate) fn data_of(&self, member: u32, start: u64) -> *const u8 {
        self.entry(member, start).data.get().cast()
    }

    /// A3: the caller, which is `member`, reads nothing of this start or of earlier ones any more.
    #[inline]
    pub(crate) fn complete(&self, member: u32, start: u64) {
        let completed: &AtomicU64 = &self.lane(member).completed;
        completed.store(start, Ordering::Release);
    }

    /// P4 of a member of three or more, and whether it sees all posts of this start.
    #[inline]
    pub(crate) fn is_last(&self, start: u64) -> bool {
        fence(Ordering::SeqCst);
        (0..self.size).all(|member| self.has_posted(member, start))
    }

    /// Whether a reader that has completed `start` sees that all members but the `root` have.
    pub(crate) fn is_last_reader(&self, root: u32, start: u64) -> bool {
        fence(Ordering::SeqCst);
        self.latest(0..root).min(self.latest(root + 1..self.size)) >= start
    }

    /// P1: whether readers that have completed start `latest` leave room for a post in start `start`.
    #[inline]
    pub(crate) fn is_room(latest: u64, start: u64) -> bool {
        latest + ROUNDS as u64 >= start
    }

    /// The last start that all of these members have completed.
    #[inline]
    pub(crate) fn latest(&self, readers: Range<u32>) -> u64 {
        let completed = readers.map(|it| self.lane(it).completed.load(Ordering::Acquire));
        completed.min().unwrap_or(u64::MAX - ROUNDS as u64)
    }
}

#[cfg(test)]
mod tests;

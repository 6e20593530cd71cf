//! Rows of batches in the heaps of ranks, as a member walks along them.

use super::kept::Kept;
use super::part::{Part, Plan, Pool};
use crate::args::small::{Agreed, Memory};
use crate::batch::{self, Entry, ROWS, SIDE_ALIGN};
use crate::meeting::{Link, Meeting, at};
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_datatype::Buffer;
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// One member's part of a batch.
pub(crate) type Lane = batch::Lane<Rest>;

/// A batch; its meeting is never opened.
pub(crate) type Batch = Meeting<Lane, ()>;

/// What a lane has besides its entries. All-zero memory is one of a new batch.
#[derive(Debug)]
pub(crate) struct Rest {
    /// Of the lane of member 0: where members of larger operations meet.
    meetings: [Link<Part, Plan>; ROWS],
    /// The same: whether any lane has [sides](Side).
    has_sides: AtomicBool,
    /// What the member gives that is longer than an entry: the block that was made last. The member's alone, until the
    /// batch goes.
    side: AtomicPtr<Side>,
    /// Operations of the member that are over, and one more when its cursor has moved on: the last of these events
    /// gives the member's reference back.
    events: AtomicU32,
    /// What the member itself has to do in each row.
    operations: [UnsafeCell<MaybeUninit<RowOperation>>; ROWS],
}

// SAFETY: operations are used by their member only.
unsafe impl Sync for Rest {}
// SAFETY: as above; the pointers in them lead to the member's buffers.
unsafe impl Send for Rest {}

/// The head of a block of a batch's memory for long data, which follows it.
#[repr(C, align(64))]
#[derive(Debug)]
struct Side {
    /// The one that was made before, or null.
    before: *mut Self,
    /// Bytes behind the head, and how many of them are given out.
    room: usize,
    used: usize,
}

/// Bytes of a block that is made for several rows: with its head the longest that a heap has a class for.
const SIDE_MAX: usize = cohort_alloc::class::SMALL_MAX - size_of::<Side>();

const _: () = assert!(align_of::<Side>() == SIDE_ALIGN);

/// What a member has to do in a small operation.
#[derive(Debug)]
pub(crate) struct RowOperation {
    pub(crate) agreed: Agreed,
    pub(crate) memory: Memory,
    /// Where the member receives, or the first block of it, where that is no run of bytes.
    pub(crate) room: Option<Buffer<'static>>,
    /// Bytes of that block.
    pub(crate) block: u64,
    /// The word that it has put there.
    pub(crate) word: u64,
    pub(crate) rank: &'static Rank,
    /// Members that have posted.
    pub(crate) seen: Cell<u32>,
    /// What it keeps of an operation whose blocks have any length.
    pub(crate) kept: Option<NonNull<Kept>>,
    /// Where it waits for what others copy, if that is more than it expects.
    pub(crate) meeting: Cell<Option<RecordRef<Pool>>>,
    pub(crate) outcome: Cell<RowOutcome>,
}

/// How a member's operation has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowOutcome {
    /// It is under way.
    Pending,
    /// With [`Status::EMPTY`], which is not written and read each time.
    Success,
    /// With an error.
    Failure(Status),
}

impl RowOutcome {
    /// That of an operation which has ended so.
    pub(crate) fn of(status: Status) -> Self {
        match status.error {
            Status::SUCCESS => Self::Success,
            _ => Self::Failure(status),
        }
    }
}

/// Where a member is in the chain of batches. All-zero memory is a beginning.
#[derive(Debug)]
pub(crate) struct Cursor {
    batch: AtomicPtr<Batch>,
    /// The next row in it.
    row: AtomicU32,
    /// Operations in it that were over for the member when their calls returned, and are not counted in its lane yet.
    over: AtomicU32,
    /// Batches in turn that the member was the first to come to.
    made: AtomicU32,
}

/// Batches that a member makes in turn before it [runs ahead](Cursor::runs_ahead): as many operations as a blocking
/// broadcast's root may be ahead of its readers.
const AHEAD: u32 = 8;

/// The same before a root that gives long data waits for the others once, so that what it has given does not pile up.
const FAR_AHEAD: u32 = 32;

/// A row, as one member sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    batch: RecordRef<Batch>,
    pub(crate) me: u32,
    number: u32,
}

// SAFETY: batches are shared.
unsafe impl Send for Row {}

impl Cursor {
    /// The next row of the member `me`. It stays the next one until [`Cursor::advance`] or [`Cursor::leave_behind`].
    /// `None`: it is the first one of the next batch.
    ///
    /// Relaxed order: one thread of the member at a time is here, as MPI demands.
    #[inline]
    pub(crate) fn next(&self, me: u32) -> Option<Row> {
        let batch = at(&self.batch)?;
        let number = self.row.load(Ordering::Relaxed);
        ((number as usize) < ROWS).then_some(Row { batch, me, number })
    }

    /// Row 0 of the member's next batch. `None` when there is no memory.
    pub(crate) fn next_batch(
        &self,
        first: &Link<Lane, ()>,
        (me, size): (u32, u32),
        claim: &mut Claim<'_>,
    ) -> Option<Row> {
        let before = at(&self.batch);
        let link = before.as_ref().map_or(first, |it| it.next());
        let mut is_made = false;
        let allocate = |bytes| {
            is_made = true;
            let block = claim.alloc_aligned(bytes, Batch::ALIGN)?;
            // SAFETY: a fresh block of that length.
            unsafe { block.write_bytes(0, bytes) };
            Some(block)
        };
        // SAFETY: the block was just allocated.
        let batch = link.join(size, allocate, |block| unsafe { Heap::free(block) })?;
        self.batch.store(batch.as_ptr(), Ordering::Relaxed);
        self.row.store(0, Ordering::Relaxed);
        let made = self.made.load(Ordering::Relaxed).wrapping_add(1);
        self.made.store(if is_made { made } else { 0 }, Ordering::Relaxed);
        if let Some(before) = before {
            let over = self.over.load(Ordering::Relaxed);
            self.over.store(0, Ordering::Relaxed);
            // SAFETY: the cursor has moved on, and these operations are over.
            unsafe { count_events(before, me, 1 + over, true) };
        }
        Some(Row { batch, me, number: 0 })
    }

    /// Whether the member has just made so many batches in turn that the others are far behind.
    pub(crate) fn runs_ahead(&self) -> bool {
        let made = self.made.load(Ordering::Relaxed);
        made != 0 && made.is_multiple_of(AHEAD)
    }

    /// Whether it has made many more than that.
    pub(crate) fn runs_far_ahead(&self) -> bool {
        self.made.load(Ordering::Relaxed) >= FAR_AHEAD
    }

    /// The member has come to its next row.
    #[inline]
    pub(crate) fn advance(&self) {
        self.row.store(self.row.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The same to the row's meeting, for which its request waits: the member does not use that row any more.
    #[inline]
    pub(crate) fn leave_behind(&self) {
        self.made.store(0, Ordering::Relaxed);
        let over = self.over.load(Ordering::Relaxed) + 1;
        self.over.store(over, Ordering::Relaxed);
        self.advance();
    }

    /// The member `me` comes to no row any more.
    pub(crate) fn end(&self, me: u32) {
        if let Some(batch) = at(&self.batch) {
            let unused = ROWS as u32 - self.row.load(Ordering::Relaxed);
            let events = unused + self.over.load(Ordering::Relaxed) + 1;
            // SAFETY: these rows are not used, and the cursor is not any more.
            unsafe { count_events(batch, me, events, true) };
        }
    }
}

/// Counts events of a member's; `several`: other threads of its rank may do so at the same time. Nobody else does.
///
/// # Safety
/// They have come about, and the caller does not use the batch any more because of them.
#[inline(always)]
unsafe fn count_events(batch: RecordRef<Batch>, me: u32, events: u32, several: bool) {
    // SAFETY: the member's reference is not given back before the last event.
    unsafe {
        let count = &batch.part_of(me).rest().events;
        let sum = match several {
            // AcqRel: whoever gives the reference back does so after all that came before the other events.
            true => count.fetch_add(events, Ordering::AcqRel) + events,
            false => {
                let sum = count.load(Ordering::Relaxed) + events;
                count.store(sum, Ordering::Relaxed);
                sum
            }
        };
        if sum == ROWS as u32 + 1 {
            release_batch(batch);
        }
    }
}

/// Gives a member's reference to a batch back; the last one's sides go with it.
///
/// # Safety
/// As for [`Meeting::release`].
unsafe fn release_batch(batch: RecordRef<Batch>) {
    // SAFETY: lanes are made with the batch. Behind its last reference nobody is there but the caller, and the memory
    // stays until it is freed below. Sides came from a rank's heap.
    unsafe {
        let (lanes, size) = (core::ptr::from_ref(batch.part_of(0)), batch.members() as usize);
        let Some(block) = Meeting::release(batch) else {
            return;
        };
        if (*lanes).rest().has_sides.load(Ordering::Relaxed) {
            for member in 0..size {
                let mut side = (*lanes.add(member)).rest().side.load(Ordering::Relaxed);
                while let Some(it) = NonNull::new(side) {
                    side = it.as_ref().before;
                    Heap::free(it.cast());
                }
            }
        }
        Heap::free(block);
    }
}

impl Row {
    /// Number of members.
    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.batch().members() as u32
    }

    #[inline]
    fn batch(&self) -> &Batch {
        &self.batch
    }

    #[inline]
    fn lane(&self, member: u32) -> &Lane {
        // SAFETY: lanes are made with the batch.
        unsafe { self.batch().part_of(member) }
    }

    /// A member's entry.
    #[inline]
    pub(crate) fn entry(&self, member: u32) -> &Entry {
        self.lane(member).entry(self.number as usize)
    }

    /// All entries.
    #[inline]
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        (0..self.size()).map(|it| self.entry(it))
    }

    /// Memory for so many bytes of what the member gives in this row, which stays as long as the batch. `None` when
    /// there is none left.
    #[cold]
    pub(crate) fn side(&self, bytes: u64, allocate: impl FnOnce(usize) -> Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        let bytes = (bytes as usize).next_multiple_of(align_of::<Side>());
        let rest = self.lane(self.me).rest();
        let last = rest.side.load(Ordering::Relaxed);
        // SAFETY: sides are the member's, of which one thread at a time begins an operation.
        unsafe {
            let mut side = last;
            if last.is_null() || (*last).room - (*last).used < bytes {
                let rows = (SIDE_MAX / bytes).clamp(1, ROWS - self.number as usize);
                let room = bytes * rows;
                side = allocate(size_of::<Side>() + room)?.as_ptr().cast();
                side.write(Side { before: last, room, used: 0 });
                rest.side.store(side, Ordering::Relaxed);
                let has_sides = &self.lane(0).rest().has_sides;
                // Relaxed: whoever frees the batch does so after all members have given it back.
                if !has_sides.load(Ordering::Relaxed) {
                    has_sides.store(true, Ordering::Relaxed);
                }
            }
            let at = side.cast::<u8>().add(size_of::<Side>() + (*side).used);
            (*side).used += bytes;
            NonNull::new(at)
        }
    }

    /// Where members of a larger operation meet.
    pub(crate) fn meeting(&self) -> &Link<Part, Plan> {
        &self.lane(0).rest().meetings[self.number as usize]
    }

    /// Keeps what the member has to do.
    ///
    /// # Safety
    /// The caller is the member, which has not begun its operation.
    #[inline]
    pub(crate) unsafe fn begin(&self, operation: RowOperation) {
        let cell = &self.lane(self.me).rest().operations[self.number as usize];
        // SAFETY: the caller's promise.
        unsafe { (*cell.get()).write(operation) };
    }

    /// What the member has to do.
    ///
    /// # Safety
    /// The caller is the member, which has begun its operation.
    #[inline]
    pub(crate) unsafe fn operation(&self) -> &RowOperation {
        let cell = &self.lane(self.me).rest().operations[self.number as usize];
        // SAFETY: the caller's promise.
        unsafe { (*cell.get()).assume_init_ref() }
    }

    /// What identifies the row.
    pub(crate) fn key(&self) -> u64 {
        core::ptr::from_ref(self.entry(0)).addr() as u64
    }

    /// The member's operation in this row is over; `several`: its rank has several threads in calls.
    ///
    /// # Safety
    /// Once, and the caller does not use the row any more.
    #[inline]
    pub(crate) unsafe fn end(self, several: bool) {
        // SAFETY: the caller's promise.
        unsafe { count_events(self.batch, self.me, 1, several) };
    }

    /// The row's meeting, with a reference for the caller. `None` when there is no memory.
    pub(crate) fn join(&self, claim: &mut Claim<'_>) -> Option<RecordRef<Pool>> {
        self.meeting().join(
            self.size(),
            |bytes| claim.alloc_aligned(bytes, Pool::ALIGN),
            // SAFETY: the block was just allocated.
            |block| unsafe { Heap::free(block) },
        )
    }
}

//! Where the members of a communicator meet without waiting for each other.
//!
//! # Chains
//! Operations that all members begin in the same order form a *chain* of meetings: the *n*-th
//! operation of each member belongs to the *n*-th meeting. Whoever comes first to a place in
//! the chain makes the meeting and links it there ([`Link::join`]). Each member has a
//! cursor: the meeting it came to last. A meeting may also begin a chain of its own, its
//! *branch* (the starts of one persistent operation).
//!
//! # One meeting
//! ```text
//! each member                              whoever has time
//! M1 post: writes its part, arrives
//! M2 the last to arrive makes the plan
//!    and opens the meeting                 W1 take a step (only of an open meeting)
//!                                          W2 do it, with the parts and the plan
//!                                          W3 finish it: after the last step, one caller is told
//! ```
//! * Arriving is AcqRel, so the last one sees all parts. `open` is a Release that pairs with the
//!   Acquire in `take`: whoever has a step sees all parts and the plan.
//! * `take` gives each step to one taker: those that took from the front and those that took from the back are counted
//!   in one word. A step is given out as long as their sum is below the number of steps, so the two ends never meet.
//!   `finish` is AcqRel: exactly one caller learns that all steps are finished, and it sees what they did. So what the
//!   parts refer to may be used by a taker between `take` and `finish`, and by the one that is told, who then publishes
//!   completion. A meeting that opens without steps is over for the one who opens it.
//!
//! # Life
//! A meeting begins with one reference for each member's cursor: a member gives it back when its
//! cursor moves on. So the link behind a meeting is followed only by members that hold
//! it, and a meeting is not freed before every member has found it. Requests and workers
//! hold references besides. Whoever gives back the last one frees the memory.

use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use cohort_core::record::RecordRef;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};

/// `steps` before the meeting is open.
const CLOSED: u64 = u64::MAX;

/// A place in a chain: the meeting there, or null as long as nobody has come to it. All-zero
/// memory is such a place.
#[derive(Debug)]
pub(crate) struct Link<P, W>(AtomicPtr<Meeting<P, W>>);

/// Where a taker begins. Those of one end find in their caches what they moved in the operation before, if programs
/// repeat it with the same buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the first step.
    Front,
    /// At the last one.
    Back,
}

/// Takers at both ends.
#[derive(Clone, Copy)]
struct Taken(u64);

impl Taken {
    const BITS: u32 = 32;

    fn front(self) -> u64 {
        self.0 & ((1 << Self::BITS) - 1)
    }

    fn back(self) -> u64 {
        self.0 >> Self::BITS
    }

    fn total(self) -> u64 {
        self.front() + self.back()
    }
}

/// See the module page. Members post a `P` each; the last one adds a `W`, the plan.
#[derive(Debug)]
pub(crate) struct Meeting<P, W> {
    next: Link<P, W>,
    branch: Link<P, W>,
    references: AtomicU32,
    arrived: AtomicU32,
    size: u32,
    /// One for each member, behind the meeting in the same block.
    parts: *mut P,
    plan: UnsafeCell<MaybeUninit<W>>,
    steps: AtomicU64,
    /// Takers from the front (low half) and from the back.
    taken: CacheLine<AtomicU64>,
    finished: CacheLine<AtomicU64>,
}

// SAFETY: the cells are lent to one writer and then to readers, as the module page says.
unsafe impl<P: Send, W: Send> Sync for Meeting<P, W> {}
// SAFETY: as above.
unsafe impl<P: Send, W: Send> Send for Meeting<P, W> {}

impl<P, W> Link<P, W> {
    /// An empty place.
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// The meeting at this place, if somebody has come to it.
    #[cfg(not(loom))]
    pub(crate) fn existing(&self) -> Option<RecordRef<Meeting<P, W>>> {
        self.look()
    }

    fn look(&self) -> Option<RecordRef<Meeting<P, W>>> {
        // SAFETY: a meeting that is linked is there as long as a member has not found it, and so for whoever looks.
        // Acquire pairs with the Release of the swap below: the meeting is initialised.
        NonNull::new(self.0.load(Ordering::Acquire)).map(|meeting| unsafe { RecordRef::new(meeting) })
    }

    /// The meeting at this place, which is made in memory from `allocate` if the caller is the first
    /// here; `free` takes that memory back if somebody else was faster. `None` when there is no
    /// memory; then nothing has changed.
    pub(crate) fn join(
        &self,
        size: u32,
        allocate: impl FnOnce(usize) -> Option<NonNull<u8>>,
        free: impl FnOnce(NonNull<u8>),
    ) -> Option<RecordRef<Meeting<P, W>>> {
        if let Some(meeting) = self.look() {
            return Some(meeting);
        }
        let made = allocate(Meeting::<P, W>::bytes(size))?.cast::<Meeting<P, W>>();
        // SAFETY: the block has room for the meeting and its parts.
        unsafe {
            let parts = made.cast::<u8>().add(Meeting::<P, W>::PARTS).cast::<P>();
            made.write(Meeting::new(size, parts.as_ptr()));
        }
        let swapped = self.0.compare_exchange(null_mut(), made.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
        match swapped {
            // SAFETY: the last reference frees it.
            Ok(_) => Some(unsafe { RecordRef::new(made) }),
            Err(_) => {
                // SAFETY: nobody else knows it.
                unsafe { made.drop_in_place() };
                free(made.cast());
                self.look()
            }
        }
    }
}

impl<P, W> Meeting<P, W> {
    /// Offset of the parts, behind the meeting itself.
    const PARTS: usize = size_of::<Self>().next_multiple_of(align_of::<P>());

    /// Alignment of a meeting's memory.
    pub(crate) const ALIGN: usize = align_of::<Self>();

    fn bytes(size: u32) -> usize {
        const { assert!(align_of::<P>() <= Self::ALIGN) };
        Self::PARTS + size as usize * size_of::<P>()
    }

    fn new(size: u32, parts: *mut P) -> Self {
        Self {
            next: Link::new(),
            branch: Link::new(),
            references: AtomicU32::new(size),
            arrived: AtomicU32::new(0),
            size,
            parts,
            plan: UnsafeCell::new(MaybeUninit::uninit()),
            steps: AtomicU64::new(CLOSED),
            taken: CacheLine(AtomicU64::new(0)),
            finished: CacheLine(AtomicU64::new(0)),
        }
    }

    /// A meeting to which nobody comes: whoever has it opens it, to share work. It lies where its owner wants, and has
    /// no references.
    pub(crate) fn of_nobody() -> Self {
        Self::new(0, null_mut())
    }

    /// Number of members.
    pub(crate) fn members(&self) -> u64 {
        u64::from(self.size)
    }

    /// Number of members that have come.
    pub(crate) fn arrived(&self) -> u32 {
        self.arrived.load(Ordering::Acquire)
    }

    /// The place behind this meeting.
    pub(crate) fn next(&self) -> &Link<P, W> {
        &self.next
    }

    /// The first place of this meeting's own chain.
    pub(crate) fn branch(&self) -> &Link<P, W> {
        &self.branch
    }

    /// Posts the part of `member`; `true` for the last of all members, who then calls
    /// [`Meeting::open`].
    ///
    /// # Safety
    /// The caller is `member`, which is below the size; each member posts once.
    #[must_use]
    pub(crate) unsafe fn post(&self, member: u32, part: P) -> bool {
        // SAFETY: the caller's promise, and `room` is a part's.
        unsafe { self.post_in_place(member, |room| room.write(part)) }
    }

    /// [`Meeting::post`] of a part that `write` puts where it is told to.
    ///
    /// # Safety
    /// As for [`Meeting::post`]; `write` writes all of the part.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn post_in_place(&self, member: u32, write: impl FnOnce(*mut P)) -> bool {
        debug_assert!(member < self.size);
        // SAFETY: there is a part for each member; only this one writes it, before it arrives.
        write(unsafe { self.parts.add(member as usize) });
        self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.size
    }

    /// The part of one member, for whoever may use the parts.
    ///
    /// # Safety
    /// The caller was told by [`Meeting::post`] that it is the last, or knows the meeting to be open. (What
    /// a part refers to is a matter of its own: see the module page.)
    pub(crate) unsafe fn part_of(&self, member: u32) -> &P {
        debug_assert!(member < self.size);
        // SAFETY: all members have written theirs, and nobody writes again.
        unsafe { &*self.parts.add(member as usize) }
    }

    /// The parts of all members, for whoever may use them.
    ///
    /// # Safety
    /// As for [`Meeting::part_of`].
    pub(crate) unsafe fn all(&self) -> &[P] {
        // SAFETY: all members have written theirs, and nobody writes again.
        unsafe { core::slice::from_raw_parts(self.parts, self.size as usize) }
    }

    /// The parts of all members, if the meeting is open.
    #[cfg(not(loom))]
    pub(crate) fn parts(&self) -> Option<&[P]> {
        // SAFETY: it is open.
        self.plan().map(|_| unsafe { self.all() })
    }

    /// Opens the meeting for work.
    ///
    /// # Safety
    /// The caller was told that it is the last to arrive, or nobody arrives and it alone opens; once.
    pub(crate) unsafe fn open(&self, plan: W, steps: u64) {
        debug_assert!(steps < 1 << (Taken::BITS - 1));
        // SAFETY: nobody reads the plan before `steps` is stored.
        unsafe { (*self.plan.get()).write(plan) };
        // Release pairs with the Acquire in `take`.
        self.steps.store(steps, Ordering::Release);
    }

    /// The plan, if the meeting is open.
    pub(crate) fn plan(&self) -> Option<&W> {
        // Acquire pairs with the Release in `open`.
        let is_open = self.steps.load(Ordering::Acquire) != CLOSED;
        // SAFETY: written before the meeting was opened, and never again.
        is_open.then(|| unsafe { (*self.plan.get()).assume_init_ref() })
    }

    /// The plan, if the meeting is open and has steps that nobody took yet: a hint.
    pub(crate) fn pending(&self) -> Option<&W> {
        let steps = self.steps.load(Ordering::Acquire);
        let pending = steps != CLOSED && self.taken() < steps;
        // SAFETY: written before the meeting was opened, and never again.
        pending.then(|| unsafe { (*self.plan.get()).assume_init_ref() })
    }

    /// Whether all steps are finished; what they did is then visible.
    pub(crate) fn is_finished(&self) -> bool {
        let steps = self.steps.load(Ordering::Acquire);
        // Acquire pairs with the AcqRel in `finish`.
        steps != CLOSED && self.finished.load(Ordering::Acquire) >= steps
    }

    /// Whether all steps are taken.
    pub(crate) fn is_exhausted(&self) -> bool {
        let steps = self.steps.load(Ordering::Acquire);
        steps != CLOSED && self.taken() >= steps
    }

    /// Takers so far, also those that came too late.
    fn taken(&self) -> u64 {
        Taken(self.taken.load(Ordering::Relaxed)).total()
    }

    /// A step that nobody else gets, and the plan.
    pub(crate) fn take(&self, end: End) -> Option<(u64, &W)> {
        let plan = self.pending()?;
        let steps = self.steps.load(Ordering::Relaxed);
        // Those that come too late are as many as there are tasks at a time, so no half overflows.
        let one = match end {
            End::Front => 1,
            End::Back => 1 << Taken::BITS,
        };
        let before = Taken(self.taken.fetch_add(one, Ordering::Relaxed));
        let step = match end {
            End::Front => before.front(),
            End::Back => steps.wrapping_sub(before.back() + 1),
        };
        (before.total() < steps).then_some((step, plan))
    }

    /// Says that a taken step is done; `true` for the one call after which all are.
    #[must_use]
    pub(crate) fn finish(&self) -> bool {
        let finished = self.finished.fetch_add(1, Ordering::AcqRel) + 1;
        finished == self.steps.load(Ordering::Relaxed)
    }

    /// One reference more, by the holder of one.
    pub(crate) fn retain(&self) {
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives a reference back. Whoever gives back the last one gets the memory to free.
    ///
    /// # Safety
    /// The caller has the reference and does not use the meeting any more.
    #[must_use = "the memory is to be freed"]
    pub(crate) unsafe fn release(this: RecordRef<Self>) -> Option<NonNull<u8>> {
        let before = this.references.fetch_sub(1, Ordering::Release);
        if before != 1 {
            return None;
        }
        // Pairs with the Release of the other holders.
        fence(Ordering::Acquire);
        // SAFETY: the last reference is gone.
        unsafe { this.as_ptr().drop_in_place() };
        Some(this.as_non_null().cast())
    }
}

#[cfg(not(loom))]
mod chain;
#[cfg(test)]
mod tests;

#[cfg(not(loom))]
pub(crate) use chain::{Chain, Place, at, release, release_cursor};

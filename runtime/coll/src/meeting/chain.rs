//! Chains of meetings in the heaps of ranks, as a member walks along them.

use super::{Link, Meeting};
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicPtr, Ordering};
use cohort_core::claim::Claim;
use cohort_core::record::RecordRef;
use core::fmt;
use core::ptr::{NonNull, null_mut};

/// The place of member `me` in a chain of meetings of `size` members.
pub(crate) struct Place<'a, P, W> {
    pub(crate) first: &'a Link<P, W>,
    /// The meeting that the member came to last, or null.
    pub(crate) cursor: &'a AtomicPtr<Meeting<P, W>>,
    pub(crate) me: u32,
    pub(crate) size: u32,
}

impl<P, W> Place<'_, P, W> {
    /// Moves the member's cursor to its next meeting. `None` when there is no memory.
    pub(crate) fn advance(&self, claim: &mut Claim<'_>) -> Option<RecordRef<Meeting<P, W>>> {
        // Relaxed: one thread of the member at a time is here, as MPI demands.
        let before = at(self.cursor);
        let link = before.as_ref().map_or(self.first, |before| before.next());
        let meeting = link.join(
            self.size,
            |bytes| claim.alloc_aligned(bytes, Meeting::<P, W>::ALIGN),
            // SAFETY: the block was just allocated.
            |block| unsafe { Heap::free(block) },
        )?;
        self.cursor.store(meeting.as_ptr(), Ordering::Relaxed);
        if let Some(before) = before {
            // SAFETY: the cursor's reference.
            unsafe { release(before) };
        }
        Some(meeting)
    }
}

/// The meeting that a cursor's member came to last. Its cursor has a reference.
pub(crate) fn at<P, W>(cursor: &AtomicPtr<Meeting<P, W>>) -> Option<RecordRef<Meeting<P, W>>> {
    // SAFETY: only meetings that were joined are put there, each with a reference.
    NonNull::new(cursor.load(Ordering::Relaxed)).map(|meeting| unsafe { RecordRef::new(meeting) })
}

/// Gives a cursor's reference back.
pub(crate) fn release_cursor<P, W>(cursor: &AtomicPtr<Meeting<P, W>>) {
    if let Some(last) = at(cursor) {
        cursor.store(null_mut(), Ordering::Relaxed);
        // SAFETY: the cursor's reference.
        unsafe { release(last) };
    }
}

/// Gives a reference back. By any task.
///
/// # Safety
/// The caller has it and does not use the meeting any more, whose memory came from some rank's heap.
pub(crate) unsafe fn release<P, W>(meeting: RecordRef<Meeting<P, W>>) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(block) = Meeting::release(meeting) {
            Heap::free(block);
        }
    }
}

/// A chain that begins at a meeting of another one, its *anchor*, as one member sees it.
pub(crate) struct Chain<P, W> {
    anchor: RecordRef<Meeting<P, W>>,
    cursor: AtomicPtr<Meeting<P, W>>,
    me: u32,
    size: u32,
}

// SAFETY: meetings are shared; the cursor is the owner's.
unsafe impl<P: Send, W: Send> Send for Chain<P, W> {}

impl<P, W> Chain<P, W> {
    /// Begins one at the member's next meeting. `None` when there is no memory.
    pub(crate) fn open(place: &Place<'_, P, W>, claim: &mut Claim<'_>) -> Option<Self> {
        let anchor = place.advance(claim)?;
        anchor.retain();
        Some(Self { anchor, cursor: AtomicPtr::new(null_mut()), me: place.me, size: place.size })
    }

    /// The member's place in it.
    pub(crate) fn place(&self) -> Place<'_, P, W> {
        Place { first: self.anchor.branch(), cursor: &self.cursor, me: self.me, size: self.size }
    }
}

impl<P, W> Chain<P, W> {
    /// The meeting in it that the member came to last. It stays until the member comes to the next one.
    pub(crate) fn latest(&self) -> Option<RecordRef<Meeting<P, W>>> {
        at(&self.cursor)
    }
}

impl<P, W> fmt::Debug for Chain<P, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").finish_non_exhaustive()
    }
}

impl<P, W> Drop for Chain<P, W> {
    fn drop(&mut self) {
        release_cursor(&self.cursor);
        // SAFETY: our reference.
        unsafe { release(self.anchor) };
    }
}

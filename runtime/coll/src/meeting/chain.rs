//! Chains of meetings in the heaps of ranks, as a member walks along them.

use super::{Link, Meeting};
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicPtr, Ordering};
use cohort_core::claim::Claim;
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
    pub(crate) fn advance(&self, claim: &mut Claim<'_>) -> Option<NonNull<Meeting<P, W>>> {
        // Relaxed: one thread of the member at a time is here, as MPI demands.
        let before = self.cursor.load(Ordering::Relaxed);
        // SAFETY: the cursor has a reference.
        let link = unsafe { before.as_ref() }.map_or(self.first, Meeting::next);
        let meeting = link.join(
            self.size,
            |bytes| claim.alloc_aligned(bytes, Meeting::<P, W>::ALIGN),
            // SAFETY: the block was just allocated.
            |block| unsafe { Heap::free(block) },
        )?;
        self.cursor.store(meeting.as_ptr(), Ordering::Relaxed);
        if let Some(before) = NonNull::new(before) {
            // SAFETY: the cursor's reference.
            unsafe { release(before) };
        }
        Some(meeting)
    }
}

/// Gives a cursor's reference back.
pub(crate) fn release_cursor<P, W>(cursor: &AtomicPtr<Meeting<P, W>>) {
    if let Some(last) = NonNull::new(cursor.swap(null_mut(), Ordering::Relaxed)) {
        // SAFETY: the cursor's reference.
        unsafe { release(last) };
    }
}

/// Gives a reference back. By any task.
///
/// # Safety
/// The caller has it and does not use the meeting any more, whose memory came from some rank's heap.
pub(crate) unsafe fn release<P, W>(meeting: NonNull<Meeting<P, W>>) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(block) = Meeting::release(meeting) {
            Heap::free(block);
        }
    }
}

/// A chain that begins at a meeting of another one, its *anchor*, as one member sees it.
pub(crate) struct Chain<P, W> {
    anchor: NonNull<Meeting<P, W>>,
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
        // SAFETY: our cursor's reference.
        unsafe { anchor.as_ref() }.retain();
        Some(Self { anchor, cursor: AtomicPtr::new(null_mut()), me: place.me, size: place.size })
    }

    /// The member's place in it.
    pub(crate) fn place(&self) -> Place<'_, P, W> {
        Place {
            // SAFETY: our reference.
            first: unsafe { self.anchor.as_ref() }.branch(),
            cursor: &self.cursor,
            me: self.me,
            size: self.size,
        }
    }
}

impl<P, W> Chain<P, W> {
    /// The meeting in it that the member came to last. It stays until the member comes to the next one.
    pub(crate) fn latest(&self) -> Option<&Meeting<P, W>> {
        // SAFETY: the cursor has a reference; the owner alone moves it.
        unsafe { self.cursor.load(Ordering::Relaxed).as_ref() }
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

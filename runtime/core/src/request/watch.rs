//! Who is told when the last of several requests is complete.

use crate::ranks::Claim;
use core::cell::Cell;
use core::ptr::null_mut;

/// Waits until several requests of a rank are complete, and then stands in a line of the rank's. All of it under the
/// rank's claim.
#[derive(Debug)]
pub struct Watch {
    /// Requests that are not complete.
    left: u32,
    line: *const Line,
    next: *mut Self,
}

impl Watch {
    /// One that waits for nothing yet.
    pub const fn new(line: &'static Line) -> Self {
        Self { left: 0, line, next: null_mut() }
    }

    /// Whether it waits for requests.
    pub fn is_waiting(&self) -> bool {
        self.left > 0
    }

    /// It waits for one more.
    pub(super) fn add(&mut self) {
        self.left += 1;
    }

    /// One of its requests is complete.
    ///
    /// # Safety
    /// It is valid, and its rank is claimed.
    #[cold]
    pub(super) unsafe fn hear(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe {
            (*this).left -= 1;
            if (*this).left == 0 {
                (*(*this).line).push(this);
            }
        }
    }
}

/// Watches whose requests are complete, in the order in which they were. All-zero memory is an empty one.
#[derive(Debug)]
pub struct Line {
    first: Cell<*mut Watch>,
    last: Cell<*mut Watch>,
}

// SAFETY: touched under the claim of its rank.
unsafe impl Sync for Line {}
// SAFETY: as above.
unsafe impl Send for Line {}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl Line {
    /// Without any.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: Cell::new(null_mut()), last: Cell::new(null_mut()) }
    }

    fn push(&self, watch: *mut Watch) {
        // SAFETY: watches in line stay; the claim is held.
        unsafe {
            (*watch).next = null_mut();
            match self.last.replace(watch) {
                last if last.is_null() => self.first.set(watch),
                last => (*last).next = watch,
            }
        }
    }

    /// Takes the first one, or null. The claim is that of the line's rank.
    #[inline]
    pub fn pop(&self, _claim: &mut Claim<'_>) -> *mut Watch {
        let first = self.first.get();
        if !first.is_null() {
            // SAFETY: as in `push`.
            let next = unsafe { (*first).next };
            self.first.set(next);
            if next.is_null() {
                self.last.set(null_mut());
            }
        }
        first
    }
}

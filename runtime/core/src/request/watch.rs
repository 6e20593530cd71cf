//! Who is told when the last of several requests is complete.

use crate::ranks::Claim;
use crate::record::RecordRef;
use core::cell::Cell;

/// Waits until several requests of a rank are complete, and then stands in a line of the rank's. All of it under the
/// rank's claim.
#[derive(Debug)]
pub struct Watch {
    /// Requests that are not complete.
    left: Cell<u32>,
    line: &'static Line,
    next: Cell<Option<RecordRef<Self>>>,
}

impl Watch {
    /// One that waits for nothing yet.
    pub const fn new(line: &'static Line) -> Self {
        Self { left: Cell::new(0), line, next: Cell::new(None) }
    }

    /// Whether it waits for requests.
    pub fn is_waiting(&self) -> bool {
        self.left.get() > 0
    }

    /// It waits for one more.
    pub(super) fn add(&self) {
        self.left.set(self.left.get() + 1);
    }

    /// One of its requests is complete. Its rank is claimed.
    #[cold]
    pub(super) fn hear(this: RecordRef<Self>) {
        this.left.set(this.left.get() - 1);
        if this.left.get() == 0 {
            this.line.push(this);
        }
    }
}

/// Watches whose requests are complete, in the order in which they were. All-zero memory is an empty one.
#[derive(Debug)]
pub struct Line {
    first: Cell<Option<RecordRef<Watch>>>,
    last: Cell<Option<RecordRef<Watch>>>,
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
        Self { first: Cell::new(None), last: Cell::new(None) }
    }

    fn push(&self, watch: RecordRef<Watch>) {
        watch.next.set(None);
        match self.last.replace(Some(watch)) {
            None => self.first.set(Some(watch)),
            Some(last) => last.next.set(Some(watch)),
        }
    }

    /// Takes the first one. The claim is that of the line's rank.
    #[inline]
    pub fn pop(&self, _claim: &mut Claim<'_>) -> Option<RecordRef<Watch>> {
        let first = self.first.get()?;
        self.first.set(first.next.get());
        if self.first.get().is_none() {
            self.last.set(None);
        }
        Some(first)
    }
}

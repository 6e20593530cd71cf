//! Dealing one long piece of work to whoever comes: chunks are taken with one addition, and
//! whoever finishes the last one knows it.
//!
//! # Protocol
//! * A *reference* keeps the memory of the shares; the one that gives back the last reference frees
//!   it. Only a holder of a reference touches the shares.
//! * [`Shares::take`] gives each byte of `0..total` to exactly one taker.
//! * [`Shares::finish`] counts finished bytes; exactly one call sees the sum reach the total,
//!   and then all chunks are finished. What `total` bytes of work used (buffers, requests) may be
//!   used by a taker between its `take` and its `finish`, and by the last finisher.
//!
//! Orderings: `finish` is AcqRel, so that the last finisher has seen all other finishers' work
//! and can publish it; `release` likewise, so that freeing comes after all uses.

use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use core::ops::Range;

/// See the module page.
#[derive(Debug)]
pub struct Shares {
    references: AtomicU32,
    next: AtomicU64,
    finished: AtomicU64,
    total: u64,
    chunk: u64,
}

impl Shares {
    /// `total` bytes (not 0) in chunks of `chunk`, with this many references.
    pub fn new(total: u64, chunk: u64, references: u32) -> Self {
        debug_assert!(total > 0 && chunk > 0);
        Self {
            references: AtomicU32::new(references),
            next: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            total,
            chunk,
        }
    }

    /// Whether all chunks are taken.
    pub fn is_exhausted(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.total
    }

    /// A chunk that nobody else gets.
    pub fn take(&self) -> Option<Range<u64>> {
        if self.is_exhausted() {
            return None;
        }
        let start = self.next.fetch_add(self.chunk, Ordering::Relaxed);
        (start < self.total).then(|| start..self.total.min(start + self.chunk))
    }

    /// Counts `bytes` finished bytes; `true` for the one call after which all are.
    pub fn finish(&self, bytes: u64) -> bool {
        self.finished.fetch_add(bytes, Ordering::AcqRel) + bytes == self.total
    }

    /// One reference more, by the holder of one.
    pub fn retain(&self) {
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the caller's reference is the only one; what the others did is then visible.
    pub fn is_sole(&self) -> bool {
        // Pairs with the Release of the other holders.
        self.references.load(Ordering::Acquire) == 1
    }

    /// Gives a reference back; `true`: it was the last one, and the caller frees the memory.
    #[must_use]
    pub fn release(&self) -> bool {
        if self.references.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        // Pairs with the Release of the other holders.
        fence(Ordering::Acquire);
        true
    }
}

#[cfg(test)]
mod tests;

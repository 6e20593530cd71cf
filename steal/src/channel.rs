//! A bounded channel from one producer to one consumer: what a rank gives its dedicated worker to post.
//!
//! # Protocol
//! `tail` counts the values that were sent, `head` those that were taken; both count for ever. Value `n` lies
//! in cell `n % CELLS`. The producer alone writes `tail`, the consumer alone `head`.
//!
//! ```text
//! producer                                      consumer
//! P1 tail - head < CELLS? (Acquire) else full   C1 head == tail? (Acquire) then empty
//! P2 write cell tail                            C2 read cell head
//! P3 tail += 1 (Release)                        C3 head += 1 (Release)
//! ```
//!
//! # Why it holds
//! *A value is read whole and once*: P3 pairs with C1, and C3 moves on. *It is not overwritten before it is read*: C3
//! pairs with P1. *Values come out in the order in which they went in*, also for a consumer that is the producer's own
//! task: it sees its own P3. The producer remembers the head that it saw last, which
//! only grows, so that it reads the consumer's line once per lap.
//!
//! "One" means one at a time: successive producers are ordered by whatever excludes them from each other, and so
//! are consumers.

use crate::cell::ValueCell;
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering};

/// The producer's line.
#[derive(Debug)]
struct Producer {
    tail: AtomicU64,
    /// A value that `head` had; the producer's own.
    seen_head: AtomicU64,
}

/// A channel of up to `CELLS` values. See the module page.
#[derive(Debug)]
pub struct SpscQueue<T, const CELLS: usize> {
    producer: CacheLine<Producer>,
    head: CacheLine<AtomicU64>,
    cells: [ValueCell<T>; CELLS],
}

// SAFETY: the protocol of the module page gives each cell to one side at a time.
unsafe impl<T: Copy + Send, const CELLS: usize> Sync for SpscQueue<T, CELLS> {}

impl<T: Copy, const CELLS: usize> Default for SpscQueue<T, CELLS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy, const CELLS: usize> SpscQueue<T, CELLS> {
    /// An empty channel.
    #[must_use]
    pub fn new() -> Self {
        Self {
            producer: CacheLine(Producer { tail: AtomicU64::new(0), seen_head: AtomicU64::new(0) }),
            head: CacheLine(AtomicU64::new(0)),
            cells: core::array::from_fn(|_| ValueCell::new()),
        }
    }

    fn cell(&self, number: u64) -> &ValueCell<T> {
        &self.cells[(number % CELLS as u64) as usize]
    }

    /// Whether a value can be sent. It stays so until the producer sends one.
    ///
    /// # Safety
    /// The caller is the only producer.
    pub unsafe fn has_room(&self) -> bool {
        let tail = self.producer.tail.load(Ordering::Relaxed);
        let has_room = |head: u64| tail - head < CELLS as u64;
        has_room(self.producer.seen_head.load(Ordering::Relaxed)) || {
            // Acquire pairs with C3.
            let head = self.head.load(Ordering::Acquire);
            self.producer.seen_head.store(head, Ordering::Relaxed);
            has_room(head)
        }
    }

    /// Sends a value; `false` when the channel is full.
    ///
    /// # Safety
    /// The caller is the only producer.
    pub unsafe fn send(&self, value: T) -> bool {
        // SAFETY: the caller's promise; the cell is free (P1).
        unsafe {
            if !self.has_room() {
                return false;
            }
            let tail = self.producer.tail.load(Ordering::Relaxed);
            self.cell(tail).write(value);
            // Release pairs with C1.
            self.producer.tail.store(tail + 1, Ordering::Release);
        }
        true
    }

    /// Takes the oldest value.
    ///
    /// # Safety
    /// The caller is the only consumer.
    pub unsafe fn take(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let head = self.head.load(Ordering::Relaxed);
        // SAFETY: the cell is full (C1), and ours until C3.
        let value = unsafe { self.cell(head).read() };
        // Release pairs with P1.
        self.head.store(head + 1, Ordering::Release);
        Some(value)
    }

    /// Whether there is nothing to take. Exact for the consumer, and for a producer as to its own
    /// values; a hint for others.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Acquire pairs with P3.
        self.head.load(Ordering::Relaxed) == self.producer.tail.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;

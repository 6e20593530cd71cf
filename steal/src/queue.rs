//! A bounded queue with one consumer: what ranks tell a dedicated worker.
//!
//! # Protocol
//! Positions count for ever; position `p` uses cell `p % CELLS` in lap `p / CELLS`. A cell whose turn is
//! `2 * lap` is free in that lap, one whose turn is `2 * lap + 1` is full. All-zero memory is empty.
//!
//! ```text
//! producer                                   consumer
//! P1 load tail; turn of its cell             C1 turn of the cell at head
//!    == 2 * lap? (Acquire) else full            == 2 * lap + 1? (Acquire) else empty
//! P2 swap tail -> tail + 1, or P1 again      C2 read the value
//! P3 write the value                         C3 turn = 2 * (lap + 1) (Release)
//! P4 turn = 2 * lap + 1 (Release)            C4 head += 1
//! ```
//!
//! # Why it holds
//! *A value is written by one producer.* P2 gives each position to one of them, and P1's turn says that
//! the cell is free in this very lap. *It is read whole*: P4 pairs with C1. *It is not overwritten before it is read*:
//! C3 pairs with P1 of the next lap. Laps grow, so no turn comes back. *Order*: the consumer reads
//! positions in order, so values of one producer, and of producers that are ordered otherwise,
//! come out in the order of their pushes. A producer between P2 and P4 hides later values until it is through.

use crate::cell::ValueCell;
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
struct Cell<T> {
    turn: AtomicU64,
    value: ValueCell<T>,
}

/// A queue of `CELLS` values. See the module page.
#[derive(Debug)]
pub struct MpscQueue<T, const CELLS: usize> {
    tail: CacheLine<AtomicU64>,
    head: CacheLine<AtomicU64>,
    cells: [Cell<T>; CELLS],
}

// SAFETY: the protocol of the module page gives each cell to one side at a time.
unsafe impl<T: Copy + Send, const CELLS: usize> Sync for MpscQueue<T, CELLS> {}

impl<T: Copy, const CELLS: usize> Default for MpscQueue<T, CELLS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy, const CELLS: usize> MpscQueue<T, CELLS> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tail: CacheLine(AtomicU64::new(0)),
            head: CacheLine(AtomicU64::new(0)),
            cells: core::array::from_fn(|_| Cell { turn: AtomicU64::new(0), value: ValueCell::new() }),
        }
    }

    fn cell(&self, position: u64) -> (&Cell<T>, u64) {
        let count = CELLS as u64;
        (&self.cells[(position % count) as usize], 2 * (position / count))
    }

    /// Appends a value; `false` when the queue is full. For any task; never waits for the consumer.
    pub fn push(&self, value: T) -> bool {
        loop {
            let position = self.tail.load(Ordering::Relaxed);
            let (cell, free) = self.cell(position);
            // Acquire pairs with C3.
            let turn = cell.turn.load(Ordering::Acquire);
            if turn < free {
                return false;
            }
            if turn == free && self.advance(position) {
                // SAFETY: P2 gave the cell to us.
                unsafe { cell.value.write(value) };
                // Release pairs with C1.
                cell.turn.store(free + 1, Ordering::Release);
                return true;
            }
        }
    }

    /// P2.
    fn advance(&self, position: u64) -> bool {
        self.tail.compare_exchange_weak(position, position + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The oldest value, left in the queue.
    ///
    /// # Safety
    /// Only one task at a time consumes, and successive ones are ordered.
    pub unsafe fn front(&self) -> Option<T> {
        let position = self.head.load(Ordering::Relaxed);
        let (cell, free) = self.cell(position);
        // Acquire pairs with P4.
        if cell.turn.load(Ordering::Acquire) != free + 1 {
            return None;
        }
        // SAFETY: the cell is full in this lap, and ours until `pop`.
        Some(unsafe { cell.value.read() })
    }

    /// Takes the oldest value, which [`MpscQueue::front`] has returned, out of the queue.
    ///
    /// # Safety
    /// As for [`MpscQueue::front`].
    pub unsafe fn pop(&self) {
        let position = self.head.load(Ordering::Relaxed);
        let (cell, free) = self.cell(position);
        debug_assert_eq!(cell.turn.load(Ordering::Relaxed), free + 1);
        // Release pairs with P1.
        cell.turn.store(free + 2, Ordering::Release);
        self.head.store(position + 1, Ordering::Relaxed);
    }

    /// Whether there is nothing to consume: a hint that may be stale.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed) == self.tail.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;

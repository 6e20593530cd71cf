//! Messages that show themselves before they are complete.
//!
//! A message whose data lies in a block takes as long to write as to read. A receiver that waits for it does nothing
//! while the block is filled, if it learns of the message only afterwards. So the producer *tells* after each piece how
//! many there are, and a receiver that polls for this very message copies them while the next ones are written.
//!
//! # Protocol
//! The turn of a cell is the lap it belongs to, in whose upper [`COUNT_BITS`] bits the number of pieces is mixed.
//! ```text
//! producer                                    consumer that polls
//! T1 room for one cell (P1)                   L1 turn of the cell at head ^ its lap: only the
//! T2 header and payload                          upper bits differ? (Acquire)
//! T3 a piece of the data                      L2 reads header and payload, copies the pieces
//! T4 turn = lap ^ pieces << 29 (Release),     L3 L1 again
//!    T3 again                                 C1 to C3, when the message is complete
//! P3, P4 after the last piece
//! ```
//!
//! # Why it holds
//! * *The message is not there before P3*: all others compare the turn with the lap. So nobody else has to know of
//!   pieces, and whoever gives up polling leaves nothing behind but bytes in a buffer that is not received yet.
//! * *Pieces are seen whole*: T4 comes after T3 and pairs with L1. Neither header nor payload is written again.
//! * *No stale count*: the turn was the lap before, complete, and two laps in a row differ in their lowest bit.
//! * *The front stays*: the consumer holds the receiver's claim from L1 to C3, so no other message becomes the front.

use super::{COUNT_BITS, Front, Header, Outlet, PairPlace, Ring, is_of, lap};
use cohort_base::sync::atomic::Ordering;

/// How far up they are.
const SHIFT: u32 = u32::BITS - COUNT_BITS;

/// Pieces that can be told before the last one.
pub const PIECES_MAX: u32 = (1 << COUNT_BITS) - 1;

/// A message of one cell that is being written. Nobody sees it before [`Coming::tell`], or if it is dropped before.
#[must_use]
pub struct Coming<'ring> {
    ring: &'ring Ring,
    tail: u64,
}

impl Ring {
    /// Begins a message of one cell whose data is written while its receiver may look on. `None`: there is no room.
    ///
    /// # Safety
    /// As for [`Ring::push_one`]; and what was begun is completed before the producer does anything else with the ring.
    #[inline]
    pub unsafe fn begin(&self, header: Header, payload: *const u8) -> Option<Coming<'_>> {
        // SAFETY: the caller's promise.
        unsafe {
            let tail = self.producer.tail.with(|tail| *tail);
            if !self.has_room(tail, 1) {
                return None;
            }
            self.write_half(tail, false, header, payload, usize::from(header.payload));
            Some(Coming { ring: self, tail })
        }
    }
}

impl<'ring> Outlet<'ring> {
    /// The message at the front that is not complete yet, and how many pieces of its data are there. It may be read,
    /// and must not be popped.
    #[inline(always)]
    #[must_use]
    pub fn coming(&self) -> Option<(Front<'ring>, u32)> {
        let PairPlace::First(head) = self.place() else {
            return None;
        };
        // Acquire pairs with the Release in `tell`.
        let turn = self.0.slot(head).turn.load(Ordering::Acquire);
        let mixed = turn ^ lap(head);
        if mixed == 0 || !is_of(turn, lap(head)) {
            return None;
        }
        // SAFETY: a count says that the producer wrote a header, and does not touch the cell before it is popped.
        let front = unsafe { self.front_at(head, false) };
        Some((front, mixed >> SHIFT))
    }
}

impl Coming<'_> {
    /// Tells the receiver that so many pieces are written, at most [`PIECES_MAX`].
    #[inline]
    pub fn tell(&self, pieces: u32) {
        debug_assert!((1..=PIECES_MAX).contains(&pieces));
        let turn = lap(self.tail) ^ pieces << SHIFT;
        // Release pairs with the Acquire in `coming`.
        self.ring.slot(self.tail).turn.store(turn, Ordering::Release);
    }

    /// The message is complete.
    #[inline]
    pub fn show(self) {
        self.ring.show(self.tail);
        let producer = &*self.ring.producer;
        // SAFETY: what was begun belongs to the producer.
        unsafe {
            producer.tail.with_mut(|it| *it = self.tail + 1);
            producer.is_open.with_mut(|it| *it = false);
        }
    }
}

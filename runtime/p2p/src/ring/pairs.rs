//! Two short messages in one cell.
//!
//! What a short message costs is the cache line that goes from the producer to the consumer, and back when the ring
//! comes round. So the short message of a nonblocking send leaves the second half of its cell to the next one, if that
//! is short too and sent in the same way: then two of them cost one line.
//!
//! Messages of blocking sends have cells of their own. Their receivers are mostly as fast as their sender: one that
//! finds each first half alone takes the line, and the producer has to take it back for the second half.
//!
//! # Protocol
//! The first half says that a second message may follow ([`FOLLOWS`]), and then the second half has a turn of its
//! own. Only the last cell of the ring can be *open*, its second half unwritten.
//! ```text
//! producer                                    consumer
//! S1 first half of a free cell, with a        D1 has read a first half that says that another may
//!    second turn that is not the lap; P3         follow: its head stays
//! S2 second half, then its turn = lap         D2 second turn == lap? (Acquire) reads it, C3
//!    (Release), or                            D3 turn of the next cell of its lap? (Acquire)
//! S3 a message in the next cell: P3 or           D2 again; if nothing is there: C3
//!    T4, and the cell is open no more
//! ```
//!
//! # Why it holds
//! * *No stale second half*: S1 writes the second turn before P3, and the consumer looks at it only behind such a first
//!   half. What longer messages have left there is overwritten.
//! * *Nothing is passed over*: S2 comes before S3. So whoever has seen S3 sees S2 when it looks again, and after S3
//!   nothing comes to the cell any more.
//! * *No stall*: the cell at the head, whose first half is read, is one more that is not published. An empty ring still
//!   has room for `MESSAGE_CELLS`.

use super::{Front, HEADER, Header, Outlet, Ring, is_of, lap};
use cohort_base::sync::atomic::Ordering;

/// In `Header::payload`, of a cell only: a second message may follow in this cell.
pub(super) const FOLLOWS: u16 = 1 << 15;

/// Where in a cell's body the second half begins, behind its turn.
pub(super) const HALF: usize = 32;

/// Bytes of payload of a message that shares its cell.
pub const SHORT: usize = HALF - size_of::<u32>() - HEADER;

/// Where the consumer is.
#[derive(Clone, Copy)]
pub(super) enum PairPlace {
    /// The next message is the first one of this cell, or the only one.
    First(u64),
    /// It is there, in the second half of this cell.
    Second(u64),
    /// It is the second one of the cell at the head, or the first one of the next cell, and neither is there.
    Nowhere,
}

impl Ring {
    /// Appends a message of at most [`SHORT`] bytes, as [`Ring::push_one`] does, but in half a cell.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn push_half(&self, mut header: Header, payload: *const u8) -> bool {
        let length = usize::from(header.payload);
        let producer = &*self.producer;
        // SAFETY: the caller is the producer. The second half of an open cell is free, and so is the cell at the tail.
        unsafe {
            let tail = producer.tail.with(|tail| *tail);
            if producer.is_open.with(|it| *it) {
                self.write_half(tail - 1, true, header, payload, length);
                let turn = self.slot(tail - 1).second_turn();
                // Release pairs with the Acquire in `place_behind`.
                turn.store(lap(tail - 1), Ordering::Release);
                producer.is_open.with_mut(|it| *it = false);
                return true;
            }
            if !self.has_room(tail, 1) {
                return false;
            }
            let turn = self.slot(tail).second_turn();
            // Relaxed: P3 comes later.
            turn.store(lap(tail).wrapping_sub(1), Ordering::Relaxed);
            header.payload |= FOLLOWS;
            self.publish(tail, header, payload, length);
            producer.tail.with_mut(|it| *it = tail + 1);
            producer.is_open.with_mut(|it| *it = true);
        }
        true
    }
}

impl<'ring> Outlet<'ring> {
    /// [`Outlet::is_empty`] behind a first half that is read.
    #[inline(never)]
    pub(super) fn is_empty_behind(&self) -> bool {
        match self.place() {
            PairPlace::First(head) => self.0.slot(head).turn.load(Ordering::Relaxed) != lap(head),
            PairPlace::Second(_) => false,
            PairPlace::Nowhere => true,
        }
    }

    /// [`Outlet::front`] behind a first half that is read: a call, so that polls where no messages share cells are
    /// short.
    #[inline(never)]
    pub(super) fn front_behind(&self) -> Option<Front<'ring>> {
        match self.place() {
            PairPlace::First(head) => self.first(head),
            // SAFETY: where a second message is, there is a header.
            PairPlace::Second(head) => Some(unsafe { self.front_at(head, true) }),
            PairPlace::Nowhere => None,
        }
    }

    /// Where the consumer is.
    #[inline(always)]
    pub(super) fn place(&self) -> PairPlace {
        let head = self.head();
        match self.is_behind() {
            false => PairPlace::First(head),
            true => self.place_behind(head),
        }
    }

    /// [`Outlet::place`] behind a first half that is read.
    #[inline]
    fn place_behind(&self, head: u64) -> PairPlace {
        // Acquire pairs with the Release in `push_half`.
        let is_there = || self.0.slot(head).second_turn().load(Ordering::Acquire) == lap(head);
        if is_there() {
            return PairPlace::Second(head);
        }
        // Acquire pairs with the Release of the next message.
        let next = self.0.slot(head + 1).turn.load(Ordering::Acquire);
        if !is_of(next, lap(head + 1)) {
            return PairPlace::Nowhere;
        }
        if is_there() {
            return PairPlace::Second(head);
        }
        self.set_head(head + 1);
        self.set_behind(false);
        PairPlace::First(head + 1)
    }
}

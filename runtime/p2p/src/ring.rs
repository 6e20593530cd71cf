//! The mailbox of one pair of ranks: a ring of cells, one cache line each.
//!
//! # Protocol
//! A message takes one *head cell* and, when its payload is longer than [`HEAD_PAYLOAD`] bytes,
//! as many *continuation cells* as it needs. Positions count cells for ever; the cell
//! of position `p` is `p % CELLS`, its lap `p / CELLS + 1`.
//!
//! ```text
//! producer                                    consumer
//! P1 room: tail + n - seen <= CELLS,          C1 turn of the cell at head == its lap?
//!    else seen = published (Acquire)             (Acquire)
//! P2 write continuation cells, and lap        C2 read header and payload
//!    into their turns, then header and        C3 head += n
//!    payload of the head cell
//! P3 head cell's turn = lap (Release)         C4 every PUBLISH_EVERY cells:
//! P4 tail += n                                   published = head (Release)
//! ```
//!
//! # Why it holds
//! *Messages are seen whole.* P3 is the message's last write and pairs with C1.
//! *No stale head.* Each lap writes the turn of each cell. So a turn is that of this lap or of the one before, and
//! 32 bits tell them apart, also where laps begin anew after 2^38 cells, which is hours of short messages. A turn that
//! equals the lap of `head` was written in this lap; P3 wrote it, as the consumer looks at the first cells of
//! messages only. Payload never overlaps a turn.
//! *No overwriting.* P1 keeps the tail within CELLS of a position that C4 published after C2.
//! *No stall.* At most `PUBLISH_EVERY - 1` read cells are unpublished, so that an empty ring
//! offers at least `CELLS - PUBLISH_EVERY + 1 >= MESSAGE_CELLS` cells to the producer.
//! *A starving producer is told.* It raises `starving`, fences, and looks at `published` again;
//! the consumer publishes, fences, and looks at `starving`. One of them sees the other.
//!
//! `pieces.rs` adds messages that their receiver sees while they are written, `pairs.rs` two messages in a cell.
//!
//! The producer is whoever holds the sending rank's claim, the consumer whoever holds the
//! receiving rank's; the claims order the accesses of successive holders to `tail` and `head`.

use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use cohort_core::message::Envelope;
use core::fmt;
use core::mem::MaybeUninit;

#[cfg(not(loom))]
use cell::UnsafeCell;
#[cfg(loom)]
use loom::cell::UnsafeCell;
use pairs::{FOLLOWS, HALF, PairPlace};

/// Cells of a ring.
#[cfg(not(loom))]
pub(crate) const CELLS: u64 = 64;
#[cfg(loom)]
pub(crate) const CELLS: u64 = 4;

/// Cells that the consumer frees at once.
#[cfg(not(loom))]
const PUBLISH_EVERY: u64 = 16;
#[cfg(loom)]
const PUBLISH_EVERY: u64 = 2;

/// Cells of the longest message.
#[cfg(not(loom))]
const MESSAGE_CELLS: u64 = 17;
#[cfg(loom)]
const MESSAGE_CELLS: u64 = 3;

const _: () = assert!(CELLS - PUBLISH_EVERY + 1 >= MESSAGE_CELLS);

/// Bytes behind a cell's turn.
pub const BODY: usize = 60;

/// Bytes of a header.
const HEADER: usize = size_of::<Header>();

/// Bytes of payload in a head cell.
pub const HEAD_PAYLOAD: usize = BODY - HEADER;

/// The longest payload of one message.
pub const PAYLOAD_MAX: usize = HEAD_PAYLOAD + (MESSAGE_CELLS as usize - 1) * BODY;

/// What a payload is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadKind {
    /// The message's packed data.
    Inline,
    /// A [`crate::protocol::Mark`], and behind it the packed data.
    Marked,
    /// A [`crate::protocol::Block`]: where the packed data is.
    Block,
    /// The same, in a block that goes back to its sender at once (`eager_buffers.rs`).
    EagerBuffer,
    /// A [`crate::protocol::types::Compared`]: the same, and of which types it is.
    Compared,
    /// A [`crate::protocol::Rts`]: where the sender's request is.
    Rts,
    /// The same of a message whose sender waits for a moment only (`protocol/lent.rs`).
    Lent,
    /// An arrival from another node; never in a ring.
    Arrival,
}

impl PayloadKind {
    /// Whether the message has all its data with it, in memory of this node.
    #[inline]
    pub(crate) fn is_eager(self) -> bool {
        matches!(self, Self::Inline | Self::Marked | Self::Block | Self::EagerBuffer | Self::Compared)
    }
}

/// What precedes the payload of a head cell.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Context of the message's envelope.
    pub context: u32,
    /// Sender's rank in the communicator.
    pub source: i32,
    /// Tag.
    pub tag: i32,
    /// What the payload is.
    pub kind: PayloadKind,
    /// Bytes of payload, at most [`PAYLOAD_MAX`].
    pub payload: u16,
}

impl Header {
    /// The message's envelope.
    #[inline]
    #[must_use]
    pub fn envelope(&self) -> Envelope {
        Envelope { context: self.context, source: self.source, tag: self.tag }
    }

    /// A header.
    #[inline]
    #[must_use]
    pub fn new(envelope: Envelope, kind: PayloadKind, payload: usize) -> Self {
        debug_assert!(payload <= PAYLOAD_MAX);
        Self { context: envelope.context, source: envelope.source, tag: envelope.tag, kind, payload: payload as u16 }
    }

    /// Cells of the whole message.
    #[inline]
    fn cells(&self) -> u64 {
        1 + (usize::from(self.payload).saturating_sub(HEAD_PAYLOAD)).div_ceil(BODY) as u64
    }
}

/// The bytes of a cell behind its turn; aligned so that a header can stand at the beginning.
#[repr(C, align(4))]
struct Body(UnsafeCell<[MaybeUninit<u8>; BODY]>);

#[repr(C, align(64))]
struct Slot {
    turn: AtomicU32,
    body: Body,
    /// Elsewhere the second half of the cache line, which the body covers.
    #[cfg(loom)]
    second: (AtomicU32, Body),
}

impl Slot {
    /// The body of a half, and where in it that begins.
    #[inline(always)]
    fn half(&self, is_second: bool) -> (&Body, usize) {
        #[cfg(loom)]
        if is_second {
            return (&self.second.1, 0);
        }
        (&self.body, if is_second { HALF } else { 0 })
    }

    /// The turn of the second half. Nobody uses it while a message of more than half a cell is there.
    #[inline(always)]
    fn second_turn(&self) -> &AtomicU32 {
        #[cfg(loom)]
        return &self.second.0;
        #[cfg(not(loom))]
        self.body.0.with(|body| {
            // SAFETY: inside the body, which is made of cells, and aligned as the slot is.
            unsafe { &*body.cast::<u8>().add(HALF - size_of::<u32>()).cast() }
        })
    }
}

/// What only the producer touches.
struct Producer {
    tail: UnsafeCell<u64>,
    seen: UnsafeCell<u64>,
    /// The second half of the last cell is for the next message, if that is short.
    is_open: UnsafeCell<bool>,
}

/// What the consumer writes.
struct Consumer {
    head: UnsafeCell<u64>,
    published: AtomicU64,
    starving: AtomicU32,
    /// Only the first half of the cell at the head is read, and another message may follow there.
    is_behind: UnsafeCell<bool>,
}

/// One ring. All-zero memory is an empty ring.
#[repr(C)]
pub struct Ring {
    producer: CacheLine<Producer>,
    consumer: CacheLine<Consumer>,
    slots: [Slot; CELLS as usize],
}

// SAFETY: the protocol of the module page gives each cell to one side at a time, `tail` and
// `seen` to the producer, `head` to the consumer.
unsafe impl Sync for Ring {}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

/// The message at the front of a ring.
pub struct Front<'ring> {
    ring: &'ring Ring,
    head: u64,
    /// Its header.
    pub header: Header,
    /// It is in the second half of its cell.
    is_second: bool,
    /// Another one may follow in this cell.
    may_follow: bool,
}

#[inline(always)]
const fn lap(position: u64) -> u32 {
    ((position / CELLS) as u32).wrapping_add(1)
}

/// Upper bits of a turn, which count pieces of a message that is not complete (`pieces.rs`).
const COUNT_BITS: u32 = 3;

/// Whether a turn is of this lap: its message is there, or pieces of it are.
#[inline(always)]
fn is_of(turn: u32, lap: u32) -> bool {
    (turn ^ lap) << COUNT_BITS == 0
}

impl Ring {
    #[inline(always)]
    fn slot(&self, position: u64) -> &Slot {
        &self.slots[(position % CELLS) as usize]
    }

    /// Appends a message; `false` when there is no room, and then [`Ring::starve`] says when
    /// to try again.
    ///
    /// # Safety
    /// The caller is the producer; `payload` is readable for `header.payload` bytes, at most
    /// [`PAYLOAD_MAX`].
    #[inline]
    pub unsafe fn push(&self, header: Header, payload: *const u8) -> bool {
        let cells = header.cells();
        let length = usize::from(header.payload);
        debug_assert!(length <= PAYLOAD_MAX);
        // SAFETY: the caller is the producer.
        unsafe {
            if cells == 1 {
                return self.push_one(header, payload);
            }
            let tail = self.producer.tail.with(|tail| *tail);
            if !self.has_room(tail, cells) {
                return false;
            }
            self.write_rest(tail, payload, length);
            self.publish(tail, header, payload, HEAD_PAYLOAD);
            self.producer.tail.with_mut(|it| *it = tail + cells);
            self.producer.is_open.with_mut(|it| *it = false);
        }
        true
    }

    /// [`Ring::push`] for a message of one cell.
    ///
    /// # Safety
    /// As there, and `header.payload` is at most [`HEAD_PAYLOAD`].
    #[inline(always)]
    pub unsafe fn push_one(&self, header: Header, payload: *const u8) -> bool {
        debug_assert!(usize::from(header.payload) <= HEAD_PAYLOAD);
        // SAFETY: the caller is the producer; the rest is the caller's promise.
        unsafe {
            let tail = self.producer.tail.with(|tail| *tail);
            if !self.has_room(tail, 1) {
                return false;
            }
            self.publish(tail, header, payload, usize::from(header.payload));
            self.producer.tail.with_mut(|it| *it = tail + 1);
            self.producer.is_open.with_mut(|it| *it = false);
        }
        true
    }

    /// Writes the head cell of a message and shows it.
    ///
    /// # Safety
    /// As for [`Ring::push`]; the cells are free, and the rest is written; `length` is at most [`HEAD_PAYLOAD`].
    #[inline(always)]
    unsafe fn publish(&self, tail: u64, header: Header, payload: *const u8, length: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.write_half(tail, false, header, payload, length) };
        self.show(tail);
    }

    /// Writes the head cell of a message, or the second half of a cell.
    ///
    /// # Safety
    /// As for [`Ring::publish`]; or that half is free, and the message fits in it.
    #[inline(always)]
    unsafe fn write_half(&self, position: u64, is_second: bool, header: Header, payload: *const u8, length: usize) {
        let (body, from) = self.slot(position).half(is_second);
        body.0.with_mut(|body| {
            // SAFETY: the caller's promise.
            unsafe {
                let body = body.cast::<u8>().add(from);
                body.cast::<Header>().write(header);
                copy_short(payload, body.add(HEADER), length);
            }
        });
    }

    /// The message at `tail` is complete (P3).
    #[inline(always)]
    fn show(&self, tail: u64) {
        // Release pairs with the Acquire in `front`.
        self.slot(tail).turn.store(lap(tail), Ordering::Release);
    }

    /// Whether `cells` cells at `tail` are free.
    ///
    /// # Safety
    /// The caller is the producer.
    #[inline]
    unsafe fn has_room(&self, tail: u64, cells: u64) -> bool {
        // SAFETY: the caller is the producer.
        unsafe {
            if tail + cells - self.producer.seen.with(|seen| *seen) <= CELLS {
                return true;
            }
            // Acquire pairs with the Release in `pop`: the consumer has read those cells.
            let seen = self.consumer.published.load(Ordering::Acquire);
            self.producer.seen.with_mut(|it| *it = seen);
            tail + cells - seen <= CELLS
        }
    }

    /// Writes what does not fit in the head cell.
    ///
    /// # Safety
    /// As for [`Ring::push`]; the cells are free.
    unsafe fn write_rest(&self, tail: u64, payload: *const u8, length: usize) {
        let (mut done, mut position) = (HEAD_PAYLOAD, tail + 1);
        while done < length {
            let piece = (length - done).min(BODY);
            let slot = self.slot(position);
            slot.body.0.with_mut(|body| {
                // SAFETY: `piece` bytes are left of the payload and fit in the body.
                unsafe { copy_piece(payload.add(done), body.cast::<u8>(), piece) };
            });
            // Relaxed: the head's turn comes later (P3), and the consumer does not look at this one in this lap.
            slot.turn.store(lap(position), Ordering::Relaxed);
            done += piece;
            position += 1;
        }
    }

    /// How many cells were sent.
    ///
    /// # Safety
    /// The caller is the producer.
    pub unsafe fn sent(&self) -> u64 {
        // SAFETY: the caller's promise.
        self.producer.tail.with(|tail| unsafe { *tail })
    }

    /// After a failed [`Ring::push`]: asks the consumer to notify the producer when cells are
    /// free. Says whether some are free already.
    ///
    /// # Safety
    /// The caller is the producer.
    pub unsafe fn starve(&self) -> bool {
        self.consumer.starving.store(1, Ordering::Relaxed);
        // Pairs with the fence in `pop`.
        fence(Ordering::SeqCst);
        // SAFETY: the caller is the producer.
        unsafe {
            let tail = self.producer.tail.with(|tail| *tail);
            self.has_room(tail, MESSAGE_CELLS)
        }
    }

    /// The consumer's end.
    ///
    /// # Safety
    /// The caller is the consumer, and uses one end at a time.
    #[inline(always)]
    pub unsafe fn outlet(&self) -> Outlet<'_> {
        Outlet(self)
    }
}

/// The end of a ring from which its consumer takes messages.
pub struct Outlet<'ring>(&'ring Ring);

impl<'ring> Outlet<'ring> {
    #[inline(always)]
    fn head(&self) -> u64 {
        // SAFETY: this is the consumer's, by [`Ring::outlet`].
        self.0.consumer.head.with(|head| unsafe { *head })
    }

    #[inline(always)]
    fn set_head(&self, head: u64) {
        // SAFETY: as for `head`.
        self.0.consumer.head.with_mut(|it| unsafe { *it = head });
    }

    #[inline(always)]
    fn is_behind(&self) -> bool {
        // SAFETY: as for `head`.
        self.0.consumer.is_behind.with(|it| unsafe { *it })
    }

    #[inline(always)]
    fn set_behind(&self, is_behind: bool) {
        // SAFETY: as for `head`.
        self.0.consumer.is_behind.with_mut(|it| unsafe { *it = is_behind });
    }

    /// How many cells were taken out.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.head()
    }

    /// Whether no message is there yet.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        if self.is_behind() {
            return self.is_empty_behind();
        }
        let head = self.head();
        // Relaxed: who finds one looks at it by `front`.
        self.0.slot(head).turn.load(Ordering::Relaxed) != lap(head)
    }

    /// The oldest message, if there is one. It is popped or forgotten before the caller asks again.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<Front<'ring>> {
        match self.is_behind() {
            true => self.front_behind(),
            false => self.first(self.head()),
        }
    }

    /// The message in this cell at the head, if it is there.
    #[inline(always)]
    fn first(&self, head: u64) -> Option<Front<'ring>> {
        // Acquire pairs with the Release in `show`.
        if self.0.slot(head).turn.load(Ordering::Acquire) != lap(head) {
            return None;
        }
        // SAFETY: the turn says that the producer wrote a header, and does not touch the cell
        // before it was popped and published.
        Some(unsafe { self.front_at(head, false) })
    }

    /// The message whose first cell this is, or which is in the second half of it.
    ///
    /// # Safety
    /// The turn says that a header is there.
    #[inline(always)]
    unsafe fn front_at(&self, head: u64, is_second: bool) -> Front<'ring> {
        let (body, from) = self.0.slot(head).half(is_second);
        // SAFETY: the caller's promise.
        let mut header = (body.0).with(|body| unsafe { body.cast::<u8>().add(from).cast::<Header>().read() });
        let may_follow = header.payload & FOLLOWS != 0;
        header.payload &= !FOLLOWS;
        Front { ring: self.0, head, header, is_second, may_follow }
    }
}

impl Front<'_> {
    /// Copies the payload to `out`.
    ///
    /// # Safety
    /// `out` is writable for `header.payload` bytes.
    ///
    /// Inlined by force: with several callers the compiler would not, and each receive of a short message is one.
    #[inline(always)]
    pub unsafe fn read(&self, out: *mut u8) {
        let length = usize::from(self.header.payload);
        let head = length.min(HEAD_PAYLOAD);
        let (body, from) = self.ring.slot(self.head).half(self.is_second);
        body.0.with(|body| {
            // SAFETY: the header's promise, and the caller's.
            unsafe { copy_short(body.cast::<u8>().add(from + HEADER), out, head) };
        });
        if length > HEAD_PAYLOAD {
            // SAFETY: the caller's promise.
            unsafe { self.read_rest(out, length) };
        }
    }

    unsafe fn read_rest(&self, out: *mut u8, length: usize) {
        let (mut done, mut position) = (HEAD_PAYLOAD, self.head + 1);
        while done < length {
            let piece = (length - done).min(BODY);
            self.ring.slot(position).body.0.with(|body| {
                // SAFETY: the producer wrote `piece` bytes; the caller's promise for `out`.
                unsafe { copy_piece(body.cast::<u8>(), out.add(done), piece) };
            });
            done += piece;
            position += 1;
        }
    }

    /// Ends the use of this message. `true`: the producer waits for room and is to be notified.
    #[inline]
    #[must_use]
    pub fn pop(self) -> bool {
        let (consumer, outlet) = (&*self.ring.consumer, Outlet(self.ring));
        if self.may_follow || self.is_second {
            outlet.set_behind(self.may_follow);
            if self.may_follow {
                return false;
            }
        }
        let head = self.head + self.header.cells();
        outlet.set_head(head);
        // Relaxed: only the consumer writes it.
        if head - consumer.published.load(Ordering::Relaxed) < PUBLISH_EVERY {
            return false;
        }
        // Release pairs with the Acquire in `has_room`.
        consumer.published.store(head, Ordering::Release);
        // Pairs with the fence in `starve`.
        fence(Ordering::SeqCst);
        consumer.starving.load(Ordering::Relaxed) != 0 && consumer.starving.swap(0, Ordering::Relaxed) != 0
    }
}

/// Copies a few bytes; the shortest messages without a call.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[inline(always)]
pub(crate) unsafe fn copy_short(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: overlapping pairs of words stay inside `length` bytes; the caller's promise.
    unsafe {
        if length == 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else if length == 4 {
            to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned());
        } else {
            core::ptr::copy_nonoverlapping(from, to, length);
        }
    }
}

/// Copies at most a cell's body; whole bodies with a constant length.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[inline(always)]
unsafe fn copy_piece(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if length == BODY {
            core::ptr::copy_nonoverlapping(from, to, BODY);
        } else {
            core::ptr::copy_nonoverlapping(from, to, length);
        }
    }
}

#[cfg(not(loom))]
mod cell;
pub mod pairs;
pub mod pieces;

#[cfg(test)]
mod tests;

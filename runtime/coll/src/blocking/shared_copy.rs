//! Long data that a member lends to one reader, and that both copy to the reader's room.
//!
//! The member posts a [`SharedCopy`] in place of its buffer. The reader says where the data goes, by opening a meeting
//! that lies beside it, and takes pieces from the front, the member from the back: each finds in its caches what it
//! copied in the operation before.
//!
//! Why all of it stays: the member uses the reader's room only between a piece that it has taken and the end of that
//! piece, and the reader goes on when all pieces are finished. The record is the member's, who stays until the reader
//! has completed the round.

use super::round::{Finish, Posted, Record, Round};
use crate::data::{copy_piece, copy_whole, fits, unpack_inline};
use crate::meeting::{End, Meeting};
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// Least data that is lent so.
const SHARED_COPY_MIN: u64 = 128 << 10;

/// Bytes of a piece.
const PIECE: u64 = 32 << 10;

/// Where the data goes.
struct Room(Buffer<'static>);

// SAFETY: it leads to a buffer that its owner leaves to the operation.
unsafe impl Send for Room {}

/// A member's record.
struct SharedCopy<'a> {
    buffer: Buffer<'a>,
    pieces: Meeting<(), Room>,
}

// SAFETY: no other record has this number.
unsafe impl Record for SharedCopy<'_> {
    const NUMBER: u64 = 8;
}

impl SharedCopy<'_> {
    /// Copies pieces as long as there are any; `true` for the one who finishes the last.
    fn copy(&self, end: End) -> bool {
        let mut ended = false;
        while let Some((piece, room)) = self.pieces.take(end) {
            let range = piece * PIECE..self.buffer.bytes().min((piece + 1) * PIECE);
            copy_piece(room.0, self.buffer, range);
            ended |= self.pieces.finish();
        }
        ended
    }
}

impl Round<'_> {
    /// Whether members lend data of so many bytes, where others would read it.
    pub(crate) fn is_lent(&self, bytes: u64) -> bool {
        // Without a CPU for each, the one that copies would only take it from the other.
        bytes >= SHARED_COPY_MIN && !self.is_crowded()
    }

    /// Lends `buffer`, which is long enough, to `reader` and copies with it, until it has completed the round.
    pub(crate) fn lend(self, buffer: &Buffer<'_>, reader: usize) {
        let lent = SharedCopy { buffer: *buffer, pieces: Meeting::of_nobody() };
        self.post_address(&lent);
        self.announce_to(reader);
        self.await_of(reader, || lent.pieces.plan().is_some());
        // The reader stays until all pieces are finished.
        if lent.copy(End::Back) {
            self.wake(reader);
        }
        self.finish(Finish::Member(reader));
    }

    /// Has `member` begin to copy what it lends to `room`, if it has posted and lends. The caller receives it later.
    ///
    /// # Safety
    /// The caller calls [`Round::receive_exposed`] with the same room before it ends the round.
    #[cold]
    pub(crate) unsafe fn open_lent(&self, member: usize, room: Buffer<'_>) {
        if self.has_posted(member)
            && let Some(lent) = self.record_if(member)
        {
            // SAFETY: the caller's promise.
            unsafe { self.open(lent, member, room) };
        }
    }

    /// Says where what `member` lends is to go; once.
    ///
    /// # Safety
    /// The caller stays, and keeps the room, until all pieces are finished.
    unsafe fn open(&self, lent: &SharedCopy<'_>, member: usize, room: Buffer<'_>) {
        if lent.pieces.plan().is_some() {
            return;
        }
        // SAFETY: only the lifetime differs: the caller stays until nobody copies any more. It alone opens, once.
        unsafe {
            let datatype = &*core::ptr::from_ref(room.datatype());
            let room = Room(Buffer::new(room.base(), room.count(), datatype));
            let pieces = lent.buffer.bytes().div_ceil(PIECE);
            lent.pieces.open(room, pieces);
        }
        self.wake(member);
    }

    /// Receives what `member` has posted with [`Round::post_copied`] in this round, or lends.
    ///
    /// # Errors
    /// [`EngineError::Truncated`].
    #[inline]
    pub(crate) fn receive_exposed(&self, member: usize, room: Buffer<'_>) -> Result<(), EngineError> {
        if let Some(lent) = self.record_if(member) {
            return self.receive_lent(lent, member, room);
        }
        match self.posted::<Buffer<'_>>(member) {
            Posted::Inline(data) => unpack_inline(room, data),
            Posted::Address(buffer) => copy_whole(room, *buffer),
        }
    }

    /// Receives what `member` has posted as `lent`.
    #[cold]
    fn receive_lent(&self, lent: &SharedCopy<'_>, member: usize, room: Buffer<'_>) -> Result<(), EngineError> {
        // SAFETY: the caller stays until all pieces are finished.
        unsafe { self.open(lent, member, room) };
        lent.copy(End::Front);
        self.await_of(member, || lent.pieces.is_finished());
        fits(lent.buffer.bytes(), room)
    }
}

//! One rank's reads and writes.
//!
//! Where memory and file have long runs, the kernel gets them as they are. Short runs of memory pass through a buffer
//! that stays in the cache. Short pieces that are read are read together with the small gaps between them. What is
//! written is what the program's data is, and nothing else: gaps are neither written nor read before.

mod mover;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use mover::{Bounce, Mover, STRAIGHT};

use crate::layout::{Overflow, Piece, Pieces, View};
use crate::medium::{Failure, Medium, Moved, Way};
use cohort_datatype::Buffer;
use rustix::io::Errno;

/// Gaps between pieces that are read rather than left out.
const GAP: u64 = 4096;

/// What a transfer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Bytes of the buffer's data that were read or written: all before the first that was not.
    pub bytes: u64,
    /// Why not all were. A read that meets the end of the file has no error.
    pub error: Option<Failure>,
}

/// Reads into `buffer`, or writes it, from `position` (in bytes of the view's data) on; the medium's descriptor is the
/// calling task's. Bytes between the pieces of the view stay as they are.
#[must_use]
pub fn through(medium: &impl Medium, way: Way, view: &View, position: u64, buffer: Buffer<'_>) -> Done {
    let total = buffer.bytes();
    let pieces = match view.pieces(position, total) {
        Ok(pieces) => pieces,
        Err(Overflow) => return beyond(view, position),
    };
    let mut bounce = Bounce::default();
    let mut mover = Mover { medium, way, buffer, bounce: &mut bounce };
    let is_fine = way == Way::Read && view.typical_piece() < STRAIGHT && view.is_ordered();
    if is_fine { by_windows(&mut mover, pieces) } else { by_pieces(&mut mover, 0, pieces) }
}

/// What is said of bytes that the view does not have.
#[cold]
pub(crate) fn beyond(view: &View, position: u64) -> Done {
    let offset = view.offset(position).unwrap_or(u64::MAX);
    Done { bytes: 0, error: Some(Failure { errno: Errno::OVERFLOW, offset }) }
}

/// Moves pieces one by one, the first of which belongs to byte `done` of the buffer's data.
fn by_pieces<M: Medium>(mover: &mut Mover<'_, '_, M>, mut done: u64, pieces: impl Iterator<Item = Piece>) -> Done {
    for piece in pieces {
        let Moved { bytes, error } = mover.piece(done, piece);
        done += bytes;
        if error.is_some() || bytes < piece.length {
            return Done { bytes: done, error };
        }
    }
    Done { bytes: done, error: None }
}

/// Reads short pieces in ascending order: as many as lie close together at a time.
fn by_windows<M: Medium>(mover: &mut Mover<'_, '_, M>, mut pieces: Pieces<'_>) -> Done {
    let mut done = 0;
    let mut next = pieces.next();
    while let Some(first) = next {
        let mut window = Window { span: first, pieces: 1 };
        let inside = pieces.clone();
        next = loop {
            match pieces.next() {
                Some(piece) if window.takes(piece) => window.take(piece),
                other => break other,
            }
        };
        let list = || core::iter::once(first).chain(inside.clone()).take(window.pieces);
        let together = if window.pieces > 1 { mover.window(done, window.span, list()) } else { None };
        // If they cannot be read together, each for itself tells which of them cannot.
        let result = together.unwrap_or_else(|| by_pieces(mover, done, list()));
        let wanted: u64 = list().map(|piece| piece.length).sum();
        if result.error.is_some() || result.bytes < done + wanted {
            return result;
        }
        done = result.bytes;
    }
    Done { bytes: done, error: None }
}

/// Pieces that are read at once.
struct Window {
    span: Piece,
    pieces: usize,
}

impl Window {
    fn takes(&self, piece: Piece) -> bool {
        piece.offset - self.span.end() <= GAP && piece.end() - self.span.offset <= mover::BOUNCE
    }

    fn take(&mut self, piece: Piece) {
        self.span.length = piece.end() - self.span.offset;
        self.pieces += 1;
    }
}

//! One rank's reads and writes.
//!
//! Where memory and file have long runs, the kernel gets them as they are. Short runs of memory pass through a buffer
//! that stays in the cache. Short pieces that are read are read together with the small gaps between them. What is
//! written is what the program's data is, and nothing else: gaps are neither written nor read before. Many short pieces
//! are written through a mapping of the file, where that can be.

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

/// Gaps between pieces that are written through a mapping: such that each page has a piece, and no hole gets a page.
pub(crate) const HOLE: u64 = 4095;

/// Bytes of a file that are mapped at a time.
const MAPPED: u64 = 1 << 20;

/// Fewer pieces than this are not worth a mapping.
pub(crate) const FEW: usize = if cfg!(test) { 3 } else { 16 };

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
    let mut bounce = Bounce::default();
    let mut mover = Mover { medium, way, buffer, bounce: &mut bounce };
    if let Some(piece) = view.piece(position, total) {
        let Moved { bytes, error } = mover.piece(0, piece);
        return Done { bytes, error };
    }
    let pieces = match view.pieces(position, total) {
        Ok(pieces) => pieces,
        Err(Overflow) => return beyond(view, position),
    };
    let short = if way == Way::Read { STRAIGHT } else { HOLE };
    if view.typical_piece() < short && view.is_ordered() {
        by_windows(&mut mover, 0, pieces)
    } else {
        by_pieces(&mut mover, 0, pieces)
    }
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

/// Moves short pieces in ascending order, as many as lie close together at a time. The first belongs to byte `done` of
/// the buffer's data.
pub(crate) fn by_windows<M: Medium>(mover: &mut Mover<'_, '_, M>, mut done: u64, mut pieces: Pieces<'_>) -> Done {
    let mut next = pieces.next();
    while let Some(first) = next {
        let mut window = Window { span: first, pieces: 1 };
        let inside = pieces.clone();
        next = loop {
            match pieces.next() {
                Some(piece) if window.takes(piece, mover.way) => window.take(piece),
                other => break other,
            }
        };
        let list = || core::iter::once(first).chain(inside.clone()).take(window.pieces);
        let together = match mover.way {
            Way::Read if window.pieces > 1 => mover.window(done, window.span, list()),
            Way::Write if window.pieces >= FEW => mover.mapped(done, window.span, list()),
            _ => None,
        };
        // If they cannot be moved together, each for itself tells which of them cannot.
        let result = together.unwrap_or_else(|| by_pieces(mover, done, list()));
        let wanted: u64 = list().map(|piece| piece.length).sum();
        if result.error.is_some() || result.bytes < done + wanted {
            return result;
        }
        done = result.bytes;
    }
    Done { bytes: done, error: None }
}

/// Pieces that are moved at once.
struct Window {
    span: Piece,
    pieces: usize,
}

impl Window {
    fn takes(&self, piece: Piece, way: Way) -> bool {
        let (gap, most) = match way {
            Way::Read => (GAP, mover::BOUNCE),
            Way::Write => (HOLE, MAPPED),
        };
        piece.offset - self.span.end() <= gap && piece.end() - self.span.offset <= most
    }

    fn take(&mut self, piece: Piece) {
        self.span.length = piece.end() - self.span.offset;
        self.pieces += 1;
    }
}

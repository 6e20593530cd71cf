//! The pieces of a view.

use super::View;
use cohort_datatype::Runs;

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where they begin, from the start of the file.
    pub offset: u64,
    /// How many.
    pub length: u64,
}

impl Piece {
    /// The first offset behind it.
    #[inline]
    #[must_use]
    pub const fn end(self) -> u64 {
        self.offset + self.length
    }
}

/// The pieces of a part of a view's data: see [`View::pieces`].
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    view: &'a View,
    /// The first byte of the data that no run has been asked for.
    position: u64,
    /// Bytes that are left, from the next run on.
    left: u64,
    /// What is left of the runs that were asked for last: those that follow the first.
    runs: Runs,
    /// What may grow by the next run.
    piece: Option<Piece>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(view: &'a View, position: u64, left: u64) -> Self {
        let runs = Runs { disp: 0, bytes: 0, more: 0, next: 0, stride: 0, block: 0 };
        Self { view, position, left, runs, piece: None }
    }

    /// Calls `visit` for each run, in the order of the data; neighbours are not put together.
    pub(crate) fn each_run(mut self, mut visit: impl FnMut(Piece)) {
        while let Some(first) = self.run() {
            visit(first);
            // Whole blocks of what was asked for, in a loop of its own.
            let Runs { more, next, stride, block, .. } = self.runs;
            let whole = more.min(self.left.checked_div(block).unwrap_or(0));
            let mut at = next;
            for _ in 0..whole {
                visit(Piece { offset: at as u64, length: block });
                at = at.wrapping_add(stride);
            }
            self.left -= whole * block;
            self.runs.more -= whole;
            self.runs.next = at;
        }
    }

    /// The next run, which may go on where the one before it ended.
    #[inline]
    fn run(&mut self) -> Option<Piece> {
        if self.left == 0 {
            return None;
        }
        let (offset, length) = if self.runs.more > 0 {
            let next = (self.runs.next, self.runs.block);
            self.runs.more -= 1;
            self.runs.next = self.runs.next.wrapping_add(self.runs.stride);
            next
        } else {
            self.runs = self.view.runs_at(self.position);
            let bytes = self.runs.more.saturating_mul(self.runs.block).saturating_add(self.runs.bytes);
            self.position = self.position.saturating_add(bytes);
            (self.runs.disp, self.runs.bytes)
        };
        let length = length.min(self.left);
        self.left -= length;
        Some(Piece { offset: offset as u64, length })
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        loop {
            let run = self.run();
            match (&mut self.piece, run) {
                (Some(piece), Some(run)) if piece.end() == run.offset => piece.length += run.length,
                (piece, Some(run)) => {
                    if let Some(whole) = piece.replace(run) {
                        return Some(whole);
                    }
                }
                (piece, None) => return piece.take(),
            }
        }
    }
}

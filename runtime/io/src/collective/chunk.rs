//! One chunk of a file: the data of all members in it.

use super::Found;
use super::cover::Cover;
use super::post::{Next, Plan, Post};
use crate::layout::Piece;
use crate::medium::{Failure, Medium, Moved, Run, Way, carry};
use crate::transfer::{Bounce, Mover};
use cohort_datatype::{pack, unpack};
use rustix::io::Errno;

/// Bytes of a chunk: few enough to stay in the cache, a multiple of what file systems move at once.
/// Tests have many of them.
pub(super) const CHUNK: u64 = if cfg!(test) { 256 } else { 256 << 10 };

/// A chunk is read as a whole if at least one byte in so many is data.
const DENSE: u64 = 4;

/// A member that takes chunks.
pub(super) struct Worker<'a, M> {
    medium: &'a M,
    way: Way,
    posts: &'a [&'a Post<'a>],
    plan: &'a Plan<'a>,
    bounce: Bounce,
    cover: Cover,
}

impl<'a, M: Medium> Worker<'a, M> {
    pub(super) fn new(medium: &'a M, way: Way, posts: &'a [&'a Post<'a>], plan: &'a Plan<'a>) -> Self {
        Self { medium, way, posts, plan, bounce: Bounce::default(), cover: Cover::default() }
    }

    /// Takes chunks until there are none.
    pub(super) fn work(&mut self, next: Next<'_>) -> Found {
        let mut found = Found::NOTHING;
        while let Some((low, high)) = next.take(self.posts, self.plan) {
            let here = match self.way {
                Way::Write => self.write(low, high),
                Way::Read => self.read(low, high),
            };
            if here != Found::NOTHING {
                next.stop();
            }
            found.add(here);
        }
        found
    }

    /// Calls `visit` for each member's data between two places: with the byte of its buffer that each piece begins with,
    /// and the piece.
    fn each(&self, low: u64, high: u64, mut visit: impl FnMut(&'a Post<'a>, u64, Piece)) {
        for post in self.posts.iter().filter(|post| self.plan.is_common(post)) {
            let positions = post.between(low, high);
            let mut at = positions.start - post.position;
            let Ok(pieces) = post.view.pieces(positions.start, positions.end - positions.start) else {
                unreachable!("a part of a regular member's data");
            };
            for piece in pieces {
                visit(post, at, piece);
                at += piece.length;
            }
        }
    }

    /// Gathers the data, and writes each run of it.
    fn write(&mut self, low: u64, high: u64) -> Found {
        let memory = match self.room() {
            Ok(memory) => memory,
            Err(errno) => return failed(errno, low),
        };
        let base = high - CHUNK;
        let mut cover = core::mem::take(&mut self.cover);
        self.each(low, high, |post, from, piece| {
            let at = piece.offset - base;
            // SAFETY: the piece lies in the chunk, for which there is room, and which is no part of a buffer.
            unsafe { pack(post.buffer, from, memory.wrapping_add(at as usize), piece.length) };
            cover.mark(at, at + piece.length);
        });
        self.cover = cover;
        let mut from = low - base;
        while let Some(run) = self.cover.run(from) {
            from = run.end;
            // SAFETY: the room is ours, and this part of it was filled.
            let bytes = unsafe { Run::new(memory.wrapping_add(run.start as usize), (run.end - run.start) as usize) };
            let Moved { error, .. } = carry(self.medium, Way::Write, &mut [bytes], base + run.start);
            if let Some(Failure { errno, offset }) = error {
                return failed(errno, offset);
            }
        }
        Found::NOTHING
    }

    /// Memory for a chunk, without any data yet.
    fn room(&mut self) -> Result<*mut u8, Errno> {
        self.cover.clear()?;
        self.bounce.room(CHUNK)
    }

    fn read(&mut self, low: u64, high: u64) -> Found {
        let (mut bytes, mut end) = (0, low);
        for post in self.posts.iter().filter(|post| self.plan.is_common(post)) {
            let positions = post.between(low, high);
            bytes += positions.end - positions.start;
            if !positions.is_empty()
                && let Ok(last) = post.view.offset(positions.end - 1)
            {
                end = end.max(last + 1);
            }
        }
        let is_dense = bytes.saturating_mul(DENSE) >= end - low;
        // An error may be one of bytes that nobody asked for.
        let whole = if is_dense { self.read_whole(low, end) } else { None };
        whole.unwrap_or_else(|| self.read_pieces(low, high))
    }

    /// Reads all from `low` to `end`, and hands the pieces out. `None` if that fails.
    fn read_whole(&mut self, low: u64, end: u64) -> Option<Found> {
        let memory = self.bounce.room(CHUNK).ok()?;
        // SAFETY: the room is ours.
        let run = unsafe { Run::new(memory, (end - low) as usize) };
        let Moved { bytes, error } = carry(self.medium, Way::Read, &mut [run], low);
        if error.is_some() {
            return None;
        }
        self.each(low, end, |post, from, piece| {
            let at = piece.offset - low;
            let there = bytes.saturating_sub(at).min(piece.length);
            // SAFETY: the kernel has filled as many bytes from there on, which are no part of the buffer.
            unsafe { unpack(post.buffer, from, memory.wrapping_add(at as usize), there) };
        });
        Some(if bytes < end - low { Found { end: low + bytes, error: None } } else { Found::NOTHING })
    }

    /// Reads each piece for itself.
    fn read_pieces(&mut self, low: u64, high: u64) -> Found {
        let (mut found, mut bounce) = (Found::NOTHING, core::mem::take(&mut self.bounce));
        self.each(low, high, |post, from, piece| {
            let (medium, way, buffer) = (self.medium, Way::Read, post.buffer);
            let Moved { bytes, error } = Mover { medium, way, buffer, bounce: &mut bounce }.piece(from, piece);
            if bytes < piece.length {
                found.add(Found { end: piece.offset + bytes, error });
            }
        });
        self.bounce = bounce;
        found
    }
}

fn failed(errno: Errno, offset: u64) -> Found {
    Found { end: offset, error: Some(Failure { errno, offset }) }
}

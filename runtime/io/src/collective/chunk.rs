//! One chunk of a file: the data of all members in it.

use super::Found;
use super::cover::Cover;
use super::post::{Next, Plan, Post};
use crate::layout::{Piece, Pieces};
use crate::medium::{Failure, Mapping, Medium, Moved, Run, Way, carry};
use crate::transfer::{Bounce, FEW, HOLE, Mover, by_windows};
use cohort_core::guard::guarded;
use cohort_datatype::{pack, unpack};
use core::cell::Cell;
use core::ops::Range;
use rustix::io::Errno;

/// A chunk is read as a whole if at least one byte in so many is data.
pub(super) const DENSE: u64 = 4;

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

    /// The members whose data chunks have, each with its positions between two places.
    fn members(&self, low: u64, high: u64) -> impl Iterator<Item = (&'a Post<'a>, Range<u64>)> + use<'a, M> {
        let plan = self.plan;
        let common = self.posts.iter().filter(move |post| plan.is_common(post));
        common.map(move |post| (*post, post.between(low, high))).filter(|(_, positions)| !positions.is_empty())
    }

    /// The bytes of data between two places, and where the last of them ends.
    fn extent(&self, low: u64, high: u64) -> (u64, u64) {
        let (mut bytes, mut end) = (0, low);
        for (post, positions) in self.members(low, high) {
            bytes += positions.end - positions.start;
            if let Ok(last) = post.view.offset(positions.end - 1) {
                end = end.max(last + 1);
            }
        }
        (bytes, end)
    }

    /// Gathers the data, and writes each run of it.
    fn write(&mut self, low: u64, high: u64) -> Found {
        if let Some(found) = self.write_of_one(low, high) {
            return found;
        }
        let (_, end) = self.extent(low, high);
        let memory = match self.cover.clear(end - low).and_then(|()| self.bounce.room(end - low, low)) {
            Ok(memory) => memory,
            Err(errno) => return failed(errno, low),
        };
        for (post, positions) in self.members(low, end) {
            let cover = &mut self.cover;
            pieces(post, &positions).each_run(|piece| cover.mark(piece.offset - low, piece.end() - low));
            // SAFETY: it copies, and owns nothing.
            if unsafe { guarded(|| gather(post, positions.start, positions.end, low, memory)) }.is_err() {
                return protected(low);
            }
        }
        let runs = self.cover.runs();
        if self.store(runs.clone(), low, memory) {
            return Found::NOTHING;
        }
        for run in runs {
            if let Some(Failure { errno, offset }) = self.write_run(&run, low, memory) {
                return failed(errno, offset);
            }
        }
        Found::NOTHING
    }

    /// Writes the data of a chunk that only one member has, if it is short pieces: nothing is to be put together.
    fn write_of_one(&mut self, low: u64, high: u64) -> Option<Found> {
        let mut members = self.members(low, high);
        let (Some((post, positions)), None) = (members.next(), members.next()) else {
            return None;
        };
        if post.view.typical_piece() >= HOLE {
            return None;
        }
        let medium = &Anybodys { medium: self.medium, is_protected: Cell::new(false) };
        let mut mover = Mover { medium, way: Way::Write, buffer: post.buffer, bounce: &mut self.bounce };
        let written = by_windows(&mut mover, positions.start - post.position, pieces(post, &positions));
        Some(match written.error {
            _ if medium.is_protected.get() => protected(low),
            None => Found::NOTHING,
            Some(Failure { errno: Errno::FAULT, .. }) => protected(low),
            Some(Failure { errno, offset }) => failed(errno, offset),
        })
    }

    /// Writes a run of a chunk's bytes.
    fn write_run(&self, run: &Range<u64>, low: u64, memory: *mut u8) -> Option<Failure> {
        // SAFETY: the room is ours, and this part of it was filled.
        let bytes = unsafe { Run::new(memory.wrapping_add(run.start as usize), (run.end - run.start) as usize) };
        carry(self.medium, Way::Write, &mut [bytes], low + run.start).error
    }

    /// Writes many short runs of a chunk's bytes through a mapping of the file. `false`: not all are written.
    fn store(&self, runs: impl Iterator<Item = Range<u64>> + Clone, low: u64, memory: *mut u8) -> bool {
        let mut count = 0;
        let (mut last, mut is_fine) = (0..0, true);
        for run in runs.clone() {
            is_fine &= run.start - last.end <= HOLE;
            (last, count) = (run, count + 1);
        }
        // The last one as in `Mover::mapped`.
        if !is_fine || count < FEW || self.write_run(&last, low, memory).is_some() {
            return false;
        }
        let Some(mapping) = self.medium.mapping(low, last.start) else {
            return false;
        };
        let copy = |to: *mut u8| {
            for Range { start, end } in runs.clone().take_while(|run| run.start < last.start) {
                let (start, length) = (start as usize, (end - start) as usize);
                // SAFETY: the run lies in the mapping and in the chunk's memory.
                unsafe { to.wrapping_add(start).copy_from_nonoverlapping(memory.wrapping_add(start), length) };
            }
        };
        // SAFETY: it copies, and owns nothing.
        unsafe { mapping.fill(copy) }
    }

    fn read(&mut self, low: u64, high: u64) -> Found {
        let (bytes, end) = self.extent(low, high);
        let is_dense = bytes.saturating_mul(DENSE) >= end - low;
        // An error may be one of bytes that nobody asked for.
        let whole = if is_dense { self.read_whole(low, end) } else { None };
        whole.unwrap_or_else(|| self.read_pieces(low, high))
    }

    /// Reads all from `low` to `end`, and hands the pieces out. `None` if that fails.
    fn read_whole(&mut self, low: u64, end: u64) -> Option<Found> {
        let memory = self.bounce.room(end - low, low).ok()?;
        // SAFETY: the room is ours.
        let run = unsafe { Run::new(memory, (end - low) as usize) };
        let Moved { bytes, error } = carry(self.medium, Way::Read, &mut [run], low);
        if error.is_some() {
            return None;
        }
        for (post, positions) in self.members(low, low + bytes) {
            // SAFETY: it copies, and owns nothing.
            if unsafe { guarded(|| scatter(post, positions.start, positions.end, low, memory)) }.is_err() {
                return Some(protected(low));
            }
        }
        Some(if bytes < end - low { Found { end: low + bytes, ..Found::NOTHING } } else { Found::NOTHING })
    }

    /// Reads each piece for itself.
    fn read_pieces(&mut self, low: u64, high: u64) -> Found {
        let mut found = Found::NOTHING;
        for (post, positions) in self.members(low, high) {
            let medium = &Anybodys { medium: self.medium, is_protected: Cell::new(false) };
            let (way, buffer) = (Way::Read, post.buffer);
            let mut mover = Mover { medium, way, buffer, bounce: &mut self.bounce };
            for (from, piece) in pieces_of(post, &positions) {
                let Moved { bytes, error } = mover.piece(from, piece);
                if medium.is_protected.get() || error.is_some_and(|it| it.errno == Errno::FAULT) {
                    return protected(low);
                }
                if bytes < piece.length {
                    found.add(Found { end: piece.offset + bytes, error, ..Found::NOTHING });
                }
            }
        }
        found
    }
}

/// A medium for memory of any member.
struct Anybodys<'a, M> {
    medium: &'a M,
    is_protected: Cell<bool>,
}

impl<M: Medium> Medium for Anybodys<'_, M> {
    fn attempt(&self, way: Way, runs: &mut [Run<'_>], offset: u64) -> Result<usize, Errno> {
        self.medium.attempt(way, runs, offset)
    }

    fn mapping(&self, offset: u64, bytes: u64) -> Option<Mapping> {
        self.medium.mapping(offset, bytes)
    }

    fn copy(&self, copy: &dyn Fn()) {
        // SAFETY: it copies, and owns nothing.
        let copied = unsafe { guarded(copy) };
        self.is_protected.set(self.is_protected.get() || copied.is_err());
    }
}

/// The pieces of a part of a member's data.
pub(super) fn pieces<'a>(post: &'a Post<'a>, positions: &Range<u64>) -> Pieces<'a> {
    let Ok(pieces) = post.view.pieces(positions.start, positions.end - positions.start) else {
        unreachable!("a part of data that has its places");
    };
    pieces
}

/// The pieces of a part of a member's data, each with the byte of its buffer's data that it begins with.
fn pieces_of<'a>(post: &'a Post<'a>, positions: &Range<u64>) -> impl Iterator<Item = (u64, Piece)> + use<'a> {
    let mut at = positions.start - post.position;
    pieces(post, positions).map(move |piece| {
        let from = at;
        at += piece.length;
        (from, piece)
    })
}

/// Copies a part of a member's data to where it belongs in a chunk, whose byte `low` of the file is at `memory`.
pub(super) fn gather(post: &Post<'_>, start: u64, end: u64, low: u64, memory: *mut u8) {
    let (from, length) = (start - post.position, end - start);
    let Some(data) = post.buffer.contiguous() else {
        return pieces_of(post, &(start..end)).for_each(|(from, piece)| {
            let to = memory.wrapping_add((piece.offset - low) as usize);
            // SAFETY: the piece lies in the chunk, for which there is room, and which is no part of a buffer.
            unsafe { pack(post.buffer, from, to, piece.length) };
        });
    };
    // SAFETY: the pieces lie in the chunk, for which there is room, and which is no part of a buffer.
    unsafe {
        let (image, inside) = post.view.image(start, length, low, memory);
        unpack(image, inside, data.wrapping_add(from as usize), length);
    }
}

/// Copies a part of a member's data from a chunk, whose byte `low` of the file is at `memory`.
pub(super) fn scatter(post: &Post<'_>, start: u64, end: u64, low: u64, memory: *mut u8) {
    let (from, length) = (start - post.position, end - start);
    let Some(data) = post.buffer.contiguous() else {
        return pieces_of(post, &(start..end)).for_each(|(from, piece)| {
            let there = memory.wrapping_add((piece.offset - low) as usize);
            // SAFETY: the piece lies in the part of the chunk that was read, which is no part of a buffer.
            unsafe { unpack(post.buffer, from, there, piece.length) };
        });
    };
    // SAFETY: the pieces lie in the part of the chunk that was read, which is no part of a buffer.
    unsafe {
        let (image, inside) = post.view.image(start, length, low, memory);
        pack(image, inside, data.wrapping_add(from as usize), length);
    }
}

pub(super) fn failed(errno: Errno, offset: u64) -> Found {
    Found { end: offset, error: Some(Failure { errno, offset }), ..Found::NOTHING }
}

/// A program does not let this task use memory of a buffer.
#[cold]
pub(super) fn protected(offset: u64) -> Found {
    Found { end: offset, is_protected: true, ..Found::NOTHING }
}

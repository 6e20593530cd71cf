//! Moves bytes between a buffer and one piece of a file.

use super::Done;
use crate::layout::Piece;
use crate::medium::{Failure, Medium, Moved, RUNS, Run, Way, carry};
use alloc::vec::Vec;
use cohort_datatype::{Buffer, pack, unpack, visit};
use core::cell::Cell;
use core::mem::MaybeUninit;
use rustix::io::Errno;

/// Runs of at least this many bytes are moved as they are; copies of shorter ones cost less than the kernel's work for
/// each run.
pub(crate) const STRAIGHT: u64 = 16 << 10;

/// Bytes that pass through memory of ours at a time: few enough to stay in the cache.
pub(super) const BOUNCE: u64 = 256 << 10;

/// A line of the cache.
const LINE: u64 = 64;

/// The part of an address that decides whether copies are slow, as the smallest page has it.
const PAGE: u64 = 4096;

#[repr(align(4096))]
struct Page {
    _bytes: MaybeUninit<[u8; PAGE as usize]>,
}

/// Memory that bytes pass through.
#[derive(Default)]
pub(crate) struct Bounce {
    pages: Vec<Page>,
}

impl Bounce {
    /// Memory for `bytes` bytes that belong to `offset` of a file, whatever is in it. It begins in a line where they
    /// do: the kernel copies page by page, and one to three times as fast if each copy begins with a line. In a page it
    /// is far from there: memory of programs is near, and copies to a few bytes further on in a page are slow.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(crate) fn room(&mut self, bytes: u64, offset: u64) -> Result<*mut u8, Errno> {
        let inside = offset.wrapping_add(PAGE / 2) % PAGE;
        let pages = (inside + bytes).div_ceil(PAGE) as usize;
        self.pages.try_reserve_exact(pages).map_err(|_| Errno::NOMEM)?;
        Ok(self.pages.as_mut_ptr().cast::<u8>().wrapping_add(inside as usize))
    }
}

/// See the module page.
pub(crate) struct Mover<'a, 'b, M> {
    pub(crate) medium: &'a M,
    pub(crate) way: Way,
    pub(crate) buffer: Buffer<'b>,
    pub(crate) bounce: &'a mut Bounce,
}

impl<M: Medium> Mover<'_, '_, M> {
    /// Moves the bytes of `piece`, which are those of the buffer's data from byte `from` on.
    pub(crate) fn piece(&mut self, from: u64, piece: Piece) -> Moved {
        match self.buffer.contiguous().map(|data| data.wrapping_add(from as usize)) {
            Some(memory) if self.goes_straight(memory, piece) => {
                // SAFETY: it is the buffer's data.
                let run = unsafe { Run::new(memory, piece.length as usize) };
                carry(self.medium, self.way, &mut [run], piece.offset)
            }
            None if self.way == Way::Write && self.buffer.typical_run() >= STRAIGHT => self.by_runs(from, piece),
            _ => self.by_copies(from, piece),
        }
    }

    /// Whether the kernel reads long pieces into memory faster than by way of a bounce: if both begin in a line at the
    /// same place. Writes lose little otherwise.
    fn goes_straight(&self, memory: *mut u8, piece: Piece) -> bool {
        let is_even = (memory.addr() as u64).wrapping_sub(piece.offset).is_multiple_of(LINE);
        self.way == Way::Write || piece.length < STRAIGHT || is_even
    }

    /// Hands the buffer's runs to the kernel, some at a time.
    fn by_runs(&mut self, from: u64, piece: Piece) -> Moved {
        let (medium, way) = (self.medium, self.way);
        let mut runs = [Run::NONE; RUNS];
        let mut count = 0;
        let mut all = Moved { bytes: 0, error: None };
        // Bytes that were handed to the kernel: if it moved fewer, that was the end.
        let mut handed = 0;
        let mut flush = |runs: &mut [Run<'_>], all: &mut Moved| {
            if all.error.is_none() && all.bytes == handed {
                handed += runs.iter().map(|run| run.bytes() as u64).sum::<u64>();
                let moved = carry(medium, way, runs, piece.offset + all.bytes);
                *all = Moved { bytes: all.bytes + moved.bytes, error: moved.error };
            }
        };
        visit(self.buffer, from, from + piece.length, |memory, bytes| {
            // SAFETY: it is the buffer's data.
            runs[count] = unsafe { Run::new(memory, bytes) };
            count += 1;
            if count == RUNS {
                flush(&mut runs, &mut all);
                count = 0;
            }
        });
        flush(&mut runs[..count], &mut all);
        all
    }

    /// Copies between the buffer and memory of ours.
    fn by_copies(&mut self, from: u64, piece: Piece) -> Moved {
        let mut done = 0;
        while done < piece.length {
            let (bytes, offset) = ((piece.length - done).min(BOUNCE), piece.offset + done);
            let memory = match self.bounce.room(bytes, offset) {
                Ok(memory) => memory,
                Err(errno) => return Moved { bytes: done, error: Some(Failure { errno, offset }) },
            };
            if self.way == Way::Write {
                self.medium.copy(&|| {
                    // SAFETY: there is room for as many, which is no part of the buffer.
                    unsafe { pack(self.buffer, from + done, memory, bytes) };
                });
            }
            // SAFETY: the room is ours.
            let run = unsafe { Run::new(memory, bytes as usize) };
            let moved = carry(self.medium, self.way, &mut [run], offset);
            if self.way == Way::Read {
                self.medium.copy(&|| {
                    // SAFETY: the kernel has filled as many bytes, which are no part of the buffer.
                    unsafe { unpack(self.buffer, from + done, memory, moved.bytes) };
                });
            }
            done += moved.bytes;
            if moved.bytes < bytes {
                return Moved { bytes: done, error: moved.error };
            }
        }
        Moved { bytes: done, error: None }
    }

    /// Reads `span`, and the pieces within it into the buffer's data from byte `done` on. `None` if it cannot be read,
    /// which may be for bytes that nobody asked for.
    pub(super) fn window(&mut self, mut done: u64, span: Piece, pieces: impl Iterator<Item = Piece>) -> Option<Done> {
        if span.length > BOUNCE {
            return None;
        }
        let memory = self.bounce.room(span.length, span.offset).ok()?;
        // SAFETY: the room is ours.
        let run = unsafe { Run::new(memory, span.length as usize) };
        let moved = carry(self.medium, Way::Read, &mut [run], span.offset);
        if moved.error.is_some() {
            return None;
        }
        for piece in pieces {
            let at = piece.offset - span.offset;
            let bytes = moved.bytes.saturating_sub(at).min(piece.length);
            let there = memory.wrapping_add(at as usize);
            let copied = Cell::new(0);
            self.medium.copy(&|| {
                // SAFETY: the kernel has filled as many bytes from there on, which are no part of the buffer.
                copied.set(unsafe { unpack(self.buffer, done, there, bytes) });
            });
            done += copied.get();
            if bytes < piece.length {
                break;
            }
        }
        Some(Done { bytes: done, error: None })
    }

    /// Writes the pieces within `span`, of which there are several, from byte `done` of the buffer's data on, through a
    /// mapping of the file. `None` if that cannot be: perhaps some are written.
    pub(super) fn mapped(
        &mut self,
        done: u64,
        span: Piece,
        pieces: impl Iterator<Item = Piece> + Clone,
    ) -> Option<Done> {
        let (last, total) = (pieces.clone().last()?, pieces.clone().map(|piece| piece.length).sum::<u64>());
        // By a call of the kernel's, which makes the file as long as it has to be and notes that it was written.
        if self.piece(done + total - last.length, last).bytes < last.length {
            return None;
        }
        let mapping = self.medium.mapping(span.offset, last.offset - span.offset)?;
        let (buffer, data) = (self.buffer, self.buffer.contiguous());
        let copy = |memory: *mut u8| {
            let mut from = done;
            for piece in pieces.clone().take_while(|piece| piece.offset < last.offset) {
                let to = memory.wrapping_add((piece.offset - span.offset) as usize);
                // SAFETY: the piece lies in the mapping, which is no part of the buffer.
                unsafe {
                    match data {
                        Some(data) => {
                            to.copy_from_nonoverlapping(data.wrapping_add(from as usize), piece.length as usize);
                        }
                        None => _ = pack(buffer, from, to, piece.length),
                    }
                }
                from += piece.length;
            }
        };
        // SAFETY: it copies, and owns nothing.
        let is_copied = unsafe { mapping.fill(copy) };
        is_copied.then_some(Done { bytes: done + total, error: None })
    }
}

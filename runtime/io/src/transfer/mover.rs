//! Moves bytes between a buffer and one piece of a file.

use super::Done;
use crate::layout::Piece;
use crate::medium::{Failure, Medium, Moved, RUNS, Run, Way, carry};
use alloc::vec::Vec;
use cohort_datatype::{Buffer, pack, unpack, visit};
use rustix::io::Errno;

/// Runs of at least this many bytes are moved as they are; copies of shorter ones cost less than the kernel's work for
/// each run.
pub(crate) const STRAIGHT: u64 = 16 << 10;

/// Bytes that pass through memory of ours at a time: few enough to stay in the cache.
pub(super) const BOUNCE: u64 = 256 << 10;

/// Memory that bytes pass through.
#[derive(Default)]
pub(crate) struct Bounce {
    memory: Vec<u8>,
}

impl Bounce {
    /// Memory for `bytes` bytes, whatever is in it.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(crate) fn room(&mut self, bytes: u64) -> Result<*mut u8, Errno> {
        self.memory.try_reserve_exact(bytes as usize).map_err(|_| Errno::NOMEM)?;
        Ok(self.memory.as_mut_ptr())
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
        if let Some(memory) = self.buffer.contiguous() {
            // SAFETY: it is the buffer's data.
            let run = unsafe { Run::new(memory.wrapping_add(from as usize), piece.length as usize) };
            return carry(self.medium, self.way, &mut [run], piece.offset);
        }
        if self.buffer.typical_run() >= STRAIGHT { self.by_runs(from, piece) } else { self.by_copies(from, piece) }
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
            let memory = match self.bounce.room(bytes) {
                Ok(memory) => memory,
                Err(errno) => return Moved { bytes: done, error: Some(Failure { errno, offset }) },
            };
            if self.way == Way::Write {
                // SAFETY: there is room for as many, which is no part of the buffer.
                unsafe { pack(self.buffer, from + done, memory, bytes) };
            }
            // SAFETY: the room is ours.
            let run = unsafe { Run::new(memory, bytes as usize) };
            let moved = carry(self.medium, self.way, &mut [run], offset);
            if self.way == Way::Read {
                // SAFETY: the kernel has filled as many bytes, which are no part of the buffer.
                unsafe { unpack(self.buffer, from + done, memory, moved.bytes) };
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
        let memory = self.bounce.room(span.length).ok()?;
        // SAFETY: the room is ours.
        let run = unsafe { Run::new(memory, span.length as usize) };
        let moved = carry(self.medium, Way::Read, &mut [run], span.offset);
        if moved.error.is_some() {
            return None;
        }
        for piece in pieces {
            let at = piece.offset - span.offset;
            let bytes = moved.bytes.saturating_sub(at).min(piece.length);
            // SAFETY: the kernel has filled as many bytes from there on, which are no part of the buffer.
            done += unsafe { unpack(self.buffer, done, memory.wrapping_add(at as usize), bytes) };
            if bytes < piece.length {
                break;
            }
        }
        Some(Done { bytes: done, error: None })
    }
}

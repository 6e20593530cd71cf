//! How bytes get to the kernel and back.
//!
//! A [`Medium`] is one attempt of the kernel's. [`carry`] makes of it what callers want: short counts go on, what was
//! interrupted is done again, a read that meets the end of the file ends there, and all else is told.

#[cfg(test)]
pub(crate) mod fake;
mod lent;
mod mapping;
mod plain;
#[cfg(test)]
mod tests;

pub use lent::{Ask, Lent};
pub use mapping::Mapping;
pub use plain::Plain;

use core::marker::PhantomData;
use rustix::io::Errno;
use rustix::thread::sched_yield;

/// Runs of memory that one call of the kernel's takes.
pub const RUNS: usize = 64;

/// How often in a row the kernel may ask to try again. No file system does so for long.
const TRIES: u32 = 100_000;

/// Why a transfer ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the kernel said.
    pub errno: Errno,
    /// The first byte of the file that was not read or written.
    pub offset: u64,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// Bytes of memory that a file's bytes go to or come from.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    memory: *mut u8,
    bytes: usize,
    _memory: PhantomData<&'a mut u8>,
}

impl<'a> Run<'a> {
    /// `bytes` bytes at `memory`.
    ///
    /// # Safety
    /// As long as it lives they may be read, and written where it is used for reads of a file; nobody else writes them
    /// meanwhile.
    #[must_use]
    pub const unsafe fn new(memory: *mut u8, bytes: usize) -> Self {
        Self { memory, bytes, _memory: PhantomData }
    }

    /// No bytes.
    pub const NONE: Self = Self { memory: core::ptr::NonNull::dangling().as_ptr(), bytes: 0, _memory: PhantomData };

    /// As a source of bytes.
    #[must_use]
    pub fn source(&self) -> &'a [u8] {
        // SAFETY: `new`'s caller promised.
        unsafe { core::slice::from_raw_parts(self.memory, self.bytes) }
    }

    /// As room for bytes.
    #[must_use]
    pub fn room(&mut self) -> &'a mut [u8] {
        // SAFETY: `new`'s caller promised.
        unsafe { core::slice::from_raw_parts_mut(self.memory, self.bytes) }
    }

    /// How many bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Without its first `bytes` bytes.
    fn behind(self, bytes: usize) -> Self {
        Self { memory: self.memory.wrapping_add(bytes), bytes: self.bytes - bytes, ..self }
    }
}

/// The kernel's side of an open file. Called by tasks in whose table of descriptors the file is.
pub trait Medium {
    /// Moves bytes between `runs`, at most [`RUNS`] of them, and the file at `offset`, perhaps fewer than there are.
    ///
    /// # Errors
    /// The kernel's.
    fn attempt(&self, way: Way, runs: &mut [Run<'_>], offset: u64) -> Result<usize, Errno>;

    /// [`Medium::attempt`] with memory of the caller's rank's.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    fn attempt_own(&self, way: Way, runs: &mut [Run<'_>], offset: u64) -> Result<usize, Errno> {
        self.attempt(way, runs, offset)
    }

    /// A part of the file as memory, all of whose bytes the file has. `None` if it cannot be.
    #[inline]
    fn mapping(&self, _offset: u64, _bytes: u64) -> Option<Mapping> {
        None
    }

    /// Does a copy to or from memory of the caller's rank's program. It may begin anew.
    #[inline]
    fn copy(&self, copy: &dyn Fn()) {
        copy();
    }
}

/// What was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Bytes from the start on.
    pub bytes: u64,
    /// Why not all; `None` at the end of a file that is read.
    pub error: Option<Failure>,
}

/// Moves all bytes of `runs` to or from the file at `offset`, but those behind the end of a file that is read.
pub fn carry(medium: &impl Medium, way: Way, mut runs: &mut [Run<'_>], offset: u64) -> Moved {
    let mut done = 0;
    let mut tries = 0;
    while let Some(first) = runs.first() {
        if first.bytes == 0 {
            runs = &mut runs[1..];
            continue;
        }
        let at = offset + done;
        let failed = |errno| Moved { bytes: done, error: Some(Failure { errno, offset: at }) };
        let count = runs.len().min(RUNS);
        match medium.attempt_own(way, &mut runs[..count], at) {
            Ok(0) if way == Way::Read => return Moved { bytes: done, error: None },
            // No file system says so; it would go on for ever.
            Ok(0) => return failed(Errno::IO),
            Ok(bytes) => {
                done += bytes as u64;
                tries = 0;
                runs = advance(runs, bytes);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if tries < TRIES => {
                tries += 1;
                sched_yield();
            }
            Err(errno) => return failed(errno),
        }
    }
    Moved { bytes: done, error: None }
}

/// The runs without their first `bytes` bytes.
fn advance<'r, 'a>(mut runs: &'r mut [Run<'a>], mut bytes: usize) -> &'r mut [Run<'a>] {
    while let Some(first) = runs.first_mut() {
        if bytes < first.bytes {
            *first = first.behind(bytes);
            break;
        }
        bytes -= first.bytes;
        runs = &mut runs[1..];
    }
    runs
}

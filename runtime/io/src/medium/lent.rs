//! System calls by a thread of the rank that is none of the program's.

use super::{Mapping, Medium, Plain, Run, Way};
use cohort_core::guard::guarded;
use core::cell::Cell;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// Has a thread of the program's run something, and waits until it has. Called by another thread of the rank.
pub type Ask<'a> = &'a dyn Fn(&dyn Fn());

/// [`Plain`] in a thread of the runtime's own. The program may protect memory of its buffers, and open it in a handler
/// of its signals, which must not run there; so what meets such memory is left to a thread of the program's.
pub struct Lent<'a> {
    plain: Plain<'a>,
    ask: Ask<'a>,
}

impl<'a> Lent<'a> {
    /// The file of this descriptor, and how a thread of the program's is asked.
    #[must_use]
    pub fn new(file: BorrowedFd<'a>, ask: Ask<'a>) -> Self {
        Self { plain: Plain(file), ask }
    }
}

impl Medium for Lent<'_> {
    fn attempt(&self, way: Way, runs: &mut [Run<'_>], offset: u64) -> Result<usize, Errno> {
        self.plain.attempt(way, runs, offset)
    }

    fn attempt_own(&self, way: Way, runs: &mut [Run<'_>], offset: u64) -> Result<usize, Errno> {
        match self.plain.attempt(way, runs, offset) {
            Err(Errno::FAULT) => {}
            other => return other,
        }
        let (runs, result) = (Cell::new(Some(runs)), Cell::new(Err(Errno::FAULT)));
        (self.ask)(&|| {
            if let Some(runs) = runs.take() {
                result.set(self.plain.attempt(way, runs, offset));
            }
        });
        result.get()
    }

    fn mapping(&self, offset: u64, bytes: u64) -> Option<Mapping> {
        self.plain.mapping(offset, bytes)
    }

    fn copy(&self, copy: &dyn Fn()) {
        // SAFETY: it copies, and owns nothing.
        if unsafe { guarded(copy) }.is_err() {
            (self.ask)(copy);
        }
    }
}

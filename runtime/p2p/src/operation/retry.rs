//! Messages whose copy met memory that a program has protected.
//!
//! Whoever copies is often not the task whose handler of SIGSEGV would open the memory. So it stops
//! (`core/src/guard.rs`), and the message goes to the rank of that side. That rank's own task, in a call of its
//! program, touches its part of the message, as it would copy it in an MPI whose ranks are processes: its program's
//! handler runs, or it dies in its own name. Then it copies the message, or hands it on when the other side is
//! protected too.

use super::job::JobRef;
use super::side::Side;
use super::{copy_guarded, copy_range};
use cohort_arch::page;
use cohort_base::boot::Touched;
use cohort_base::signals::Signals;
use cohort_base::sync::atomic::Ordering;
use cohort_core::Piece;
use cohort_core::arch;
use cohort_core::rank::Rank;
use cohort_datatype::{Buffer, visit};

/// How often a side's own task opens its memory and finds it protected again, before it copies without a guard.
const PATIENCE: u32 = 4;

/// A message that was handed over to a side, to be copied by that side's own task.
pub(crate) struct Retry {
    job: JobRef,
    side: Side,
}

impl Retry {
    /// What is to be done with a job that was handed over, on a task of the rank that took it.
    pub(crate) fn of(job: JobRef) -> Self {
        let side = Side::first_of(job.job().protected.load(Ordering::Relaxed));
        Self { job, side }
    }
}

impl Piece for Retry {
    fn run(&self, _pieces: u32) -> u64 {
        // Another thread of the program has the handler, perhaps: this one is not to die for it.
        let blocked = Signals::admit_faults();
        let bytes = self.open_and_copy();
        if let Some(blocked) = blocked {
            blocked.restore();
        }
        bytes
    }
}

impl Retry {
    /// Has the side's memory opened, and copies the message or hands it on. Returns the bytes copied.
    fn open_and_copy(&self) -> u64 {
        let job = self.job.job();
        // SAFETY: the job was handed over to this rank, whose own task this is.
        unsafe {
            for _ in 0..PATIENCE {
                self.touch();
                let left = job.protected.fetch_and(!(self.side as u32), Ordering::Relaxed);
                if self.side.other().is_in(left) {
                    job.hand_over();
                    return 0;
                }
                let bytes = job.status.bytes as u64;
                let Err(side) = copy_guarded(&job.rts, &job.receive, 0, bytes) else {
                    job.complete();
                    return bytes;
                };
                job.found_protected(side);
                if side != self.side {
                    job.hand_over();
                    return 0;
                }
            }
            // Its handler opens less than the message at a time.
            copy_range(&job.rts, &job.receive, 0, job.status.bytes as u64);
            job.complete();
            job.status.bytes as u64
        }
    }

    /// Accesses each page of the side's part of the message as a copy would.
    ///
    /// # Safety
    /// On a task of that side's rank; the message is not complete.
    unsafe fn touch(&self) {
        let job = self.job.job();
        // SAFETY: the caller's promise; the message's buffers are the engine's until it is complete.
        unsafe {
            let rank = job.rank_of(self.side);
            let bytes = job.status.bytes as u64;
            // Offers without a request are in memory of the engine's, which is never protected.
            let sent = job.rts.request.as_ref().map_or(Buffer::EMPTY, |request| request.buffer());
            match self.side {
                Side::Receiver => during(rank, Touched::Receive, || {
                    visit(job.receive.buffer(), 0, bytes, |memory, length| {
                        each_page(memory, length, |byte| arch::write_nothing(byte));
                    });
                }),
                Side::Sender => during(rank, Touched::Send, || {
                    visit(sent, 0, bytes, |memory, length| {
                        each_page(memory, length, |byte| {
                            byte.read_volatile();
                        });
                    });
                }),
            }
        }
    }
}

/// Has the loader know meanwhile what the rank accesses.
fn during(rank: &Rank, touched: Touched, access: impl FnOnce()) {
    let word = &rank.boot().touched;
    word.store(touched as u32, Ordering::Release);
    access();
    word.store(0, Ordering::Release);
}

/// Calls `access` for the first byte of a run of memory, and of each page that it reaches into.
fn each_page(memory: *mut u8, length: usize, access: impl Fn(*mut u8)) {
    let mut done = 0;
    while done < length {
        let at = memory.wrapping_add(done);
        access(at);
        done += page() - at.addr() % page();
    }
}

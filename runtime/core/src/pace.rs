//! When a loop of calls that wait for nothing gives its CPU away.
//!
//! A flush, or `MPI_Win_sync`, with nothing to wait for ends at once. A program may call it in a loop until others have
//! changed its memory, and they may need its CPU. Or it has a million operations to do. The call cannot tell. So such a
//! loop takes turns of progress, gives its CPU away only after a while, and then for half of its time while others soon
//! give it back, for a quarter while they do not: those that it waits for run at once, and a loop that waits for nobody
//! is hardly slower.

use crate::ranks::Owner;
use crate::ranks::Rank;
use crate::wait::{NAP, gives_way, nap, turn_of};
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::sync::atomic::{AtomicU64, Ordering};

/// Calls that follow each other faster than this are a loop.
const LOOP_US: u64 = 50;

/// How long a loop goes on before it gives its CPU away, and between two times at least.
const PATIENCE_US: u64 = 5;

/// A loop goes on for this part of the time that it has slept.
const PART: u64 = 3;

/// What is known of the loop that a program may be in. Of the owner's tasks: hints, so all accesses are Relaxed.
#[derive(Debug, Default)]
pub struct Pace {
    /// When the last call was over, in ticks.
    last: AtomicU64,
    /// Not before this time is the CPU given away.
    next: AtomicU64,
}

impl Pace {
    /// A turn of progress in a call that waits for nothing.
    pub fn turn(&self, owner: Owner<'_>) {
        if turn_of(owner) {
            // The loop has something to do.
            self.last.store(0, Ordering::Relaxed);
            return;
        }
        let rank = owner.rank();
        if gives_way(rank) {
            self.go_on(rank);
        }
    }

    fn go_on(&self, rank: &Rank) {
        let now = ticks();
        let is_loop = now.wrapping_sub(self.last.load(Ordering::Relaxed)) < ticks_of_us(LOOP_US);
        let mut next = self.next.load(Ordering::Relaxed);
        if !is_loop {
            next = now.wrapping_add(ticks_of_us(PATIENCE_US));
        } else if now.wrapping_sub(next).cast_signed() >= 0 {
            let least = ticks_of_us(PATIENCE_US);
            let pause = match rank.node().yield_policy().give_way() {
                Some(took) => took.max(least),
                None => {
                    nap(rank, NAP);
                    ticks().wrapping_sub(now) / PART
                }
            };
            next = ticks().wrapping_add(pause);
        }
        self.next.store(next, Ordering::Relaxed);
        self.last.store(ticks(), Ordering::Relaxed);
    }
}

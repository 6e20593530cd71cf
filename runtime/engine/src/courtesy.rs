//! Giving the CPU away, and when not to.
//!
//! Where ranks outnumber CPUs, a waiting rank gives its CPU by `sched_yield` to those it waits for, which costs less than a
//! sleep and a wake. But the kernel lets run whoever is next, and charges a whole slice of time to the one that gives way.
//! Beside programs that compute a yield lasts milliseconds, and a rank that yields in every wait is left with a
//! few percent of a CPU: an allreduce of five ranks on two CPUs beside other busy programs took 7 to 12 ms with yields, and
//! 0.1 to 0.25 ms without; one in a loop of `MPI_Test` 10 and 0.06 ms.
//!
//! So a yield that took long ([`SLOW_US`]) tells all ranks of the node, who share the CPUs, not to yield for [`REST`]
//! times as long. Meanwhile they sleep, and those who wake them find them.

use crate::arch::{TICKS_PER_US, ticks};
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering};

/// A yield that takes longer has given the CPU to somebody who computes: ranks that wait give it back in microseconds.
const SLOW_US: u64 = 1000;

/// How much longer than a slow yield nobody yields.
const REST: u64 = 50;

/// When the ranks of a node give their CPUs away.
#[derive(Debug)]
pub(crate) struct Courtesy {
    /// Nobody yields before this time, in ticks.
    resumes: CacheLine<AtomicU64>,
}

impl Courtesy {
    pub(crate) fn new() -> Self {
        Self {
            resumes: CacheLine(AtomicU64::new(0)),
        }
    }

    /// Gives the CPU away and says for how many ticks; `None`, at once, while nobody yields.
    pub(crate) fn give_way(&self) -> Option<u64> {
        let before = ticks();
        // Relaxed: a hint.
        if self.is_resting(before) {
            return None;
        }
        rustix::thread::sched_yield();
        let took = ticks().wrapping_sub(before);
        self.note(before, took);
        Some(took)
    }

    fn is_resting(&self, now: u64) -> bool {
        let resumes = self.resumes.load(Ordering::Relaxed);
        // The clock of another CPU may be a little behind, and time may wrap.
        resumes != 0 && resumes.wrapping_sub(now).cast_signed() > 0
    }

    /// A yield that began at `before` took this long.
    fn note(&self, before: u64, took: u64) {
        if took > SLOW_US * TICKS_PER_US {
            let resumes = before.wrapping_add(took.saturating_mul(REST));
            self.resumes.store(resumes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_yield_is_not_repeated_soon() {
        let courtesy = Courtesy::new();
        let slow = 2 * SLOW_US * TICKS_PER_US;
        assert!(!courtesy.is_resting(1));
        courtesy.note(1, slow / 4);
        assert!(!courtesy.is_resting(1), "that was a quick one");
        courtesy.note(1, slow);
        assert!(courtesy.is_resting(1) && courtesy.is_resting(slow * (REST - 1)));
        assert!(!courtesy.is_resting(slow * REST + 2));
    }

    #[test]
    fn nobody_yields_while_it_rests() {
        let courtesy = Courtesy::new();
        let long_ago = ticks().wrapping_sub(SLOW_US * TICKS_PER_US * 2);
        courtesy.note(long_ago, u64::from(u32::MAX) * SLOW_US);
        assert_eq!(courtesy.give_way(), None);
    }
}

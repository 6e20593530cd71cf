//! Memory that the program has freed and its C library holds.
//!
//! A process gives the end of its heap back to the kernel when much of it is free. A rank's heap has no end that could
//! move: the break is one for all ranks, and frozen. So the rank gives back what is free ([`RankBoot::spare`]) when it
//! has nothing else to do.
//!
//! [`RankBoot::spare`]: cohort_base::boot::RankBoot::spare

use super::Rank;
use cohort_base::clock::{ticks, ticks_per_us};
use cohort_base::sync::atomic::{AtomicU64, Ordering};

/// Microseconds from one time to the next.
const PERIOD: u64 = 1_000_000;

/// When a rank looks at its memory again, in ticks.
#[derive(Debug, Default)]
pub struct Spare(AtomicU64);

impl Spare {
    /// Whether it is time, for one of those who ask.
    fn is_due(&self, now: u64) -> bool {
        let next = self.0.load(Ordering::Relaxed);
        let after = now.saturating_add(PERIOD * ticks_per_us());
        // Relaxed: of several threads one is to look, and nothing else depends on it.
        now >= next && self.0.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Rank {
    /// Once in a while, has the rank's C library give back what it holds free. For a thread of the program's that is
    /// about to sleep; takes as long as that takes.
    #[cold]
    pub(crate) fn give_back_memory(&self) {
        if self.spare.is_due(ticks()) {
            self.boot.spare.call();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_looked_at_once_in_a_period() {
        let (spare, period) = (Spare::default(), PERIOD * ticks_per_us());
        let found = [5, 6, 4 + period, 5 + period, 6 + period].map(|now| spare.is_due(now));
        assert_eq!(found, [true, false, false, true, false]);
    }
}

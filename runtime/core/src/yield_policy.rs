//! Giving the CPU away, and when not to.
//!
//! Where ranks outnumber CPUs, a waiting rank gives its CPU by `sched_yield` to those it waits for,
//! which costs less than a sleep and a wake. But the kernel lets run whoever is next, and charges a
//! whole slice of time to the one that gives way. Beside programs that compute a yield lasts
//! milliseconds, and a rank that yields in every wait is left with a few percent of a CPU: an
//! allreduce of five ranks on two CPUs beside other busy programs took 7 to 12 ms with yields, and
//! 0.1 to 0.25 ms without; one in a loop of `MPI_Test` 10 and 0.06 ms.
//!
//! So a yield that took long ([`SLOW_US`]) tells all ranks of the node, who share the CPUs, not to yield for several
//! times as long. Meanwhile they sleep, and those who wake them find them. The rest is no longer where yields are slow
//! again right after it: the ranks themselves compute at times, and an allreduce of eight ranks on two CPUs took five
//! times as long while a rest of up to a third of a second went on after that. Beside busy programs rests of one length
//! are no worse.

use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering};

/// A yield that takes longer has given the CPU to somebody who computes: ranks that wait give it back in microseconds.
const SLOW_US: u64 = 1000;

/// The longest time that counts of a yield: ranks that start up take each other's CPUs for longer, once.
const COUNTED_US: u64 = 5 * SLOW_US;

/// How many times as long as a slow yield nobody yields.
const REST: u64 = 4;

/// When the ranks of a node give their CPUs away. Holds the time, in ticks, before which nobody yields, or 0: a hint,
/// so all accesses are Relaxed, and of two notes at a time one may be lost.
#[derive(Debug, Default)]
pub struct YieldPolicy(CacheLine<AtomicU64>);

impl YieldPolicy {
    /// Gives the CPU away and says for how many ticks; `None`, at once, while nobody yields.
    pub fn give_way(&self) -> Option<u64> {
        let before = ticks();
        if self.is_resting(before) {
            return None;
        }
        rustix::thread::sched_yield();
        let took = ticks().wrapping_sub(before);
        self.note(before, took);
        Some(took)
    }

    fn is_resting(&self, now: u64) -> bool {
        let resumes = self.0.load(Ordering::Relaxed);
        // The clock of another CPU may be a little behind, and time may wrap.
        resumes != 0 && now.wrapping_sub(resumes).cast_signed() < 0
    }

    /// A yield that began at `before` took this long.
    fn note(&self, before: u64, took: u64) {
        if took <= ticks_of_us(SLOW_US) {
            return;
        }
        let rest = took.min(ticks_of_us(COUNTED_US)) * REST;
        self.0.store(before.wrapping_add(took).wrapping_add(rest), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of a slow yield.
    fn slow() -> u64 {
        2 * ticks_of_us(SLOW_US)
    }

    #[test]
    fn a_slow_yield_is_not_repeated_soon() {
        let yield_policy = YieldPolicy::default();
        assert!(!yield_policy.is_resting(1));
        yield_policy.note(1, slow() / 4);
        assert!(!yield_policy.is_resting(1), "that was a quick one");
        yield_policy.note(1, slow());
        assert!(yield_policy.is_resting(1) && yield_policy.is_resting(slow() * REST));
        assert!(!yield_policy.is_resting(slow() * (REST + 1) + 1));
    }

    #[test]
    fn no_yield_counts_for_more_than_a_few_milliseconds() {
        let yield_policy = YieldPolicy::default();
        yield_policy.note(1, slow() * 1000);
        let ended = 1 + slow() * 1000;
        assert!(yield_policy.is_resting(ended));
        assert!(!yield_policy.is_resting(ended + ticks_of_us(COUNTED_US) * REST));
    }

    #[test]
    fn nobody_yields_while_it_rests() {
        let yield_policy = YieldPolicy::default();
        let long_ago = ticks().wrapping_sub(slow());
        yield_policy.note(long_ago, slow() - 1);
        assert_eq!(yield_policy.give_way(), None);
    }
}

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
//! times as long. Meanwhile they sleep, and those who wake them find them. The rest is short at first, since the ranks
//! themselves compute at times, and becomes longer whenever yields are slow again right after it.

use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering};

/// A yield that takes longer has given the CPU to somebody who computes: ranks that wait give it back in microseconds.
const SLOW_US: u64 = 1000;

/// The longest time that counts of a yield: ranks that start up take each other's CPUs for longer, once.
const COUNTED_US: u64 = 5 * SLOW_US;

/// How many times as long as a slow yield nobody yields: at first, and at most.
const REST: u64 = 4;
const REST_MAX: u64 = 64;

/// When the ranks of a node give their CPUs away.
#[derive(Debug)]
pub struct YieldPolicy(CacheLine<Words>);

/// Hints, so all accesses are Relaxed: of two notes at a time one may be lost.
#[derive(Debug)]
struct Words {
    /// Nobody yields before this time, in ticks.
    resumes: AtomicU64,
    /// The last rest was this many times as long as the yield before it.
    rest: AtomicU64,
}

impl Default for YieldPolicy {
    /// Nobody rests.
    fn default() -> Self {
        Self(CacheLine(Words { resumes: AtomicU64::new(0), rest: AtomicU64::new(REST) }))
    }
}

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
        // The clock of another CPU may be a little behind, and time may wrap.
        self.since_rest(now).is_some_and(|since| since.cast_signed() < 0)
    }

    /// Time since the end of the last rest, negative in the middle of it; `None` if there was none yet.
    fn since_rest(&self, now: u64) -> Option<u64> {
        let resumes = self.0.resumes.load(Ordering::Relaxed);
        (resumes != 0).then(|| now.wrapping_sub(resumes))
    }

    /// A yield that began at `before` took this long.
    fn note(&self, before: u64, took: u64) {
        if took <= ticks_of_us(SLOW_US) {
            return;
        }
        let Words { resumes, rest } = &*self.0;
        let counted = took.min(ticks_of_us(COUNTED_US));
        let times = match self.since_rest(before).map(u64::cast_signed) {
            // Several ranks yielded at the same time.
            Some(..0) => rest.load(Ordering::Relaxed),
            Some(since) if since.cast_unsigned() < counted * REST => (rest.load(Ordering::Relaxed) * 2).min(REST_MAX),
            _ => REST,
        };
        rest.store(times, Ordering::Relaxed);
        let until = before.wrapping_add(took).wrapping_add(counted * times);
        resumes.store(until, Ordering::Relaxed);
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
    fn a_rest_that_did_not_help_is_followed_by_a_longer_one() {
        let yield_policy = YieldPolicy::default();
        yield_policy.note(1, slow());
        yield_policy.note(2, slow());
        let again = slow() * (REST + 1) + 2;
        assert!(!yield_policy.is_resting(again), "yields at one time count once");
        yield_policy.note(again, slow());
        assert!(yield_policy.is_resting(again + slow() * 2 * REST));
        let much_later = again + slow() * 10 * REST;
        yield_policy.note(much_later, slow());
        assert!(!yield_policy.is_resting(much_later + slow() * (REST + 1)));
    }

    #[test]
    fn rests_have_limits() {
        let yield_policy = YieldPolicy::default();
        let longest = ticks_of_us(COUNTED_US) * REST_MAX;
        let mut now = 1;
        for _ in 0..10 {
            yield_policy.note(now, slow() * 1000);
            now += slow() * 1000;
            assert!(!yield_policy.is_resting(now + longest));
            while yield_policy.is_resting(now) {
                now += slow();
            }
        }
        assert_eq!(yield_policy.0.rest.load(Ordering::Relaxed), REST_MAX);
    }

    #[test]
    fn nobody_yields_while_it_rests() {
        let yield_policy = YieldPolicy::default();
        let long_ago = ticks().wrapping_sub(slow());
        yield_policy.note(long_ago, slow() - 1);
        assert_eq!(yield_policy.give_way(), None);
    }
}

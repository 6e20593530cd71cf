//! A rank's time in MPI over the job's time, in so many bins of equal width: for the page of `COHORT_STATS`.
//!
//! The bins become twice as wide whenever the job has outgrown them, so memory is bounded and no width must be guessed.

/// Bins.
pub const BINS: usize = 128;

/// What fell into each bin, in ticks.
#[derive(Clone, Debug)]
pub struct Course {
    /// Of each bin, in ticks.
    pub width: u64,
    /// In MPI.
    pub mpi: [u64; BINS],
    /// Of that, waiting.
    pub waiting: [u64; BINS],
}

impl Course {
    /// Nothing yet, in bins that are `width` ticks wide at first.
    #[must_use]
    pub fn new(width: u64) -> Self {
        Self { width: width.max(1), mpi: [0; BINS], waiting: [0; BINS] }
    }

    /// A call took from `from` to `to`, in ticks since the rank's first call, of which it waited `waited`: as if spread
    /// evenly over the call.
    pub fn add(&mut self, from: u64, to: u64, waited: u64) {
        while to > self.width * BINS as u64 {
            self.fold();
        }
        let time = to.saturating_sub(from);
        let mut at = from;
        while at < to {
            let bin = (at / self.width) as usize;
            let end = to.min((bin as u64 + 1) * self.width);
            self.mpi[bin] += end - at;
            // Differences of running shares, so that no tick is lost.
            let share = |ticks: u64| (u128::from(waited) * u128::from(ticks) / u128::from(time)) as u64;
            self.waiting[bin] += share(end - from) - share(at - from);
            at = end;
        }
    }

    /// Makes each two neighbours one.
    fn fold(&mut self) {
        for bins in [&mut self.mpi, &mut self.waiting] {
            for bin in 0..BINS / 2 {
                bins[bin] = bins[2 * bin] + bins[2 * bin + 1];
            }
            bins[BINS / 2..].fill(0);
        }
        self.width *= 2;
    }

    /// Bins up to the last one that holds something.
    #[must_use]
    pub fn used(&self) -> usize {
        self.mpi.iter().rposition(|&ticks| ticks > 0).map_or(0, |last| last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_falls_into_the_bins_that_it_touches() {
        let mut course = Course::new(10);
        course.add(5, 25, 10);
        assert_eq!(course.mpi[..4], [5, 10, 5, 0]);
        assert_eq!(course.waiting.iter().sum::<u64>(), 10);
        assert_eq!(course.used(), 3);
        course.add(30, 30, 0);
        assert_eq!(course.used(), 3);
    }

    #[test]
    fn bins_widen_and_lose_nothing() {
        let mut course = Course::new(10);
        course.add(5, 25, 7);
        course.add(4_000, 5_000, 1_000);
        assert_eq!(course.width, 40);
        assert_eq!(course.mpi.iter().sum::<u64>(), 1_020);
        assert_eq!(course.waiting.iter().sum::<u64>(), 1_007);
        assert_eq!((course.mpi[0], course.mpi[100]), (20, 40));
        // As late as it gets.
        course.add(u64::MAX / 4, u64::MAX / 4 + 3, 3);
        assert_eq!(course.mpi.iter().sum::<u64>(), 1_023);
    }
}

//! `signal`: a timer signal lends a computing thread to its own progress for a moment (PEF,
//! "scenario-conscious asynchronous rendezvous").
//!
//! Only a receive that the program left behind without its message needs help (scenario 3 of the
//! paper); blocking receives and those that find their message need none, and no timer runs
//! for them. The timer and the handler are the engine's; this file says when the turns come.
//!
//! A sequence of turns begins anew with each such receive: the first turn after the *phase*, the
//! second a *period* later, and every further interval is *decay* times as long, so that a very late
//! sender costs little. It ends with the last awaited message, after a number of turns, or in a wait.

use super::{Capabilities, Policy};
use cohort_base::settings::SignalIntervals;
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const NS_PER_US: u64 = 1000;

/// Longest interval between two turns.
const INTERVAL_NS_MAX: u64 = 1_000_000_000;

/// `COHORT_PROGRESS=signal`.
pub(super) const POLICY: Policy = Policy::of(Capabilities::INTERRUPTS);

/// Where a rank is in its sequence of turns.
///
/// Relaxed everywhere: the thread whose handler takes the turns is also the one that restarts the
/// sequence, and threads of one rank that race only come to a turn more or less.
#[derive(Debug)]
pub struct TurnSchedule {
    interval_ns: AtomicU64,
    turns: AtomicU32,
}

impl Default for TurnSchedule {
    fn default() -> Self {
        Self::new()
    }
}

impl TurnSchedule {
    /// No sequence has begun.
    #[must_use]
    pub fn new() -> Self {
        Self { interval_ns: AtomicU64::new(0), turns: AtomicU32::new(0) }
    }

    /// Begins a sequence. Returns the nanoseconds until its first turn.
    pub fn begin(&self, pace: &SignalIntervals) -> u64 {
        self.turns.store(0, Ordering::Relaxed);
        self.soon(pace);
        u64::from(pace.phase_us) * NS_PER_US
    }

    /// The next turn comes a period from now, since the last one found something. The turns taken
    /// so far count on. Returns the nanoseconds until the next turn.
    pub fn soon(&self, pace: &SignalIntervals) -> u64 {
        let interval = u64::from(pace.period_us) * NS_PER_US;
        self.interval_ns.store(interval, Ordering::Relaxed);
        interval
    }

    /// A turn found nothing. Returns the nanoseconds until the next one; `None`: the sequence has
    /// had its turns.
    pub fn next(&self, pace: &SignalIntervals) -> Option<u64> {
        let turns = self.turns.load(Ordering::Relaxed) + 1;
        self.turns.store(turns, Ordering::Relaxed);
        if pace.max_turns != 0 && turns >= pace.max_turns {
            return None;
        }
        let interval = self.interval_ns.load(Ordering::Relaxed);
        let longer = (interval * u64::from(pace.decay)).min(INTERVAL_NS_MAX);
        self.interval_ns.store(longer, Ordering::Relaxed);
        Some(interval)
    }
}

/// How long a sender gives a rank to come back by itself before it interrupts it.
///
/// A rank that posts a window of receives leaves each behind for a moment only, and finds the
/// messages in its next call. So the grace follows how long the rank stayed away lately: some time
/// more than short absences, and nothing for a rank that goes away to compute. Relaxed everywhere,
/// as for [`TurnSchedule`].
#[derive(Debug)]
pub struct GracePeriod {
    now: AtomicU64,
    max: u64,
}

impl GracePeriod {
    /// None yet. `max` is the longest, and the longest absence that is short, in the unit of all times here.
    #[must_use]
    pub fn new(max: u64) -> Self {
        Self { now: AtomicU64::new(0), max }
    }

    /// None yet, for another rank.
    pub fn renew(&self) {
        self.now.store(0, Ordering::Relaxed);
    }

    /// The grace of the moment.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The rank was away for so long.
    pub fn learn(&self, away: u64) {
        let before = self.now();
        let next = if away <= self.max {
            (before - before / 8).max(2 * away).min(self.max)
        } else if before > self.max / 64 {
            before / 2
        } else {
            0
        };
        self.now.store(next, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;
    use super::*;
    use cohort_base::settings::Settings;
    use std::vec::Vec;

    #[test]
    fn the_grace_follows_short_absences_and_ends_with_long_ones() {
        let grace_period = GracePeriod::new(1000);
        assert_eq!(grace_period.now(), 0);
        grace_period.learn(5000);
        assert_eq!(grace_period.now(), 0);
        for _ in 0..40 {
            grace_period.learn(100);
        }
        assert_eq!(grace_period.now(), 200);
        grace_period.learn(900);
        assert_eq!(grace_period.now(), 1000);
        // A window of short absences keeps most of it through a computation.
        grace_period.learn(5000);
        assert_eq!(grace_period.now(), 500);
        for _ in 0..7 {
            grace_period.learn(5000);
        }
        assert_eq!(grace_period.now(), 0);
    }

    fn intervals_us(pace: &SignalIntervals) -> Vec<u64> {
        let sequence = TurnSchedule::new();
        let first = sequence.begin(pace);
        let rest = (0..200).map_while(|_| sequence.next(pace));
        core::iter::once(first).chain(rest).map(|ns| ns / 1000).collect()
    }

    #[test]
    fn intervals_are_those_of_the_paper() {
        let all = intervals_us(&Settings::DEFAULT.signal);
        assert_eq!(all[..6], [2, 10, 20, 40, 80, 160]);
        assert_eq!(all.len(), 64);
        assert_eq!(all[63], INTERVAL_NS_MAX / 1000);
    }

    #[test]
    fn a_limit_ends_the_sequence_and_zero_is_none() {
        let mut pace = Settings::DEFAULT.signal;
        (pace.decay, pace.max_turns) = (1, 3);
        assert_eq!(intervals_us(&pace), [2, 10, 10]);
        pace.max_turns = 0;
        assert_eq!(intervals_us(&pace).len(), 201);
    }

    #[test]
    fn a_new_receive_begins_the_sequence_anew() {
        let pace = Settings::DEFAULT.signal;
        let sequence = TurnSchedule::new();
        sequence.begin(&pace);
        for _ in 0..10 {
            sequence.next(&pace);
        }
        assert_eq!(sequence.begin(&pace), 2000);
        assert_eq!(sequence.next(&pace), Some(10_000));
    }
}

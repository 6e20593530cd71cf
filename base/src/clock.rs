//! A clock that costs a few instructions to read, for limits of waits.
//!
//! It counts *ticks*, cycles of a constant rate (the time stamp counter of x86-64), which runs at
//! the same rate on all CPUs of a machine, in sleep states too. How many make a microsecond differs
//! between machines (1000 to 5000), and what CPUs and hypervisors say of it may be missing or
//! wrong, so it is measured once, against the system's clock. A node does so when it is made
//! ([`measure`]), so that no thief and no signal handler spends the time.

pub mod system;

use core::sync::atomic::{AtomicU64, Ordering};
use system::ClockId;

/// How long the measurement takes. What it errs by is the time that it takes to read both clocks
/// once, less than a percent of it.
const WINDOW_NS: u64 = 100_000;

/// Tries to read both clocks at one time: a thread that loses its CPU in between knows it by the time that this took.
const READINGS: u32 = 5;

const NS_PER_US: u64 = 1000;

/// What the measured value may be; beyond, the machine has no usable counter, and the bound is as good as anything.
const PLAUSIBLE: core::ops::RangeInclusive<u64> = 100..=20_000;

/// A static of the image, which all ranks of a node share; 0 until it was measured.
static TICKS_PER_US: AtomicU64 = AtomicU64::new(0);

/// The time in ticks, from an arbitrary beginning.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(not(miri))]
    return cohort_arch::time_stamp();
    // Miri does not know it.
    #[cfg(miri)]
    now_ns()
}

/// [`ticks`] when everything before it has ended, and before anything behind it begins: for times of single loads.
#[inline]
#[must_use]
pub fn ordered_ticks() -> u64 {
    #[cfg(not(miri))]
    cohort_arch::order_time_stamp();
    let now = ticks();
    #[cfg(not(miri))]
    cohort_arch::order_time_stamp();
    now
}

/// How many ticks make so many microseconds.
#[inline]
#[must_use]
pub fn ticks_of_us(us: u64) -> u64 {
    us * ticks_per_us()
}

/// How many ticks make a microsecond.
#[inline]
#[must_use]
pub fn ticks_per_us() -> u64 {
    // Relaxed: the value says all there is.
    match TICKS_PER_US.load(Ordering::Relaxed) {
        0 => measure(),
        measured => measured,
    }
}

/// Finds out how many ticks make a microsecond, if nobody has yet; takes a tenth of a millisecond
/// then. Of several measurements at a time the first counts, so that the value never changes.
#[cold]
pub fn measure() -> u64 {
    let known = TICKS_PER_US.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let found = rate(reading, WINDOW_NS).clamp(*PLAUSIBLE.start(), *PLAUSIBLE.end());
    match TICKS_PER_US.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => found,
        Err(first) => first,
    }
}

/// Both clocks at one time.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    ns: u64,
}

/// Ticks per microsecond, from two readings that are at least `window_ns` apart.
fn rate(mut reading: impl FnMut() -> Reading, window_ns: u64) -> u64 {
    let first = reading();
    loop {
        let last = reading();
        let ns = last.ns.saturating_sub(first.ns);
        if ns >= window_ns {
            return (last.ticks.wrapping_sub(first.ticks) * NS_PER_US + ns / 2) / ns;
        }
        core::hint::spin_loop();
    }
}

/// Reads both clocks: of some tries the one during which the fewest ticks passed.
fn reading() -> Reading {
    let tried = || {
        let before = ticks();
        let ns = now_ns();
        let took = ticks().wrapping_sub(before);
        let ticks = before.wrapping_add(took / 2);
        (took, Reading { ticks, ns })
    };
    let best = (1..READINGS).fold(tried(), |best, _| {
        let next = tried();
        if next.0 < best.0 { next } else { best }
    });
    best.1
}

/// The system's clock that nobody sets.
fn now_ns() -> u64 {
    let now = system::read(ClockId::MonotonicRaw);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;
    use super::*;
    use std::thread;

    /// Readings of a machine with so many ticks per microsecond, some hundred nanoseconds apart.
    fn machine(per_us: u64) -> impl FnMut() -> Reading {
        let mut ns = u64::from(u32::MAX);
        move || {
            ns += 317;
            Reading { ticks: (ns * per_us / NS_PER_US).wrapping_sub(1 << 40), ns }
        }
    }

    #[test]
    fn the_rate_of_a_machine_is_found() {
        for per_us in [100, 999, 2_445, 3_000, 5_200, 20_000] {
            assert_eq!(rate(machine(per_us), WINDOW_NS), per_us);
        }
    }

    #[test]
    fn a_reading_that_comes_late_does_no_harm() {
        let mut steady = machine(2_445);
        let mut late = machine(2_445);
        for _ in 0..1_000_000 {
            late();
        }
        let mut calls = 0;
        let interrupted = || {
            calls += 1;
            if calls == 1 { steady() } else { late() }
        };
        assert_eq!(rate(interrupted, WINDOW_NS), 2_445);
    }

    #[test]
    fn everybody_gets_the_same_value_whoever_measures() {
        let all: std::vec::Vec<u64> = thread::scope(|scope| {
            let threads: std::vec::Vec<_> = (0..4).map(|_| scope.spawn(ticks_per_us)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        assert_eq!(all, [ticks_per_us(); 4]);
        assert!(PLAUSIBLE.contains(&all[0]));
        assert_eq!((ticks_of_us(0), ticks_of_us(7)), (0, 7 * all[0]));
    }

    /// Both clocks are read around each other, so what one says of an interval lies within what the other says.
    #[test]
    fn measured_ticks_agree_with_the_system() {
        let per_us = ticks_per_us();
        let (outer, inner) = (now_ns(), ticks());
        while now_ns() - outer < 20 * WINDOW_NS {}
        let ticked = ticks().wrapping_sub(inner);
        let ns = now_ns() - outer;
        assert!(ticked <= per_us * (ns / NS_PER_US + 1) * 11 / 10);
        assert!(ticked > 0);
    }
}

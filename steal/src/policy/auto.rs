//! `auto`: stealing, and a fallback that is turned on and off by what was seen.
//!
//! Ranks steal as under `steal`. Each rank looks at the long receives that its program leaves
//! behind, a *window* of them at a time:
//!
//! * how many were *late*: their message lay there until the rank came to wait for it, so nobody had helped;
//! * how much time the rank *lost* in the waits that met late messages;
//! * how much time the fallback, interruption by a signal, *spent*.
//!
//! While the fallback is off, a window with enough late ones turns it on; what was lost in that
//! window is then what the fallback is compared with. While it is on, a window in which waits and
//! interruptions together cost more than that, or in which hardly anybody needed it, turns it off
//! again. After it has not paid, the next try waits for a growing number of windows.
//!
//! Casper's dynamic adaptation asks the user to say where phases begin; here a phase is whatever a window looks like.

use super::{Capabilities, Policy, steal};
use crate::outcome::{Decision, MatchTiming};
use cohort_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Receives of one window.
const WINDOW: u32 = 32;

/// Late ones in a window that turn the fallback on.
const LATE_MIN: u32 = WINDOW / 4;

/// Ones that were met while the rank computed, with which a window needs the fallback: single ones
/// come from a busy machine.
const HELPED_MIN: u32 = WINDOW / 8;

/// Longest pause between two tries, in windows.
const PAUSE_MAX: u32 = 64;

/// `COHORT_PROGRESS=auto`.
pub(super) const POLICY: Policy = steal::POLICY.with_fallback(Policy::of(Capabilities::ADAPTS));

/// What one rank has seen, and whether it uses the fallback.
///
/// Written under the rank's claim but for the times, which its handler adds; Relaxed everywhere, since a decision
/// that is taken a receive early or late is as good.
#[derive(Debug)]
pub struct FallbackController {
    is_on: AtomicBool,
    seen: AtomicU32,
    late: AtomicU32,
    helped: AtomicU32,
    /// Ticks of the current window.
    lost: AtomicU64,
    spent: AtomicU64,
    /// Ticks that the last window without the fallback lost.
    lost_without: AtomicU64,
    /// Windows until the next try, and the length of the next pause.
    pause: AtomicU32,
    next_pause: AtomicU32,
}

impl Default for FallbackController {
    fn default() -> Self {
        Self::new()
    }
}

impl FallbackController {
    /// Nothing was seen, the fallback is off.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            seen: AtomicU32::new(0),
            late: AtomicU32::new(0),
            helped: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            spent: AtomicU64::new(0),
            lost_without: AtomicU64::new(0),
            pause: AtomicU32::new(0),
            next_pause: AtomicU32::new(1),
        }
    }

    /// [`FallbackController::new`], for another rank.
    pub fn renew(&self) {
        self.is_on.store(false, Ordering::Relaxed);
        for count in [&self.seen, &self.late, &self.helped, &self.pause] {
            count.store(0, Ordering::Relaxed);
        }
        for ticks in [&self.lost, &self.spent, &self.lost_without] {
            ticks.store(0, Ordering::Relaxed);
        }
        self.next_pause.store(1, Ordering::Relaxed);
    }

    /// A wait that met a late message took so many ticks.
    pub fn count_lost(&self, ticks: u64) {
        self.lost.fetch_add(ticks, Ordering::Relaxed);
    }

    /// The fallback took so many ticks of the computation.
    pub fn count_spent(&self, ticks: u64) {
        self.spent.fetch_add(ticks, Ordering::Relaxed);
    }

    /// One receive has met its message; at the end of a window, what follows from it. Under the rank's claim.
    pub fn count(&self, timing: MatchTiming) -> Decision {
        match timing {
            MatchTiming::Late => add(&self.late),
            MatchTiming::Helped => add(&self.helped),
            MatchTiming::InTime => {}
        }
        add(&self.seen);
        match self.seen.load(Ordering::Relaxed) >= WINDOW {
            true => self.end_window(),
            false => Decision::Keep,
        }
    }

    fn end_window(&self) -> Decision {
        self.seen.store(0, Ordering::Relaxed);
        let late = self.late.swap(0, Ordering::Relaxed);
        let helped = self.helped.swap(0, Ordering::Relaxed);
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let spent = self.spent.swap(0, Ordering::Relaxed);
        if self.is_on.load(Ordering::Relaxed) {
            let pays = lost + spent <= self.lost_without.load(Ordering::Relaxed);
            return match (pays, helped < HELPED_MIN) {
                (true, true) => self.turn_off(0),
                (true, false) => {
                    self.next_pause.store(1, Ordering::Relaxed);
                    Decision::Keep
                }
                (false, _) => {
                    let pause = self.next_pause.load(Ordering::Relaxed);
                    let longer = (2 * pause).min(PAUSE_MAX);
                    self.next_pause.store(longer, Ordering::Relaxed);
                    self.turn_off(pause)
                }
            };
        }
        let pause = self.pause.load(Ordering::Relaxed);
        if pause > 0 {
            self.pause.store(pause - 1, Ordering::Relaxed);
        } else if late >= LATE_MIN {
            self.lost_without.store(lost, Ordering::Relaxed);
            self.is_on.store(true, Ordering::Relaxed);
            return Decision::TurnOn;
        }
        Decision::Keep
    }

    fn turn_off(&self, pause: u32) -> Decision {
        self.pause.store(pause, Ordering::Relaxed);
        self.is_on.store(false, Ordering::Relaxed);
        Decision::TurnOff
    }
}

fn add(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A window of receives that all met their messages in the same way; the decision at its end.
    fn window(controller: &FallbackController, timing: MatchTiming, lost: u64, spent: u64) -> Decision {
        controller.count_lost(lost);
        controller.count_spent(spent);
        for _ in 1..WINDOW {
            assert_eq!(controller.count(timing), Decision::Keep);
        }
        controller.count(timing)
    }

    #[test]
    fn late_messages_turn_it_on_and_others_do_not() {
        let controller = FallbackController::new();
        assert_eq!(window(&controller, MatchTiming::Helped, 0, 0), Decision::Keep);
        assert_eq!(window(&controller, MatchTiming::InTime, 0, 0), Decision::Keep);
        assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::TurnOn);
        assert_eq!(window(&controller, MatchTiming::Helped, 0, 300), Decision::Keep);
    }

    #[test]
    fn it_is_turned_off_when_nobody_needs_it() {
        let controller = FallbackController::new();
        assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::TurnOn);
        assert_eq!(window(&controller, MatchTiming::InTime, 0, 0), Decision::TurnOff);
        assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::TurnOn);
    }

    #[test]
    fn when_it_does_not_pay_the_tries_become_rare() {
        let controller = FallbackController::new();
        for pause in [1, 2, 4, 8] {
            assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::TurnOn);
            assert_eq!(window(&controller, MatchTiming::Helped, 100, 1000), Decision::TurnOff);
            for _ in 0..pause {
                assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::Keep);
            }
        }
    }

    #[test]
    fn a_success_makes_the_next_pause_short_again() {
        let controller = FallbackController::new();
        assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::TurnOn);
        assert_eq!(window(&controller, MatchTiming::Helped, 0, 2000), Decision::TurnOff);
        assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::Keep);
        assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::TurnOn);
        assert_eq!(window(&controller, MatchTiming::Helped, 0, 200), Decision::Keep);
        assert_eq!(window(&controller, MatchTiming::Helped, 0, 2000), Decision::TurnOff);
        assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::Keep);
        assert_eq!(window(&controller, MatchTiming::Late, 1000, 0), Decision::TurnOn);
    }
}

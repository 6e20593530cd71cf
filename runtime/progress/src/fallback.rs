//! What a rank does about its late messages under `COHORT_PROGRESS=auto`.
//!
//! The rule is that of [`FallbackController`](cohort_steal::policy::FallbackController). The
//! fallback is the rank's interrupter ([`crate::signal`]), installed from the start and idle until
//! it is turned on. Where a signal cannot reach the program (no number is free, the program has
//! taken ours or blocks it), it is a helper ([`crate::helper`]), whose threads are started then and
//! sleep while it is off.
//!
//! The judge may decide in a thief's claim; the program's own thread chooses between the two when it leaves the next
//! receive behind.

use crate::lifecycle;
use crate::observer::{BY_HELPER, BY_SIGNAL, COMPUTES, ENTERS, Fallback, OFF, Observer, TO_CHOOSE};
use crate::parts::OfRank as _;
use cohort_base::sync::atomic::Ordering;
use cohort_base::trace::{Event, EventKind, NOBODY};
use cohort_core::rank::Rank;
use cohort_steal::policy::{Decision, MatchTiming};

impl Observer {
    /// A receive that was left behind has met its message. Under the rank's claim.
    #[cold]
    pub(crate) fn matched(&self, rank: &Rank) {
        let timing = match self.place.load(Ordering::Relaxed) {
            COMPUTES => MatchTiming::Helped,
            ENTERS => MatchTiming::Late,
            _ => MatchTiming::InTime,
        };
        if timing == MatchTiming::Late {
            self.met_late.store(true, Ordering::Relaxed);
        }
        rank.counters().count_match(timing);
        let decision = self.controller.count(timing);
        match decision {
            Decision::Keep => return,
            Decision::TurnOn => self.fallback.store(TO_CHOOSE, Ordering::Relaxed),
            Decision::TurnOff => {
                self.fallback.store(OFF, Ordering::Relaxed);
                rank.interrupter().enable(rank.capabilities().interrupts_always());
            }
        }
        rank.counters().count_decision(decision);
        if let Some(trace) = rank.trace() {
            trace.note(&Event {
                flow: u64::from(decision == Decision::TurnOn),
                ..Event::now(EventKind::Policy, NOBODY)
            });
        }
    }

    /// What helps with a receive that the program leaves behind now. By the program's thread, under the rank's claim.
    pub(crate) fn fallback(&self, rank: &'static Rank) -> Fallback {
        match self.fallback.load(Ordering::Relaxed) {
            BY_SIGNAL => Fallback::Signal,
            BY_HELPER => Fallback::Helper,
            TO_CHOOSE => self.choose(rank),
            _ => Fallback::None,
        }
    }

    #[cold]
    fn choose(&self, rank: &'static Rank) -> Fallback {
        let chosen = if rank.interrupter().reaches_this_thread() {
            rank.interrupter().enable(true);
            Fallback::Signal
        } else if lifecycle::add_helper(rank) {
            rank.counters().count_helper_chosen();
            Fallback::Helper
        } else {
            // Another thread changes the policies: with the next receive.
            return Fallback::None;
        };
        self.fallback.store(chosen as u8, Ordering::Relaxed);
        chosen
    }
}

//! What a rank sees of its late messages under `COHORT_PROGRESS=auto`, and what it does about them.
//!
//! The rule is [`Judge`]'s. The fallback is the rank's parasite ([`crate::signal`]), installed from the start and idle
//! until it is turned on. Where a signal cannot reach the program (no number is free, the program has taken ours or
//! blocks it), it is a helper ([`crate::helper`]), whose threads are started then and sleep while it is off.
//!
//! The judge may decide in a thief's claim; the program's own thread chooses between the two when it leaves the next
//! receive behind.

use crate::lifecycle;
use crate::parts::OfRank as _;
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use cohort_core::rank::Rank;
use cohort_steal::policy::{Decision, Judge, Met};

/// Where the rank is. Relaxed: threads of a rank that race misjudge a receive.
const COMPUTES: u8 = 0;
/// In a wait, before its first look at the messages is over.
const ENTERS: u8 = 1;
const WAITS: u8 = 2;

/// What helps a rank whose policy adapts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fallback {
    /// Nothing but thieves.
    None,
    /// The rank's parasite.
    Signal,
    /// A helper.
    Helper,
}

/// States of [`Observer::fallback`]; the first three are those of [`Fallback`].
const OFF: u8 = Fallback::None as u8;
const BY_SIGNAL: u8 = Fallback::Signal as u8;
const BY_HELPER: u8 = Fallback::Helper as u8;
/// Turned on, and the program's thread has not chosen yet.
const TO_CHOOSE: u8 = 3;

/// What the kernel takes for a signal and the return from it, besides the handler.
const SIGNAL_US: u64 = 2;

/// The observer of one rank.
#[derive(Debug)]
pub(crate) struct Observer {
    judge: Judge,
    place: AtomicU8,
    /// Whether the current wait has met a late message.
    met_late: AtomicBool,
    /// Written under the rank's claim.
    fallback: AtomicU8,
}

impl Observer {
    pub(crate) fn new() -> Self {
        Self {
            judge: Judge::new(),
            place: AtomicU8::new(COMPUTES),
            met_late: AtomicBool::new(false),
            fallback: AtomicU8::new(OFF),
        }
    }

    /// A wait begins. Returns the time, for [`Observer::leave`].
    pub(crate) fn enter(&self) -> u64 {
        self.met_late.store(false, Ordering::Relaxed);
        self.place.store(ENTERS, Ordering::Relaxed);
        ticks()
    }

    /// The first look of a wait is over: what comes from now on is not late.
    pub(crate) fn wait(&self) {
        self.place.store(WAITS, Ordering::Relaxed);
    }

    /// The wait that began at `since` is over.
    pub(crate) fn leave(&self, since: u64) {
        self.place.store(COMPUTES, Ordering::Relaxed);
        if self.met_late.load(Ordering::Relaxed) {
            self.judge.count_lost(ticks().wrapping_sub(since));
        }
    }

    /// A turn of the fallback, that began at `since`, is over.
    pub(crate) fn count_turn(&self, since: u64) {
        let spent = ticks().wrapping_sub(since) + ticks_of_us(SIGNAL_US);
        self.judge.count_spent(spent);
    }

    /// A receive that was left behind has met its message. Under the rank's claim.
    #[cold]
    pub(crate) fn met(&self, rank: &Rank) {
        let met = match self.place.load(Ordering::Relaxed) {
            COMPUTES => Met::Helped,
            ENTERS => Met::Late,
            _ => Met::InTime,
        };
        if met == Met::Late {
            self.met_late.store(true, Ordering::Relaxed);
        }
        rank.counters().count_met(met);
        let decision = self.judge.count(met);
        match decision {
            Decision::Keep => return,
            Decision::TurnOn => self.fallback.store(TO_CHOOSE, Ordering::Relaxed),
            Decision::TurnOff => {
                self.fallback.store(OFF, Ordering::Relaxed);
                rank.parasite().enable(rank.means().interrupts_always());
            }
        }
        rank.counters().count_decision(decision);
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
        let chosen = if rank.parasite().reaches_this_thread() {
            rank.parasite().enable(true);
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

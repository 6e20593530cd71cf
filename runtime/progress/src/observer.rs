//! What a rank sees of its late messages under `COHORT_PROGRESS=auto`. What it does about them is in `fallback.rs`.

use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use cohort_steal::policy::FallbackController;

/// Where the rank is. Relaxed: threads of a rank that race misjudge a receive.
pub(crate) const COMPUTES: u8 = 0;
/// In a wait, before its first look at the messages is over.
pub(crate) const ENTERS: u8 = 1;
const WAITS: u8 = 2;

/// What helps a rank whose policy adapts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fallback {
    /// Nothing but thieves.
    None,
    /// The rank's interrupter.
    Signal,
    /// A helper.
    Helper,
}

/// States of [`Observer::fallback`]; the first three are those of [`Fallback`].
pub(crate) const OFF: u8 = Fallback::None as u8;
pub(crate) const BY_SIGNAL: u8 = Fallback::Signal as u8;
pub(crate) const BY_HELPER: u8 = Fallback::Helper as u8;
/// Turned on, and the program's thread has not chosen yet.
pub(crate) const TO_CHOOSE: u8 = 3;

/// What the kernel takes for a signal and the return from it, besides the handler.
const SIGNAL_US: u64 = 2;

/// The observer of one rank.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) controller: FallbackController,
    pub(crate) place: AtomicU8,
    /// Whether the current wait has met a late message.
    pub(crate) met_late: AtomicBool,
    /// Written under the rank's claim.
    pub(crate) fallback: AtomicU8,
}

impl Observer {
    pub(crate) fn new() -> Self {
        Self {
            controller: FallbackController::new(),
            place: AtomicU8::new(COMPUTES),
            met_late: AtomicBool::new(false),
            fallback: AtomicU8::new(OFF),
        }
    }

    /// Forgets what the last rank in this place met.
    pub(crate) fn renew(&self) {
        self.controller.renew();
        self.place.store(COMPUTES, Ordering::Relaxed);
        self.met_late.store(false, Ordering::Relaxed);
        self.fallback.store(OFF, Ordering::Relaxed);
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
            self.controller.count_lost(ticks().wrapping_sub(since));
        }
    }

    /// A turn of the fallback, that began at `since`, is over.
    pub(crate) fn count_turn(&self, since: u64) {
        let spent = ticks().wrapping_sub(since) + ticks_of_us(SIGNAL_US);
        self.controller.count_spent(spent);
    }
}

//! A rank's interrupter: its timers, and the running sequence of turns. What the signal does is in `signal.rs`.

use crate::timer::Timers;
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::settings::SignalSource;
use cohort_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use cohort_core::rank::Rank;
use cohort_steal::policy::{GracePeriod, TurnSchedule};

/// Longest time that a sender gives a rank to come back by itself.
const GRACE_US_MAX: u64 = 8;

/// The interrupter of one rank.
#[derive(Debug)]
pub(crate) struct Interrupter {
    /// Our signal's number; 0: not taken yet, or there was no free one.
    pub(crate) signal: AtomicU32,
    /// Whether the rank's policy interrupts.
    pub(crate) enabled: AtomicBool,
    /// The timer of the running sequence, plus one; 0 is none.
    pub(crate) active: AtomicU32,
    /// Whether that timer is armed.
    armed: AtomicBool,
    /// Whether a sender's signal is on its way: one is enough.
    pub(crate) asked: AtomicBool,
    /// The process of the rank.
    pub(crate) process: AtomicU32,
    pub(crate) pace: TurnSchedule,
    pub(crate) grace_period: GracePeriod,
    /// When the program last left, in ticks; 0 while it waits.
    left: AtomicU64,
    pub(crate) timers: Timers,
}

impl Interrupter {
    pub(crate) fn new() -> Self {
        Self {
            signal: AtomicU32::new(0),
            enabled: AtomicBool::new(false),
            active: AtomicU32::new(0),
            armed: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            process: AtomicU32::new(0),
            pace: TurnSchedule::new(),
            grace_period: GracePeriod::new(ticks_of_us(GRACE_US_MAX)),
            left: AtomicU64::new(0),
            timers: Timers::new(),
        }
    }

    /// Uses the signal for receives that are left behind from now on, or not. By whoever has the rank's claim, after
    /// `install`.
    pub(crate) fn enable(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// Ends the sequence and the timers. The handler stays, for a signal that is already on its way.
    pub(crate) fn remove(&self) {
        self.suspend();
        self.enabled.store(false, Ordering::Relaxed);
        self.timers.delete_all();
    }

    /// Forgets the process that had the rank's place: its signal, its handler and its timers have ended with it.
    pub(crate) fn renew(&self) {
        self.signal.store(0, Ordering::Relaxed);
        self.enabled.store(false, Ordering::Relaxed);
        self.active.store(0, Ordering::Relaxed);
        self.armed.store(false, Ordering::Relaxed);
        self.asked.store(false, Ordering::Relaxed);
        self.process.store(0, Ordering::Relaxed);
        self.grace_period.renew();
        self.left.store(0, Ordering::Relaxed);
        self.timers.forget_all();
    }

    /// Begins a sequence of turns in the calling thread.
    pub(crate) fn begin(&self, rank: &'static Rank) {
        let signal = self.signal.load(Ordering::Relaxed);
        if signal == 0 || !self.enabled.load(Ordering::Relaxed) {
            return;
        }
        let before = self.active.load(Ordering::Relaxed);
        if before == 0 || rank.threads_multiple() {
            let Some(timer) = self.timers.of_this_thread(signal, rank) else {
                return;
            };
            self.active.store(timer + 1, Ordering::Relaxed);
            if before != 0 && before != timer + 1 {
                self.disarm(before);
            }
        }
        self.count_absence(ticks());
        let phase = self.pace.begin(&rank.node().settings().signal);
        if needs_timer(rank) {
            self.arm(phase);
        }
    }

    /// The program was away until now, and leaves (`now`, in ticks) or waits (0).
    fn count_absence(&self, now: u64) {
        let left = self.left.swap(now, Ordering::Relaxed);
        if left != 0 {
            self.grace_period.learn(ticks().wrapping_sub(left));
        }
    }

    /// Stops a timer, given plus one, if it may be armed.
    fn disarm(&self, timer: u32) {
        if self.armed.swap(false, Ordering::Relaxed) {
            self.timers.disarm(timer - 1);
        }
    }

    /// Ends the sequence; one load when none runs. A wait progresses the rank better.
    #[inline]
    pub(crate) fn suspend(&self) {
        if self.active.load(Ordering::Relaxed) != 0 {
            self.stop();
        }
    }

    #[cold]
    fn stop(&self) {
        let timer = self.active.swap(0, Ordering::Relaxed);
        // A signal that was sent to a thread which has ended by now would never be answered.
        self.asked.store(false, Ordering::Relaxed);
        self.count_absence(0);
        if timer != 0 {
            self.disarm(timer);
        }
    }

    /// Leaves the thread alone now, and comes again later.
    pub(crate) fn postpone(&self, rank: &Rank) {
        if let Some(wait) = self.pace.next(&rank.node().settings().signal) {
            self.arm(wait);
        }
    }

    /// Arms the timer of the running sequence. Another thread of the rank may have ended it.
    pub(crate) fn arm(&self, wait: u64) {
        let timer = self.active.load(Ordering::Relaxed);
        if timer != 0 {
            self.armed.store(true, Ordering::Relaxed);
            self.timers.arm(timer - 1, wait);
        }
    }
}

/// Whether nobody but a timer tells the rank that a message has come.
pub(crate) fn needs_timer(rank: &Rank) -> bool {
    let node = rank.node();
    node.settings().signal.source == SignalSource::Timer || node.has_network()
}

//! What policies need of the engine, as a set.
//!
//! A rank has a policy of its own, and communicators and windows may have others. What acts for a rank as a whole
//! (threads, dedicated workers, stealing) has to be there as soon as one of them asks for it.

use super::{DedicatedWorkers, RankThread};

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Nothing.
    pub(super) const NONE: Self = Self(0);
    /// A waiting rank progresses others.
    pub(super) const STEALS: Self = Self(1 << 0);
    /// A sender that posts a rendezvous to a busy owner wakes a sleeping worker.
    pub(super) const WAKES_WORKER: Self = Self(1 << 1);
    /// Timers, threads and dedicated workers rest while some rank waits, since that one steals.
    pub(super) const RESTS: Self = Self(1 << 2);
    /// A signal interrupts a thread that computes while a long receive waits.
    pub(super) const INTERRUPTS: Self = Self(1 << 3);
    /// The rank watches how its messages are met, and turns the signal on and off by itself.
    pub(super) const ADAPTS: Self = Self(1 << 4);
    /// Dedicated workers that wake a rank's sleeping thread.
    const HELPERS: Self = Self(1 << 5);
    /// Dedicated workers that progress the ranks.
    pub(super) const GHOSTS: Self = Self(1 << 6);
    /// A thread of the rank that polls always.
    pub(super) const POLLS: Self = Self(1 << 7);
    /// A thread of the rank that polls while a long receive waits that the program left behind.
    pub(super) const POLLS_FOR_RENDEZVOUS: Self = Self(1 << 8);
    /// A thread of the rank that sleeps until a helper wakes it.
    const SLEEPS: Self = Self(1 << 9);
    /// A rank leaves the posting of long messages to the node's dedicated workers.
    pub(super) const OFFLOADS: Self = Self(1 << 10);

    /// A helper and a thread that sleeps until it is woken: what an adapting policy takes where
    /// signals are not possible.
    pub const HELPER: Self = Self::HELPERS.and(Self::SLEEPS);

    /// What both need.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// As a number.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// From a number that [`Capabilities::bits`] gave.
    #[must_use]
    pub fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Whether one of these is among them.
    #[inline]
    const fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }

    /// Whether a waiting rank progresses others.
    #[inline]
    #[must_use]
    pub fn steals(self) -> bool {
        self.has(Self::STEALS)
    }

    /// Whether a sender that posts a rendezvous to this rank while it is busy wakes a sleeping worker.
    #[inline]
    #[must_use]
    pub fn wakes_worker(self) -> bool {
        self.has(Self::WAKES_WORKER)
    }

    /// Whether anybody may be found for the rank while it computes.
    #[inline]
    #[must_use]
    pub fn finds_help(self) -> bool {
        const ANY: Capabilities = Capabilities::WAKES_WORKER
            .and(Capabilities::INTERRUPTS)
            .and(Capabilities::ADAPTS)
            .and(Capabilities::HELPERS);
        self.has(ANY)
    }

    /// Whether timers and dedicated workers rest while this rank waits.
    #[inline]
    #[must_use]
    pub fn rests(self) -> bool {
        self.has(Self::RESTS)
    }

    /// Whether the rank may be interrupted: its handler and its timers are needed.
    #[inline]
    #[must_use]
    pub fn may_interrupt(self) -> bool {
        self.has(Self::INTERRUPTS.and(Self::ADAPTS))
    }

    /// Whether somebody else than the ranks makes progress: a thread, a dedicated worker, or a timer.
    #[must_use]
    pub fn acts_alone(self) -> bool {
        const ALONE: Capabilities = Capabilities::INTERRUPTS
            .and(Capabilities::ADAPTS)
            .and(Capabilities::HELPERS)
            .and(Capabilities::GHOSTS)
            .and(Capabilities::POLLS)
            .and(Capabilities::POLLS_FOR_RENDEZVOUS)
            .and(Capabilities::SLEEPS)
            .and(Capabilities::OFFLOADS);
        self.has(ALONE)
    }

    /// Whether the rank is interrupted whatever an adapting policy finds.
    #[inline]
    #[must_use]
    pub fn interrupts_always(self) -> bool {
        self.has(Self::INTERRUPTS)
    }

    /// Whether the rank watches how its messages are met.
    #[inline]
    #[must_use]
    pub fn adapts(self) -> bool {
        self.has(Self::ADAPTS)
    }

    /// Whether a rank leaves the posting of long messages to the node's dedicated workers.
    #[inline]
    #[must_use]
    pub fn offloads_posts(self) -> bool {
        self.has(Self::OFFLOADS)
    }

    /// Whether somebody wants to know the long receives that a program leaves behind.
    #[inline]
    #[must_use]
    pub fn watches_receives(self) -> bool {
        const WATCHING: Capabilities = Capabilities::INTERRUPTS
            .and(Capabilities::ADAPTS)
            .and(Capabilities::HELPERS)
            .and(Capabilities::GHOSTS)
            .and(Capabilities::POLLS_FOR_RENDEZVOUS);
        self.has(WATCHING)
    }

    /// Whether helpers serve the rank.
    #[inline]
    #[must_use]
    pub fn has_helper(self) -> bool {
        self.has(Self::HELPERS)
    }

    /// Whether ghosts serve the rank.
    #[inline]
    #[must_use]
    pub fn has_ghost(self) -> bool {
        self.has(Self::GHOSTS)
    }

    /// The node's dedicated workers, of a single policy.
    #[inline]
    #[must_use]
    pub fn dedicated_workers(self) -> DedicatedWorkers {
        if self.has_helper() {
            DedicatedWorkers::Helpers
        } else if self.has_ghost() {
            DedicatedWorkers::Ghosts
        } else {
            DedicatedWorkers::None
        }
    }

    /// The rank's thread: of several the one that does most.
    #[must_use]
    pub fn thread(self) -> RankThread {
        if self.has(Self::POLLS) {
            RankThread::Polls
        } else if self.has(Self::POLLS_FOR_RENDEZVOUS) {
            RankThread::PollsForRendezvous
        } else if self.has(Self::SLEEPS) {
            RankThread::Sleeps
        } else {
            RankThread::None
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::policy;
    use super::*;
    use cohort_base::settings::Progress;

    fn of(progress: Progress) -> Capabilities {
        policy(progress).capabilities()
    }

    #[test]
    fn a_set_is_a_number_and_back() {
        for &(_, progress) in Progress::NAMES {
            assert_eq!(Capabilities::of_bits(of(progress).bits()), of(progress));
        }
    }

    #[test]
    fn together_they_do_what_any_of_them_does() {
        let both = of(Progress::Ghost).and(of(Progress::StealHelper));
        assert!(both.has_ghost() && both.has_helper() && both.steals());
        assert_eq!(both.thread(), RankThread::Sleeps);
        assert_eq!(both.and(of(Progress::ThreadRendezvous)).thread(), RankThread::PollsForRendezvous);
        assert_eq!(both.and(of(Progress::Thread)).thread(), RankThread::Polls);
        assert!(!of(Progress::Auto).interrupts_always());
        assert!(of(Progress::Auto).and(of(Progress::Signal)).interrupts_always());
        assert_eq!(both.and(of(Progress::None)), both);
    }
}

//! What the policies of one rank need together.
//!
//! A rank has a policy of its own, and communicators and windows may have others. What acts for a rank as a whole
//! (threads, dedicated workers, stealing) has to be there as soon as one of them asks for it.

use super::{Crew, ProgressPolicy, RankThread};

/// A set of means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Means(u32);

const STEALS: u32 = 1 << 0;
const WAKES_WORKER: u32 = 1 << 1;
const RESTS: u32 = 1 << 2;
/// The signal is used always.
const INTERRUPTS: u32 = 1 << 3;
/// The signal is used while that pays.
const ADAPTS: u32 = 1 << 4;
const HELPERS: u32 = 1 << 5;
const GHOSTS: u32 = 1 << 6;
const POLLS: u32 = 1 << 7;
const POLLS_FOR_RENDEZVOUS: u32 = 1 << 8;
const SLEEPS: u32 = 1 << 9;

impl Means {
    /// A helper and a thread that sleeps until it is woken: what an adapting policy takes where signals are not possible.
    pub const HELPER: Self = Self(HELPERS | SLEEPS);

    /// What one policy needs.
    #[must_use]
    pub fn of(policy: &dyn ProgressPolicy) -> Self {
        let bit = |needed: bool, bit: u32| if needed { bit } else { 0 };
        let (interrupts, adapts) = (policy.interrupts_receiver(), policy.adapts());
        let thread = match policy.rank_thread() {
            RankThread::None => 0,
            RankThread::Polls => POLLS,
            RankThread::PollsForRendezvous => POLLS_FOR_RENDEZVOUS,
            RankThread::Sleeps => SLEEPS,
        };
        let crew = match policy.crew() {
            Crew::None => 0,
            Crew::Ghosts => GHOSTS,
            Crew::Helpers => HELPERS,
        };
        Self(
            bit(policy.may_steal(), STEALS)
                | bit(policy.wakes_worker_on_rendezvous(), WAKES_WORKER)
                | bit(policy.rests_while_somebody_waits(), RESTS)
                | bit(interrupts && !adapts, INTERRUPTS)
                | bit(adapts, ADAPTS)
                | thread
                | crew,
        )
    }

    /// What both need.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// As a number.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// From a number that [`Means::bits`] gave.
    #[must_use]
    pub fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    #[inline]
    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    /// Whether a waiting rank progresses others.
    #[inline]
    #[must_use]
    pub fn steals(self) -> bool {
        self.has(STEALS)
    }

    /// Whether a sender that posts a rendezvous to this rank while it is busy wakes a sleeping worker.
    #[inline]
    #[must_use]
    pub fn wakes_worker(self) -> bool {
        self.has(WAKES_WORKER)
    }

    /// Whether anybody may be found for the rank while it computes.
    #[inline]
    #[must_use]
    pub fn finds_help(self) -> bool {
        self.has(WAKES_WORKER | INTERRUPTS | ADAPTS | HELPERS)
    }

    /// Whether timers and dedicated workers rest while this rank waits.
    #[inline]
    #[must_use]
    pub fn rests(self) -> bool {
        self.has(RESTS)
    }

    /// Whether the rank may be interrupted: its handler and its timers are needed.
    #[inline]
    #[must_use]
    pub fn may_interrupt(self) -> bool {
        self.has(INTERRUPTS | ADAPTS)
    }

    /// Whether the rank is interrupted whatever an adapting policy finds.
    #[inline]
    #[must_use]
    pub fn interrupts_always(self) -> bool {
        self.has(INTERRUPTS)
    }

    /// Whether the rank watches how its messages are met.
    #[inline]
    #[must_use]
    pub fn adapts(self) -> bool {
        self.has(ADAPTS)
    }

    /// Whether helpers serve the rank.
    #[inline]
    #[must_use]
    pub fn has_helper(self) -> bool {
        self.has(HELPERS)
    }

    /// Whether ghosts serve the rank.
    #[inline]
    #[must_use]
    pub fn has_ghost(self) -> bool {
        self.has(GHOSTS)
    }

    /// The rank's thread: of several the one that does most.
    #[must_use]
    pub fn thread(self) -> RankThread {
        if self.has(POLLS) {
            RankThread::Polls
        } else if self.has(POLLS_FOR_RENDEZVOUS) {
            RankThread::PollsForRendezvous
        } else if self.has(SLEEPS) {
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

    fn of(progress: Progress) -> Means {
        Means::of(policy(progress))
    }

    #[test]
    fn the_means_of_a_policy_are_its_answers() {
        for (_, progress) in Progress::NAMES {
            let (policy, means) = (policy(progress), of(progress));
            assert_eq!(means.steals(), policy.may_steal());
            assert_eq!(means.wakes_worker(), policy.wakes_worker_on_rendezvous());
            assert_eq!(means.rests(), policy.rests_while_somebody_waits());
            assert_eq!(means.may_interrupt(), policy.interrupts_receiver());
            assert_eq!(means.adapts(), policy.adapts());
            assert_eq!(means.has_ghost(), policy.crew() == Crew::Ghosts);
            assert_eq!(means.has_helper(), policy.crew() == Crew::Helpers);
            assert_eq!(means.thread(), policy.rank_thread());
            assert_eq!(Means::of_bits(means.bits()), means);
        }
    }

    #[test]
    fn together_they_do_what_any_of_them_does() {
        let both = of(Progress::Ghost).and(of(Progress::StealHelper));
        assert!(both.has_ghost() && both.has_helper() && both.steals());
        assert_eq!(both.thread(), RankThread::Sleeps);
        assert_eq!(
            both.and(of(Progress::ThreadRendezvous)).thread(),
            RankThread::PollsForRendezvous
        );
        assert_eq!(both.and(of(Progress::Thread)).thread(), RankThread::Polls);
        assert!(!of(Progress::Auto).interrupts_always());
        assert!(
            of(Progress::Auto)
                .and(of(Progress::Signal))
                .interrupts_always()
        );
        assert_eq!(both.and(of(Progress::None)), both);
    }
}

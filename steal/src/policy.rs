//! Who makes progress for a rank that computes: one interface, one file per answer.
//!
//! The engine asks a [`ProgressPolicy`] and never looks at the setting itself, so that all
//! policies run in the same binary. To a policy, the engine is a set of [`Victims`].

mod auto;
mod fallback;
mod ghost;
mod helper;
mod means;
mod none;
mod signal;
mod steal;
mod thread;

pub use auto::{Decision, Judge, Met};
pub use means::Means;
pub use signal::{Grace, Pace};
pub use steal::{Worker, steal_round, steal_step};

use crate::TaskKind;
use cohort_base::LocalRank;
use cohort_base::settings::Progress;

/// What became of one try to progress somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The claim was taken: the owner, or another worker, is at it.
    Busy,
    /// Nothing was there.
    Idle,
    /// Something moved.
    Progressed {
        /// Bytes of messages that were copied.
        bytes: u64,
    },
}

/// The ranks of a node, as far as a worker may see them. The engine implements this.
pub trait Victims {
    /// Ranks on this node.
    fn count(&self) -> u32;

    /// Whether `rank` expects messages of this kind (rule 2). Cheap: one shared line.
    fn is_available(&self, rank: LocalRank, kind: TaskKind) -> bool;

    /// Takes the claim of `rank` (rule 1), runs one bounded piece of its progress and gives the
    /// claim back. Never waits and never runs a user's function.
    fn try_progress(&self, rank: LocalRank, kind: TaskKind) -> Outcome;
}

/// A thread per rank, for the rank's own progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankThread {
    /// None.
    None,
    /// One that polls always.
    Polls,
    /// One that polls while a long receive waits that the program left behind.
    PollsForRendezvous,
    /// One that sleeps until a helper wakes it.
    Sleeps,
}

/// Threads of a node without user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crew {
    /// None.
    None,
    /// Workers that progress the ranks.
    Ghosts,
    /// Workers that wake a rank's sleeping thread.
    Helpers,
}

/// The answers of one `COHORT_PROGRESS` setting. Stateless; stealable. What a policy does not
/// answer is a no.
pub trait ProgressPolicy: Sync {
    /// The setting's value.
    fn name(&self) -> &'static str;

    /// Whether a waiting rank progresses others.
    fn may_steal(&self) -> bool {
        false
    }

    /// Whether a sender that posts a rendezvous to a busy owner wakes a sleeping worker.
    fn wakes_worker_on_rendezvous(&self) -> bool {
        false
    }

    /// The thread that each rank has for its own progress.
    fn rank_thread(&self) -> RankThread {
        RankThread::None
    }

    /// The node's dedicated workers.
    fn crew(&self) -> Crew {
        Crew::None
    }

    /// Whether a rank leaves the posting of long messages to the node's dedicated workers.
    fn offloads_posts(&self) -> bool {
        false
    }

    /// Whether timers, threads and dedicated workers rest while some rank waits, since that one steals.
    fn rests_while_somebody_waits(&self) -> bool {
        false
    }

    /// Whether a timer signal interrupts a thread that computes while a long receive waits.
    fn interrupts_receiver(&self) -> bool {
        false
    }

    /// Whether the policy wants to know the long receives that a program leaves behind.
    fn watches_receives(&self) -> bool {
        self.interrupts_receiver()
            || self.crew() != Crew::None
            || self.rank_thread() == RankThread::PollsForRendezvous
    }

    /// Whether the rank watches how its messages are met, and turns the signal on and off by itself.
    fn adapts(&self) -> bool {
        false
    }

    /// What a waiting rank does for others between two looks at its own work.
    fn step(&self, _worker: &Worker<'_>, _victims: &dyn Victims) -> Outcome {
        Outcome::Idle
    }

    /// The last look before a waiting rank sleeps: all victims, near and remote. It may sleep
    /// without a time limit only after [`Outcome::Idle`].
    fn last_look(&self, _worker: &Worker<'_>, _victims: &dyn Victims) -> Outcome {
        Outcome::Idle
    }
}

/// The policy of a setting.
#[must_use]
pub fn policy(progress: Progress) -> &'static dyn ProgressPolicy {
    match progress {
        Progress::Steal => &steal::Steal,
        Progress::None => &none::None,
        Progress::Thread => &thread::Thread,
        Progress::ThreadRendezvous => &thread::ThreadRendezvous,
        Progress::Signal => &signal::Signal,
        Progress::Ghost => &ghost::Ghost,
        Progress::Helper => &helper::Helper,
        Progress::StealSignal => &fallback::StealSignal,
        Progress::StealHelper => &fallback::StealHelper,
        Progress::Auto => &auto::Auto,
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

//! Who makes progress for a rank that computes: one table, one value per answer.
//!
//! The engine asks a [`Policy`] and never looks at the setting itself, so that all policies run in
//! the same binary. To a policy, the engine is a set of [`Victims`].
//!
//! A policy is a constant in a file of this folder and a row of [`progress_policies`], the only
//! list of policies: settings, help texts, tests and benchmarks take theirs from it. What acts for
//! a policy (threads, workers, signals) is the engine's, and asks for its bit in [`Capabilities`].

mod auto;
mod capabilities;
mod ghost;
mod helper;
pub mod moment;
mod none;
mod signal;
mod steal;
mod thread;

pub use crate::outcome::{Decision, MatchTiming, Outcome};
pub use auto::FallbackController;
pub use capabilities::Capabilities;
pub use signal::{GracePeriod, TurnSchedule};
pub use steal::Worker;

use crate::TaskKind;
use cohort_base::settings::Progress;
use cohort_base::{LocalRank, progress_policies};

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
pub enum DedicatedWorkers {
    /// None.
    None,
    /// Workers that progress the ranks.
    Ghosts,
    /// Workers that wake a rank's sleeping thread.
    Helpers,
}

/// The answers of one `COHORT_PROGRESS` setting. Stateless; stealable.
#[derive(Debug)]
pub struct Policy {
    capabilities: Capabilities,
    step: Look,
    last_look: Look,
}

/// What a waiting rank does for others.
type Look = fn(&Worker<'_>, &dyn Victims) -> Outcome;

/// Nothing.
fn steal_nothing(_: &Worker<'_>, _: &dyn Victims) -> Outcome {
    Outcome::Idle
}

impl Policy {
    /// The policy whose waiting ranks help nobody; it has these capabilities.
    const fn of(capabilities: Capabilities) -> Self {
        Self { capabilities, step: steal_nothing, last_look: steal_nothing }
    }

    /// This policy; while no rank of the node waits, which is when stealing can do nothing, the
    /// capabilities of another one act.
    const fn with_fallback(self, fallback: Self) -> Self {
        Self { capabilities: self.capabilities.and(fallback.capabilities).and(Capabilities::RESTS), ..self }
    }

    /// What the policy needs of the engine.
    #[inline]
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// What a waiting rank does for others between two looks at its own work.
    #[inline]
    pub fn step(&self, worker: &Worker<'_>, victims: &dyn Victims) -> Outcome {
        (self.step)(worker, victims)
    }

    /// The last look before a waiting rank sleeps: all victims, near and remote. It may sleep
    /// without a time limit only after [`Outcome::Idle`].
    #[inline]
    pub fn last_look(&self, worker: &Worker<'_>, victims: &dyn Victims) -> Outcome {
        (self.last_look)(worker, victims)
    }
}

/// The policies by their places, from the rows of [`progress_policies`].
macro_rules! values {
    ($($policy:ident, $name:literal, $who:literal, $value:expr;)*) => {
        static POLICIES: [Policy; Progress::NAMES.len()] = [$($value),*];
    };
}

progress_policies!(values);

/// The policy of a setting.
#[inline]
#[must_use]
pub fn policy(progress: Progress) -> &'static Policy {
    &POLICIES[usize::from(progress.index())]
}

#[cfg(all(test, not(loom)))]
mod tests;

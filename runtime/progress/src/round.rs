//! A dedicated worker's look at the ranks that it serves.

use cohort_core::rank::Rank;
use cohort_core::steal::Thief;
use cohort_steal::TaskKind;
use cohort_steal::policy::{Outcome, Victims};

/// What a round over all served ranks found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Moved,
    /// Nothing now, but a claim was taken, or something without events is under way: look again soon.
    Unsure,
    Nothing,
}

impl Round {
    /// The more hopeful of both.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Moved, _) | (_, Self::Moved) => Self::Moved,
            (Self::Unsure, _) | (_, Self::Unsure) => Self::Unsure,
            _ => Self::Nothing,
        }
    }
}

/// A bounded piece of a rank's progress, by a worker at this host, if it expects any.
pub(crate) fn progress(rank: &Rank, host: &Rank) -> Round {
    let victims = Thief::of_worker(host);
    let mut result = Round::Nothing;
    for kind in TaskKind::ALL {
        if !victims.is_available(rank.id(), kind) {
            continue;
        }
        match victims.try_progress(rank.id(), kind) {
            Outcome::Progressed { .. } => return Round::Moved,
            Outcome::Busy => result = Round::Unsure,
            Outcome::Idle => {}
        }
    }
    result
}

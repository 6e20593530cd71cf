//! `none`: a rank's messages move only inside its own calls. The baseline of comparisons.

use super::{Outcome, ProgressPolicy, Victims, Worker};

/// `COHORT_PROGRESS=none`.
#[derive(Debug)]
pub(super) struct None;

impl ProgressPolicy for None {
    fn name(&self) -> &'static str {
        "none"
    }

    fn may_steal(&self) -> bool {
        false
    }

    fn wakes_worker_on_rendezvous(&self) -> bool {
        false
    }

    fn has_progress_thread(&self) -> bool {
        false
    }

    fn step(&self, _worker: &Worker<'_>, _victims: &dyn Victims) -> Outcome {
        Outcome::Idle
    }

    fn last_look(&self, _worker: &Worker<'_>, _victims: &dyn Victims) -> Outcome {
        Outcome::Idle
    }
}

//! `thread`: one thread per rank polls that rank's progress, as in MPICH and MVAPICH with
//! asynchronous progress. The thread itself is the engine's; waiting ranks help nobody.

use super::{Outcome, ProgressPolicy, Victims, Worker};

/// `COHORT_PROGRESS=thread`.
#[derive(Debug)]
pub(super) struct Thread;

impl ProgressPolicy for Thread {
    fn name(&self) -> &'static str {
        "thread"
    }

    fn may_steal(&self) -> bool {
        false
    }

    fn wakes_worker_on_rendezvous(&self) -> bool {
        false
    }

    fn has_progress_thread(&self) -> bool {
        true
    }

    fn step(&self, _worker: &Worker<'_>, _victims: &dyn Victims) -> Outcome {
        Outcome::Idle
    }

    fn last_look(&self, _worker: &Worker<'_>, _victims: &dyn Victims) -> Outcome {
        Outcome::Idle
    }
}

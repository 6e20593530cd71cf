//! `thread`: one thread per rank polls that rank's progress, as in MPICH and MVAPICH with
//! asynchronous progress. The thread itself is the engine's; waiting ranks help nobody.

use super::ProgressPolicy;

/// `COHORT_PROGRESS=thread`.
#[derive(Debug)]
pub(super) struct Thread;

impl ProgressPolicy for Thread {
    fn name(&self) -> &'static str {
        "thread"
    }

    fn has_progress_thread(&self) -> bool {
        true
    }
}

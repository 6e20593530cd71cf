//! `helper`: dedicated workers match long messages with the receives that wait for them, and wake
//! the rank's sleeping progress thread for a pair (SmartInterrupts, section 4.1). The threads and the
//! matching are the engine's.

use super::{Crew, ProgressPolicy, RankThread};

/// `COHORT_PROGRESS=helper`.
#[derive(Debug)]
pub(super) struct Helper;

impl ProgressPolicy for Helper {
    fn name(&self) -> &'static str {
        "helper"
    }

    fn rank_thread(&self) -> RankThread {
        RankThread::Sleeps
    }

    fn crew(&self) -> Crew {
        Crew::Helpers
    }
}

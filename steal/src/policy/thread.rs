//! `thread`: one thread per rank polls that rank's progress, as in MPICH and MVAPICH with
//! asynchronous progress; `thread:rndv`: only while a long receive waits, as Cray's MPI offers. The
//! thread itself is the engine's; waiting ranks help nobody.

use super::{ProgressPolicy, RankThread};

/// `COHORT_PROGRESS=thread`.
#[derive(Debug)]
pub(super) struct Thread;

impl ProgressPolicy for Thread {
    fn name(&self) -> &'static str {
        "thread"
    }

    fn rank_thread(&self) -> RankThread {
        RankThread::Polls
    }
}

/// `COHORT_PROGRESS=thread:rndv`.
#[derive(Debug)]
pub(super) struct ThreadRendezvous;

impl ProgressPolicy for ThreadRendezvous {
    fn name(&self) -> &'static str {
        "thread:rndv"
    }

    fn rank_thread(&self) -> RankThread {
        RankThread::PollsForRendezvous
    }
}

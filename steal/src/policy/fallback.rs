//! `steal+signal` and `steal+helper`: waiting ranks steal; while no rank of the node waits, which is when
//! stealing can do nothing, the other mechanism works.

use super::{Crew, Outcome, ProgressPolicy, RankThread, Victims, Worker, steal_round, steal_step};

/// `COHORT_PROGRESS=steal+signal`.
#[derive(Debug)]
pub(super) struct StealSignal;

impl ProgressPolicy for StealSignal {
    fn name(&self) -> &'static str {
        "steal+signal"
    }

    fn may_steal(&self) -> bool {
        true
    }

    fn wakes_worker_on_rendezvous(&self) -> bool {
        true
    }

    fn rests_while_somebody_waits(&self) -> bool {
        true
    }

    fn interrupts_receiver(&self) -> bool {
        true
    }

    fn step(&self, worker: &Worker<'_>, victims: &dyn Victims) -> Outcome {
        steal_step(worker, victims)
    }

    fn last_look(&self, worker: &Worker<'_>, victims: &dyn Victims) -> Outcome {
        steal_round(worker, victims)
    }
}

/// `COHORT_PROGRESS=steal+helper`.
#[derive(Debug)]
pub(super) struct StealHelper;

impl ProgressPolicy for StealHelper {
    fn name(&self) -> &'static str {
        "steal+helper"
    }

    fn may_steal(&self) -> bool {
        true
    }

    fn wakes_worker_on_rendezvous(&self) -> bool {
        true
    }

    fn rests_while_somebody_waits(&self) -> bool {
        true
    }

    fn rank_thread(&self) -> RankThread {
        RankThread::Sleeps
    }

    fn crew(&self) -> Crew {
        Crew::Helpers
    }

    fn step(&self, worker: &Worker<'_>, victims: &dyn Victims) -> Outcome {
        steal_step(worker, victims)
    }

    fn last_look(&self, worker: &Worker<'_>, victims: &dyn Victims) -> Outcome {
        steal_round(worker, victims)
    }
}

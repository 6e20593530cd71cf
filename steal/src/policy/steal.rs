//! `steal`: ranks that wait progress those that compute (Daps, section IV-C).
//!
//! A worker walks its [`VictimOrder`] in rounds: every near victim once, and, after
//! `remote_after` near rounds without success, the remote ones too. Of each victim that
//! announced itself (rule 2) it tries the preferred kind of task, and the other kind only
//! if the first had nothing. It stops at the first success, and after
//! [`LOOKS_PER_STEP`] victims, so that it comes back to its own work soon; the next step goes on
//! where this one stopped.
//!
//! A success near by sends the worker back to near victims only; after a remote one it
//! may go on remotely, since no near victim had work.

use super::{Capabilities, Outcome, Policy, Victims};
use crate::TaskKind;
use crate::stats::Counters;
use crate::victim::VictimOrder;
use cohort_base::LocalRank;
use cohort_base::settings::{Priority, Settings};
use cohort_base::sync::atomic::{AtomicU32, Ordering};

/// Victims that one step looks at.
const LOOKS_PER_STEP: u32 = 32;

/// `COHORT_PROGRESS=steal`.
pub(super) const POLICY: Policy = Policy {
    capabilities: Capabilities::STEALS.and(Capabilities::WAKES_WORKER),
    step: steal_step,
    last_look: steal_round,
};

/// One rank as a worker: whom it tries, and where it is in its rounds.
///
/// Threads of the same rank share it. The fields that change are Relaxed: two threads that
/// race repeat or skip a look, which the next round makes up for.
#[derive(Debug)]
pub struct Worker<'a> {
    order: VictimOrder<'a>,
    counters: &'a Counters<'a>,
    kinds: [TaskKind; TaskKind::COUNT],
    remote_after: u32,
    position: AtomicU32,
    round: AtomicU32,
    failed_rounds: AtomicU32,
}

impl<'a> Worker<'a> {
    /// A worker that has not looked at anybody yet.
    #[must_use]
    pub fn new(order: VictimOrder<'a>, counters: &'a Counters<'a>, settings: &Settings) -> Self {
        Self {
            order,
            counters,
            kinds: match settings.steal_priority {
                Priority::NetShm => [TaskKind::Net, TaskKind::Shm],
                Priority::ShmNet => [TaskKind::Shm, TaskKind::Net],
            },
            remote_after: settings.steal_remote_after,
            position: AtomicU32::new(0),
            round: AtomicU32::new(0),
            failed_rounds: AtomicU32::new(0),
        }
    }

    /// This worker's counters.
    #[must_use]
    pub fn counters(&self) -> &'a Counters<'a> {
        self.counters
    }

    /// How many victims this round has: the near ones, or all.
    fn reach(&self) -> u32 {
        if self.failed_rounds.load(Ordering::Relaxed) >= self.remote_after {
            self.order.count()
        } else {
            self.order.count_near()
        }
    }

    fn end_round(&self) {
        self.position.store(0, Ordering::Relaxed);
        let round = self.round.load(Ordering::Relaxed);
        self.round.store(round.wrapping_add(1), Ordering::Relaxed);
        let failed = self.failed_rounds.load(Ordering::Relaxed);
        self.failed_rounds.store(failed.saturating_add(1), Ordering::Relaxed);
    }

    /// Tries the tasks of one victim in the order of their priority.
    fn visit(&self, victim: LocalRank, victims: &dyn Victims) -> Outcome {
        for kind in self.kinds {
            if !victims.is_available(victim, kind) {
                continue;
            }
            let outcome = victims.try_progress(victim, kind);
            self.counters.count_attempt(victim, kind, outcome);
            if outcome != Outcome::Idle {
                return outcome;
            }
        }
        Outcome::Idle
    }
}

/// One step of stealing: looks at the next victims of the worker's round, up to a bound, and
/// stops at the first success. The caller looks at its own work before the next step.
///
/// Returns the success, or `Busy` if any visited victim's claim was taken, or `Idle`.
/// Allocates nothing, waits for nobody, makes no system call of its own.
pub(super) fn steal_step(worker: &Worker<'_>, victims: &dyn Victims) -> Outcome {
    let mut result = Outcome::Idle;
    let reach = worker.reach();
    let round = worker.round.load(Ordering::Relaxed);
    for _ in 0..LOOKS_PER_STEP {
        let position = worker.position.load(Ordering::Relaxed);
        if position >= reach {
            worker.end_round();
            break;
        }
        worker.position.store(position + 1, Ordering::Relaxed);
        match worker.visit(worker.order.nth(position, round), victims) {
            Outcome::Idle => {}
            Outcome::Busy => result = Outcome::Busy,
            progressed => {
                if position < worker.order.count_near() {
                    worker.failed_rounds.store(0, Ordering::Relaxed);
                }
                return progressed;
            }
        }
    }
    result
}

/// One look at every victim, near and remote, that stops at the first success: for a worker
/// that has announced its sleep. `Idle` means that nobody had anything to do.
pub(super) fn steal_round(worker: &Worker<'_>, victims: &dyn Victims) -> Outcome {
    let round = worker.round.load(Ordering::Relaxed);
    let mut result = Outcome::Idle;
    for position in 0..worker.order.count() {
        match worker.visit(worker.order.nth(position, round), victims) {
            Outcome::Idle => {}
            Outcome::Busy => result = Outcome::Busy,
            progressed => return progressed,
        }
    }
    result
}

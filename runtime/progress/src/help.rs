//! Finding somebody for a rank that computes.

use crate::parts::OfRank as _;
use crate::poller;
use crate::signal::CALL_US_MAX;
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::sync::pause;
use cohort_core::Rank;
use cohort_core::subsystem::Need;
use cohort_steal::TaskKind;
use cohort_steal::policy::DedicatedWorkers;

/// Wakes a worker for the rank, or its own progress thread, or interrupts it. Says whether the
/// policy has somebody. `by` counts the wake-up. The caller has fenced since it published what the
/// rank is needed for.
pub(crate) fn find(rank: &Rank, by: &Rank, need: Need) -> bool {
    if need == Need::Network {
        return find_for_network(rank, by);
    }
    let capabilities = rank.capabilities();
    // Nothing is left to be matched, so the thread that a helper would wake is woken at once,
    // unless somebody has the claim.
    let has_thread = need == Need::Late && capabilities.has_helper();
    if has_thread && !rank.node().rests() && !rank.is_claimed() && poller::wake_sleeper(rank) {
        by.counters().count_wake();
        return true;
    }
    let rts = match need {
        Need::Rts(number) => Some(number),
        Need::Message | Need::Late | Need::Network => None,
    };
    let needs_worker = capabilities.wakes_worker()
        && rank.expected().is_raised(TaskKind::Shm)
        && (!rank.is_claimed() || capabilities.has_ghost() && leaves(rank, by, rts));
    if needs_worker && rank.node().wake_worker(rank.id()) {
        by.counters().count_wake();
        return true;
    }
    if capabilities.may_interrupt() {
        rank.interrupter().interrupt(rank, by, rts);
    }
    capabilities.may_interrupt()
}

/// Something of another node has come for the rank. Who has its claim finds it; else its workers are woken, or it is
/// interrupted. Says whether anybody was.
fn find_for_network(rank: &Rank, by: &Rank) -> bool {
    if rank.is_claimed() {
        return false;
    }
    let workers = [DedicatedWorkers::Ghosts, DedicatedWorkers::Helpers];
    let woken = workers.into_iter().filter_map(|kind| rank.worker_of(kind)).filter(|worker| worker.wake()).count() > 0;
    if woken {
        by.counters().count_wake();
    }
    let interrupts = rank.capabilities().may_interrupt();
    woken || interrupts && rank.interrupter().interrupt(rank, by, None)
}

/// Whether the holder of the rank's claim leaves an RTS of `by` in its ring: a rank that waits takes it at once, one
/// that just sends something does not.
fn leaves(rank: &Rank, by: &Rank, rts: Option<u32>) -> bool {
    let Some(rts) = rts.filter(|_| rank.id() != by.id()) else {
        return true;
    };
    let since = ticks();
    while rank.is_claimed() && ticks().wrapping_sub(since) < ticks_of_us(CALL_US_MAX) {
        if rank.has_taken(by, rts) {
            return false;
        }
        pause();
    }
    !rank.has_taken(by, rts)
}

//! Which algorithm a blocking collective uses: rounds, or a schedule as its nonblocking form.
//!
//! All members must choose alike, so only what all of them know may decide: the setting, the node,
//! and sizes that MPI demands to be the same everywhere. Where sizes matter, members that disagree about them go the way
//! of the first one to choose (`shared.rs`), so that none waits where the others do not come.
//!
//! In rounds each member does its own share, and data beyond an entry's needs a second meeting, after
//! which nobody reads the others' buffers any more. With a CPU for each rank that is the
//! fastest. When ranks outnumber CPUs, each meeting takes as long as it takes all ranks to run once. A schedule needs one
//! meeting if the last to come does all the work, which pays as long as that takes less time than half the work and another meeting.

use super::call::{Movers, run_schedule};
use super::round::Round;
use super::shared::INLINE;
use super::{Call, Group};
use crate::EngineError;
use cohort_base::settings::{Algorithm, Algorithms};

/// Shortest broadcast that is a schedule: its root helps to copy, where in rounds it waits.
const BCAST_MIN: u64 = 64 << 10;

/// Bytes for each member that the last to come moves alone when ranks outnumber CPUs: it takes about as long as to let a
/// rank run for a moment.
const ALONE_OF_EACH: u64 = 64 << 10;

/// Who moves `bytes` in total when the members meet once.
#[inline]
pub(super) fn movers(group: &Group<'_>, bytes: u64) -> Movers {
    let is_short = bytes <= ALONE_OF_EACH * group.size() as u64;
    match is_short && group.rank.node().is_crowded() {
        true => Movers::Last,
        false => Movers::Everyone,
    }
}

/// Whether an operation in which all members meet twice is a schedule, by itself. A member posts `bytes`, `None` when not
/// all members know how many, and `times` as many are moved in total.
#[inline]
pub(super) fn meets_once(group: &Group<'_>, bytes: Option<u64>, times: usize) -> Option<Movers> {
    let bytes = bytes.filter(|_| group.rank.node().is_crowded())?;
    let movers = movers(group, bytes.saturating_mul(times as u64));
    let wanted = bytes > INLINE as u64 && movers == Movers::Last;
    let is_chosen = Round::begin(group).agree_on_schedule(wanted);
    is_chosen.then_some(movers)
}

/// Whether the caller wants a broadcast of `bytes` to be a schedule.
#[inline]
pub(super) fn is_long_bcast(group: &Group<'_>, bytes: u64) -> bool {
    match group.rank.node().settings().collectives.bcast {
        Algorithm::Auto => bytes >= BCAST_MIN,
        chosen => chosen == Algorithm::Schedule,
    }
}

/// Runs `call` as a schedule if the setting of its `family` says so, or, when that is `auto`, if `by_itself`
/// names those who move the data. `None`: not chosen.
///
/// # Safety
/// As for the operation's own function.
#[inline]
pub(super) unsafe fn scheduled(
    group: &Group<'_>,
    family: impl Fn(&Algorithms) -> Algorithm,
    by_itself: impl FnOnce() -> Option<Movers>,
    call: &Call<'_>,
) -> Option<Result<(), EngineError>> {
    let chosen = match family(&group.rank.node().settings().collectives) {
        Algorithm::Rounds => None,
        Algorithm::Schedule => Some(Movers::Everyone),
        Algorithm::Auto => by_itself(),
    };
    // SAFETY: the caller's promise.
    chosen.map(|movers| unsafe { run_schedule(group, call, movers) })
}

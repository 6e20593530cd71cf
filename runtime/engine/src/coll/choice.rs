//! Which algorithm a blocking collective uses: rounds, or a schedule as its nonblocking form.
//!
//! All members must choose alike, so only what all of them know may decide: the setting, the node,
//! and sizes that MPI demands to be the same everywhere. Where sizes matter, members that disagree about them go the way
//! of the first one to choose (`shared.rs`), so that none waits where the others do not come.
//!
//! In rounds each member does its own share, and data beyond an entry's needs a second meeting, after
//! which nobody reads the others' buffers any more. With a CPU for each rank that is the
//! fastest. When ranks outnumber CPUs, each meeting costs sleeps and switches; a schedule
//! needs one, and the ranks that run do the work of those that do not.

use super::call::run_schedule;
use super::round::Round;
use super::shared::INLINE;
use super::{Call, Group};
use crate::EngineError;
use cohort_base::settings::{Algorithm, Algorithms};

/// Shortest broadcast that is a schedule: its root helps to copy, where in rounds it waits.
const BCAST_MIN: u64 = 64 << 10;

/// Whether an operation in which all members meet twice is a schedule, by itself; `bytes` is
/// `None` when not all members know the size.
#[inline]
pub(super) fn beyond_an_entry(group: &Group<'_>, bytes: Option<u64>) -> bool {
    group.rank.node().is_crowded()
        && bytes.is_some_and(|it| Round::begin(group).agree_on_schedule(it > INLINE as u64))
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
/// does. `None`: not chosen.
///
/// # Safety
/// As for the operation's own function.
#[inline]
pub(super) unsafe fn scheduled(
    group: &Group<'_>,
    family: impl Fn(&Algorithms) -> Algorithm,
    by_itself: impl FnOnce() -> bool,
    call: &Call<'_>,
) -> Option<Result<(), EngineError>> {
    let chosen = match family(&group.rank.node().settings().collectives) {
        Algorithm::Rounds => false,
        Algorithm::Schedule => true,
        Algorithm::Auto => by_itself(),
    };
    // SAFETY: the caller's promise.
    chosen.then(|| unsafe { run_schedule(group, call) })
}

//! Which algorithm a blocking collective uses: rounds, or a pool as its nonblocking form.
//!
//! All members must choose alike, so only what all of them know may decide: the setting, the node, and sizes that MPI
//! demands to be the same everywhere. Where sizes matter, members that disagree about them go the way of the first one
//! to choose (`members/local.rs`), so that none waits where the others do not come.
//!
//! In rounds each member does its own share, and data beyond an entry's needs a second meeting, after which nobody
//! reads the others' buffers any more. With a CPU for each rank that is the fastest. When ranks outnumber CPUs, each
//! meeting takes as long as it takes all ranks to run once. A pool needs one meeting if the last to come does all
//! the work, which pays as long as that takes less time than half the work and another meeting.

use super::round::Round;
use crate::args::{Call, Reduction};
use crate::members::{BESIDE_ENTRY, COPY_MAX, INLINE, LocalGroup};
use crate::nonblocking::{AT_ONCE_MAX, Manner, Spot, finish, post};
use crate::spin::runs_others;
use cohort_base::settings::{Algorithm, Algorithms};
use cohort_core::EngineError;

/// Shortest broadcast that is a pool: its root helps to copy, where in rounds it waits.
const BCAST_MIN: u64 = 64 << 10;

/// Bytes for each member that the last to come moves alone when ranks outnumber CPUs: it takes about as long as to let
/// a rank run for a moment.
const ALONE_OF_EACH: u64 = 64 << 10;

/// Bytes of all operands of a scan that every member folds; the same where ranks outnumber CPUs.
const SCAN_FOLD_MAX: usize = 32 << 10;
const CROWDED_SCAN_FOLD_MAX: usize = 16 << 10;

/// Who moves the data of a pool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Movers {
    /// The last member to come; the others let it run.
    Last,
    /// All who have time.
    Everyone,
}

/// Who moves `bytes` in total when the members meet once.
#[inline]
pub(crate) fn movers(group: &LocalGroup<'_>, bytes: u64) -> Movers {
    let is_short = bytes <= ALONE_OF_EACH * group.size() as u64;
    match is_short && group.is_crowded() {
        true => Movers::Last,
        false => Movers::Everyone,
    }
}

/// Whether the caller wants a broadcast of `bytes` to be a pool.
#[inline]
pub(crate) fn is_long_bcast(group: &LocalGroup<'_>, bytes: u64) -> bool {
    match group.rank().node().settings().collectives.bcast {
        Algorithm::Auto => bytes >= BCAST_MIN,
        chosen => chosen == Algorithm::Schedule,
    }
}

/// Longest operand of a scan that each member folds with those of all earlier ones. Users' operations are called for
/// each element once, beyond an entry's worth.
pub(crate) fn scan_copied_max(group: &LocalGroup<'_>, calls_user: bool) -> u64 {
    let (total, most) = match group.is_crowded() {
        _ if calls_user => (0, INLINE),
        true => (CROWDED_SCAN_FOLD_MAX, BESIDE_ENTRY),
        false => (SCAN_FOLD_MAX, COPY_MAX),
    };
    (total / group.size()).clamp(INLINE, most) as u64
}

/// The algorithm that the settings name for an operation.
#[inline(always)]
fn setting(algorithms: &Algorithms, call: &Call<'_>) -> Algorithm {
    match call {
        Call::Barrier => algorithms.barrier,
        Call::Bcast { .. } => algorithms.bcast,
        Call::Gather { .. } => algorithms.gather,
        Call::Scatter { .. } => algorithms.scatter,
        Call::Allgather { .. } => algorithms.allgather,
        Call::Alltoall { .. } => algorithms.alltoall,
        Call::Reduce { .. } => algorithms.reduce,
        Call::Allreduce { .. } => algorithms.allreduce,
        Call::ReduceScatter { .. } => algorithms.reduce_scatter,
        Call::Scan { .. } => algorithms.scan,
        Call::Neighbours { .. } => Algorithm::Rounds,
    }
}

/// Who moves the data of an operation that is a pool by itself, where the settings leave it to us: only where ranks
/// outnumber CPUs, and only if rounds would meet twice.
#[inline(always)]
fn by_itself<'a>(group: &LocalGroup<'_>, call: &impl Fn() -> Call<'a>) -> Option<Movers> {
    match call() {
        Call::Allgather { .. }
        | Call::Alltoall { .. }
        | Call::Allreduce { .. }
        | Call::ReduceScatter { .. }
        | Call::Scan { .. }
            if group.is_crowded() =>
        {
            agree_to_meet_once(group, &call())
        }
        _ => None,
    }
}

/// Has the members agree whether an operation is a pool. They all know the bytes that a member posts, or all do
/// not.
#[inline(never)]
fn agree_to_meet_once(group: &LocalGroup<'_>, call: &Call<'_>) -> Option<Movers> {
    let size = group.size();
    let operand = call.reduction().and_then(Reduction::stealable_bytes);
    // What a member posts, and how many times as much is moved in total.
    let (bytes, times) = match call {
        Call::Allgather { receive, .. } => (receive.equal_bytes(1), size * size),
        Call::Alltoall { receive, .. } => (receive.equal_bytes(size), size),
        Call::ReduceScatter { .. } => (operand, size),
        _ => (operand, 2 * size),
    };
    let bytes = bytes?;
    let movers = movers(group, bytes.saturating_mul(times as u64));
    let meets_once = match call {
        Call::Scan { .. } => scan_copied_max(group, false),
        _ => INLINE as u64,
    };
    let wanted = bytes > meets_once && movers == Movers::Last;
    let is_chosen = Round::begin(group).agree_on_pool(wanted);
    is_chosen.then_some(movers)
}

/// Runs an operation as a pool, if that is chosen; a broadcast chooses in its round. `None`: not chosen. Where the
/// operation is known at compile time, this is a look at one setting, and the description that `call` makes is
/// written to memory only where there is something to agree on.
#[inline(always)]
pub(crate) fn pooled<'a>(group: &LocalGroup<'_>, call: impl Fn() -> Call<'a>) -> Option<Result<(), EngineError>> {
    if group.size() == 1 || matches!(call(), Call::Bcast { .. }) {
        return None;
    }
    let chosen = match setting(&group.rank().node().settings().collectives, &call()) {
        Algorithm::Rounds => None,
        Algorithm::Schedule => Some(Movers::Everyone),
        Algorithm::Auto => by_itself(group, &call),
    };
    chosen.map(|movers| run_pool(group, &call(), movers))
}

/// Runs an operation as a pool.
///
/// # Errors
/// Those of the operation's own function.
pub(crate) fn run_pool(group: &LocalGroup<'_>, call: &Call<'_>, movers: Movers) -> Result<(), EngineError> {
    let alone = match movers {
        Movers::Last => u64::MAX,
        Movers::Everyone => AT_ONCE_MAX,
    };
    let manner = Manner { alone, ..Manner::ONCE };
    // SAFETY: what the call refers to lives to the end of this call.
    let request = unsafe { post(group.rank().forever(), &Spot::Next(&group.place()), call, manner)? };
    if movers == Movers::Last {
        runs_others(group.rank().node(), &mut || request.is_complete());
    }
    finish(group.owner, request)
}

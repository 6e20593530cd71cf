//! Blocking collectives among members of one node: in rounds, or, where that is chosen, as pools.

mod allgather;
mod alltoall;
mod barrier;
mod bcast;
mod gather;
mod neighbours;
mod reduce;
mod scan;

use super::choice::pooled;
use crate::args::{Call, Reduction};
use crate::exchange::Edges;
use crate::fold::Folder;
use crate::members::LocalGroup;
use cohort_core::EngineError;

/// Longest data that a member of an allgather or an all-to-all copies for all others, so that members meet once. Beyond
/// that the copy takes longer than a second meeting.
const MEETS_ONCE_MAX: usize = 2 << 10;

/// Runs an operation and waits for its end.
///
/// # Errors
/// Those of the operation.
#[inline(never)]
pub(crate) fn run_any(group: &LocalGroup<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    run(group, call)
}

/// [`run_any`] for a call whose operation is known at compile time: that operation alone is left of this.
///
/// # Errors
/// Those of the operation.
#[inline(always)]
pub(crate) fn run(group: &LocalGroup<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    if let Some(done) = pooled(group, || *call) {
        return done;
    }
    match *call {
        Call::Barrier => {
            barrier::barrier(group);
            Ok(())
        }
        Call::Bcast { buffer, root } => bcast::bcast(group, buffer, root),
        Call::Gather { send, receive, root, .. } => gather::gather(group, send, receive, root as usize),
        Call::Scatter { send, receive, root, .. } => gather::scatter(group, send, receive, root as usize),
        Call::Allgather { send, receive } => allgather::allgather(group, send, receive),
        Call::Alltoall { send, receive } => alltoall::alltoall(group, send, receive),
        Call::Reduce { reduction, root } => {
            let folder = Folder::new(reduction.op, reduction.datatype())?;
            reduce::reduce(group, &folder, &reduction, root)
        }
        Call::Allreduce { reduction } => {
            let folder = Folder::new(reduction.op, reduction.datatype())?;
            reduce::allreduce(group, &folder, &reduction)
        }
        Call::ReduceScatter { reduction, counts } => {
            let folder = Folder::new(reduction.op, reduction.datatype())?;
            reduce::reduce_scatter(group, &folder, &reduction, counts)
        }
        Call::Scan { reduction, kind } => {
            let folder = Folder::new(reduction.op, reduction.datatype())?;
            scan::scan(group, &folder, &reduction, kind)
        }
        Call::Neighbours { sources, destinations, send, to_all, receive } => {
            let edges = Edges { sources, destinations, send, to_all, receive };
            neighbours::exchange(group, &edges)
        }
    }
}

/// `MPI_Allreduce`: [`run`] of an operation that is often so small that a copy of its arguments would count.
///
/// # Errors
/// Those of the operation.
#[inline(never)]
pub(crate) fn allreduce(group: &LocalGroup<'_>, call: &Reduction<'_>) -> Result<(), EngineError> {
    if let Some(done) = pooled(group, || Call::Allreduce { reduction: *call }) {
        return done;
    }
    let folder = Folder::new(call.op, call.datatype())?;
    reduce::allreduce(group, &folder, call)
}

//! The blocking collectives: the functions of each operation, which keep its own case of `local::run`.

use super::{local, nodes};
use crate::args::{Blocks, Call, Form, Label, Reduction, Scan, Table};
use crate::members::{Caller, Extent, Group, Hierarchy, LocalGroup};
use crate::memory::reserve;
use crate::nonblocking::meet;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// Runs an operation and waits for its end.
///
/// # Errors
/// Those of the operation's own function.
pub fn run(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    run_as(group, call, Form::Blocking)
}

/// [`run`] of a call whose operation is known at compile time: that operation's own function is left of this.
///
/// # Errors
/// Those of the operation's own function.
#[inline(always)]
pub fn run_known(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    match *call {
        Call::Barrier => barrier(group),
        Call::Bcast { buffer, root } => bcast(group, buffer, root),
        Call::Gather { send, receive, root, .. } => gather(group, send, receive, root),
        Call::Scatter { send, receive, root, .. } => scatter(group, send, receive, root),
        Call::Allgather { send, receive } => allgather(group, send, receive),
        Call::Alltoall { send, receive } => alltoall(group, send, receive),
        Call::Reduce { ref reduction, root } => reduce(group, reduction, root),
        Call::Allreduce { ref reduction } => allreduce(group, reduction),
        Call::ReduceScatter { ref reduction, counts } => reduce_scatter(group, reduction, counts),
        Call::Scan { ref reduction, kind } => scan(group, reduction, kind),
        Call::Neighbours { .. } => dispatch(group, call),
    }
}

/// [`run`] in this form.
fn run_as(group: &Group<'_>, call: &Call<'_>, form: Form) -> Result<(), EngineError> {
    run_labelled(group, call, form, Label::of(call, form))
}

/// The same, with this label.
fn run_labelled(group: &Group<'_>, call: &Call<'_>, form: Form, label: Label) -> Result<(), EngineError> {
    match group.extent(label) {
        Extent::OneNode(group) => local::run_any(&group, call),
        Extent::Compared(group) => compared(&group, call, form),
        Extent::Nodes(hierarchy) => nodes::run(&Caller { group, label }, hierarchy, call),
    }
}

/// [`run`] in the operations' own functions, each of which keeps its own case of it.
#[inline(always)]
fn dispatch(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    let label = Label::of(call, Form::Blocking);
    match group.extent(label) {
        Extent::OneNode(group) => local::run(&group, call),
        Extent::Compared(group) => compared(&group, call, Form::Blocking),
        Extent::Nodes(hierarchy) => nodes::run(&Caller { group, label }, hierarchy, call),
    }
}

/// An operation within a node whose members' arguments are compared first.
#[cold]
#[inline(never)]
fn compared(group: &LocalGroup<'_>, call: &Call<'_>, form: Form) -> Result<(), EngineError> {
    meet(group, call, form)?;
    local::run_any(group, call)
}

/// Compares the members' arguments of a persistent operation that is made, if the members of the group do so; among
/// nodes not those of neighbours. Collective.
///
/// # Errors
/// [`EngineError::Disagreement`], no memory.
pub fn compare_persistent(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    match group.extent(Label::NONE) {
        Extent::Compared(group) => meet(&group, call, Form::Persistent),
        Extent::Nodes(hierarchy)
            if group.rank().node().settings().check_members && !matches!(call, Call::Neighbours { .. }) =>
        {
            nodes::tell(group, hierarchy, call, Form::Persistent)
        }
        _ => Ok(()),
    }
}

/// [`run`] as a part of a call that makes or frees an object, which is told by `table` if the operation has no root.
///
/// # Errors
/// As [`run`].
pub fn run_within(group: &Group<'_>, table: Table, call: &Call<'_>) -> Result<(), EngineError> {
    let label = match call.has_root() {
        true => Label::of(call, Form::Internal),
        false => Label::within(call, table),
    };
    run_labelled(group, call, Form::Internal, label)
}

/// A barrier as a part of a call that makes or frees an object.
///
/// # Errors
/// As [`barrier`].
pub fn barrier_within(group: &Group<'_>, table: Table) -> Result<(), EngineError> {
    run_within(group, table, &Call::Barrier)
}

/// `MPI_Barrier`.
///
/// # Errors
/// No memory.
#[inline]
pub fn barrier(group: &Group<'_>) -> Result<(), EngineError> {
    dispatch(group, &Call::Barrier)
}

/// `MPI_Bcast` of `buffer` from member `root`.
///
/// # Errors
/// [`EngineError::Truncated`] when the root sends more or less than `buffer` holds.
#[inline]
pub fn bcast(group: &Group<'_>, buffer: Buffer<'_>, root: u32) -> Result<(), EngineError> {
    dispatch(group, &Call::Bcast { buffer, root })
}

/// `MPI_Gather` and `MPI_Gatherv` to member `root`.
///
/// `send` is `None` for in-place (at the root only); `receive` is used at the root only.
///
/// # Errors
/// [`EngineError::Truncated`] at the root.
pub fn gather(
    group: &Group<'_>,
    send: Option<Buffer<'_>>,
    receive: Option<Blocks<'_>>,
    root: u32,
) -> Result<(), EngineError> {
    let call = Call::Gather { send, receive, root, is_even: false };
    dispatch(group, &call)
}

/// `MPI_Scatter` and `MPI_Scatterv` from member `root`.
///
/// `send` is used at the root only; `receive` is `None` for in-place (at the root only).
///
/// # Errors
/// [`EngineError::Truncated`] when the root sends more than `receive` holds.
pub fn scatter(
    group: &Group<'_>,
    send: Option<Blocks<'_>>,
    receive: Option<Buffer<'_>>,
    root: u32,
) -> Result<(), EngineError> {
    let call = Call::Scatter { send, receive, root, is_even: false };
    dispatch(group, &call)
}

/// `MPI_Allgather` and `MPI_Allgatherv`; `send` is `None` for in-place.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds.
pub fn allgather(group: &Group<'_>, send: Option<Buffer<'_>>, receive: Blocks<'_>) -> Result<(), EngineError> {
    dispatch(group, &Call::Allgather { send, receive })
}

/// Calls `read` with what each member says, by rank. The members of a node may look at one table, so it is read in the
/// call: others wait meanwhile. Collective.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub fn view<const N: usize, R>(
    group: &Group<'_>,
    table: Table,
    mut mine: [i32; N],
    read: impl FnOnce(&[[i32; N]]) -> R,
) -> Result<R, EngineError> {
    let label = Label::of_table(table);
    if let Extent::Nodes(hierarchy) = group.extent(label) {
        return nodes::view(&Caller { group, label }, hierarchy, mine, read);
    }
    let mut all = reserve(group.size())?;
    all.resize(group.size(), [0; N]);
    let bytes = size_of::<[i32; N]>() as u64;
    // SAFETY: `mine` is the caller's, and outlives the call.
    let send = unsafe { Buffer::of_bytes(mine.as_mut_ptr().cast(), bytes) };
    // SAFETY: `all` has room for each member's words, and outlives the call.
    let receive = unsafe { Blocks::equal(Buffer::of_bytes(all.as_mut_ptr().cast(), bytes)) };
    let call = Call::Allgather { send: Some(send), receive };
    run_labelled(group, &call, Form::Internal, label)?;
    Ok(read(&all))
}

/// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`; `send` is `None` for in-place.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds,
/// [`EngineError::OutOfMemory`] in place.
pub fn alltoall(group: &Group<'_>, send: Option<Blocks<'_>>, receive: Blocks<'_>) -> Result<(), EngineError> {
    dispatch(group, &Call::Alltoall { send, receive })
}

/// `MPI_Reduce` to member `root`; `output` is used at the root only.
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they
/// disagree about the size, or no memory.
pub fn reduce(group: &Group<'_>, call: &Reduction<'_>, root: u32) -> Result<(), EngineError> {
    let reduction = *call;
    dispatch(group, &Call::Reduce { reduction, root })
}

/// `MPI_Allreduce`.
///
/// # Errors
/// As [`reduce`].
#[inline]
pub fn allreduce(group: &Group<'_>, call: &Reduction<'_>) -> Result<(), EngineError> {
    match group.extent(Label::ALLREDUCE) {
        Extent::OneNode(group) => local::allreduce(&group, call),
        Extent::Compared(group) => {
            let reduction = *call;
            compared(&group, &Call::Allreduce { reduction }, Form::Blocking)
        }
        Extent::Nodes(hierarchy) => allreduce_among_nodes(group, hierarchy, call),
    }
}

#[inline(never)]
fn allreduce_among_nodes(group: &Group<'_>, hierarchy: &Hierarchy, call: &Reduction<'_>) -> Result<(), EngineError> {
    let reduction = *call;
    let label = Label::ALLREDUCE;
    let caller = Caller { group, label };
    nodes::run(&caller, hierarchy, &Call::Allreduce { reduction })
}

/// `MPI_Reduce_scatter` (and `_block`): member *i* gets `counts[i]` elements of the result.
/// `call.count` is ignored.
///
/// # Errors
/// As [`reduce`].
pub fn reduce_scatter(group: &Group<'_>, call: &Reduction<'_>, counts: &[i64]) -> Result<(), EngineError> {
    let reduction = call.of(counts.iter().sum::<i64>() as u64);
    dispatch(group, &Call::ReduceScatter { reduction, counts })
}

/// `MPI_Scan` and `MPI_Exscan`.
///
/// # Errors
/// As [`reduce`].
pub fn scan(group: &Group<'_>, call: &Reduction<'_>, kind: Scan) -> Result<(), EngineError> {
    let reduction = *call;
    dispatch(group, &Call::Scan { reduction, kind })
}

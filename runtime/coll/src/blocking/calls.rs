//! The blocking collectives as functions.

use super::{local, nodes};
use crate::args::{Blocks, Call, Form, Label, Reduction, Scan};
use crate::members::{Caller, Extent, Group, Hierarchy, LocalGroup};
use crate::memory::reserve;
use crate::nonblocking::meet;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// Runs an operation and waits for its end.
///
/// # Safety
/// The buffers are live, as the operation's own function says.
///
/// # Errors
/// Those of the operation's own function.
pub unsafe fn run(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { run_as(group, call, Form::Blocking) }
}

/// [`run`] in this form.
///
/// # Safety
/// As [`run`].
unsafe fn run_as(group: &Group<'_>, call: &Call<'_>, form: Form) -> Result<(), EngineError> {
    let label = Label::of(call, form);
    // SAFETY: the caller's conditions.
    unsafe {
        match group.extent(label) {
            Extent::OneNode(group) => local::run_any(&group, call),
            Extent::Compared(group) => compared(&group, call, form),
            Extent::Nodes(hierarchy) => nodes::run(&Caller { group, label }, hierarchy, call),
        }
    }
}

/// [`run`] in the operations' own functions, each of which keeps its own case of it.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn dispatch(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    let label = Label::of(call, Form::Blocking);
    // SAFETY: the caller's conditions.
    unsafe {
        match group.extent(label) {
            Extent::OneNode(group) => local::run(&group, call),
            Extent::Compared(group) => compared(&group, call, Form::Blocking),
            Extent::Nodes(hierarchy) => nodes::run(&Caller { group, label }, hierarchy, call),
        }
    }
}

/// An operation within a node whose members' arguments are compared first.
///
/// # Safety
/// As [`run`].
#[cold]
#[inline(never)]
unsafe fn compared(group: &LocalGroup<'_>, call: &Call<'_>, form: Form) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe {
        meet(group, call, form)?;
        local::run_any(group, call)
    }
}

/// Compares the members' arguments of an operation that the caller does itself, if the members of the group do so.
/// Collective. Only members of one node do.
///
/// # Safety
/// As [`run`].
///
/// # Errors
/// [`EngineError::Disagreement`].
pub unsafe fn compare(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    match group.extent(Label::NONE) {
        // SAFETY: the caller's conditions.
        Extent::Compared(group) => unsafe { meet(&group, call, Form::Blocking) },
        _ => Ok(()),
    }
}

/// Compares the members' arguments of a persistent operation that is made, if the members of the group do so; among
/// nodes not those of neighbours. Collective.
///
/// # Safety
/// As [`run`].
///
/// # Errors
/// [`EngineError::Disagreement`], no memory.
pub unsafe fn compare_persistent(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    match group.extent(Label::NONE) {
        // SAFETY: the caller's conditions.
        Extent::Compared(group) => unsafe { meet(&group, call, Form::Persistent) },
        Extent::Nodes(hierarchy)
            if group.rank().node().settings().check_members
                && !matches!(call, Call::Neighbours { .. }) =>
        {
            nodes::tell(group, hierarchy, call, Form::Persistent)
        }
        _ => Ok(()),
    }
}

/// [`run`] as a part of a call that makes or frees an object.
///
/// # Safety
/// As [`run`].
///
/// # Errors
/// As [`run`].
pub unsafe fn run_within(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { run_as(group, call, Form::Internal) }
}

/// A barrier as a part of a call that makes or frees an object.
///
/// # Errors
/// As [`barrier`].
pub fn barrier_within(group: &Group<'_>) -> Result<(), EngineError> {
    // SAFETY: no buffers.
    unsafe { run_within(group, &Call::Barrier) }
}

/// `MPI_Barrier`.
///
/// # Errors
/// No memory.
#[inline]
pub fn barrier(group: &Group<'_>) -> Result<(), EngineError> {
    // SAFETY: no buffers.
    unsafe { dispatch(group, &Call::Barrier) }
}

/// `MPI_Bcast` of `buffer` from member `root`.
///
/// # Safety
/// `buffer` is a live buffer, writable at members other than the root.
///
/// # Errors
/// [`EngineError::Truncated`] when the root sends more than `buffer` holds.
#[inline]
pub unsafe fn bcast(group: &Group<'_>, buffer: Buffer<'_>, root: u32) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { dispatch(group, &Call::Bcast { buffer, root }) }
}

/// `MPI_Gather` and `MPI_Gatherv` to member `root`.
///
/// `send` is `None` for in-place (at the root only); `receive` is used at the root only.
///
/// # Safety
/// The buffers are live; those of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] at the root.
pub unsafe fn gather(
    group: &Group<'_>,
    send: Option<Buffer<'_>>,
    receive: Option<Blocks<'_>>,
    root: u32,
) -> Result<(), EngineError> {
    let call = Call::Gather {
        send,
        receive,
        root,
    };
    // SAFETY: the caller's conditions.
    unsafe { dispatch(group, &call) }
}

/// `MPI_Scatter` and `MPI_Scatterv` from member `root`.
///
/// `send` is used at the root only; `receive` is `None` for in-place (at the root only).
///
/// # Safety
/// The buffers are live; that of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] when the root sends more than `receive` holds.
pub unsafe fn scatter(
    group: &Group<'_>,
    send: Option<Blocks<'_>>,
    receive: Option<Buffer<'_>>,
    root: u32,
) -> Result<(), EngineError> {
    let call = Call::Scatter {
        send,
        receive,
        root,
    };
    // SAFETY: the caller's conditions.
    unsafe { dispatch(group, &call) }
}

/// `MPI_Allgather` and `MPI_Allgatherv`; `send` is `None` for in-place.
///
/// # Safety
/// The buffers are live; those of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds.
pub unsafe fn allgather(
    group: &Group<'_>,
    send: Option<Buffer<'_>>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { dispatch(group, &Call::Allgather { send, receive }) }
}

/// Calls `read` with what each member says, by rank. The members of a node may look at one table, so it is read in the
/// call: others wait meanwhile. Collective.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub fn view<const N: usize, R>(
    group: &Group<'_>,
    mut mine: [i32; N],
    read: impl FnOnce(&[[i32; N]]) -> R,
) -> Result<R, EngineError> {
    let label = Label::TABLE;
    if let Extent::Nodes(hierarchy) = group.extent(label) {
        return nodes::view(&Caller { group, label }, hierarchy, mine, read);
    }
    let mut all = reserve(group.size())?;
    all.resize(group.size(), [0; N]);
    let bytes = size_of::<[i32; N]>() as u64;
    let send = Buffer::of_bytes(mine.as_mut_ptr().cast(), bytes);
    let receive = Blocks::Equal(Buffer::of_bytes(all.as_mut_ptr().cast(), bytes));
    let call = Call::Allgather {
        send: Some(send),
        receive,
    };
    // SAFETY: both outlive the call; there are so many words of each member.
    unsafe { run_within(group, &call)? };
    Ok(read(&all))
}

/// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`; `send` is `None` for in-place.
///
/// # Safety
/// The buffers are live; those of `receive` writable.
///
/// # Errors
/// [`EngineError::Truncated`] when a member sends more than its block of `receive` holds,
/// [`EngineError::OutOfMemory`] in place.
pub unsafe fn alltoall(
    group: &Group<'_>,
    send: Option<Blocks<'_>>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { dispatch(group, &Call::Alltoall { send, receive }) }
}

/// `MPI_Reduce` to member `root`; `output` is used at the root only.
///
/// # Safety
/// The buffers are live and hold `count` elements.
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they
/// disagree about the size, or no memory.
pub unsafe fn reduce(
    group: &Group<'_>,
    call: &Reduction<'_>,
    root: u32,
) -> Result<(), EngineError> {
    let reduction = *call;
    // SAFETY: the caller's conditions.
    unsafe { dispatch(group, &Call::Reduce { reduction, root }) }
}

/// `MPI_Allreduce`.
///
/// # Safety
/// As [`reduce`].
///
/// # Errors
/// As [`reduce`].
#[inline]
pub unsafe fn allreduce(group: &Group<'_>, call: &Reduction<'_>) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe {
        match group.extent(Label::ALLREDUCE) {
            Extent::OneNode(group) => local::allreduce(&group, call),
            Extent::Compared(group) => {
                let reduction = *call;
                compared(&group, &Call::Allreduce { reduction }, Form::Blocking)
            }
            Extent::Nodes(hierarchy) => allreduce_among_nodes(group, hierarchy, call),
        }
    }
}

/// # Safety
/// As [`allreduce`].
#[inline(never)]
unsafe fn allreduce_among_nodes(
    group: &Group<'_>,
    hierarchy: &Hierarchy,
    call: &Reduction<'_>,
) -> Result<(), EngineError> {
    let reduction = *call;
    let label = Label::ALLREDUCE;
    let caller = Caller { group, label };
    // SAFETY: the caller's conditions.
    unsafe { nodes::run(&caller, hierarchy, &Call::Allreduce { reduction }) }
}

/// `MPI_Reduce_scatter` (and `_block`): member *i* gets `counts[i]` elements of the result.
/// `call.count` is ignored.
///
/// # Safety
/// The operand holds the sum of `counts`, the output this member's count of elements (in
/// place: the sum).
///
/// # Errors
/// As [`reduce`].
pub unsafe fn reduce_scatter(
    group: &Group<'_>,
    call: &Reduction<'_>,
    counts: &[i64],
) -> Result<(), EngineError> {
    let reduction = call.of(counts.iter().sum::<i64>() as u64);
    // SAFETY: the caller's conditions.
    unsafe { dispatch(group, &Call::ReduceScatter { reduction, counts }) }
}

/// `MPI_Scan` and `MPI_Exscan`.
///
/// # Safety
/// As [`reduce`].
///
/// # Errors
/// As [`reduce`].
pub unsafe fn scan(group: &Group<'_>, call: &Reduction<'_>, kind: Scan) -> Result<(), EngineError> {
    let reduction = *call;
    // SAFETY: the caller's conditions.
    unsafe { dispatch(group, &Call::Scan { reduction, kind }) }
}

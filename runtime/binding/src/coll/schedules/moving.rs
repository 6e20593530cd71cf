//! Barrier, and the collectives that move data as it is, nonblocking and persistent (MPI-4.1 sections
//! 6.12 and 6.13).

use super::super::inter;
use super::super::parts::{BlockList, Part, Typed, Varying, in_place};
use super::{Arguments, Role};
use crate::arguments::{Call, Comm, Outcome, on_comm};
use cohort_abi::{Abi, Count};
use core::ffi::{c_int, c_void};

/// What `check` makes of a buffer argument; `None` for `MPI_IN_PLACE`, which intercommunicators do not have.
#[inline]
fn unless_in_place<A: Abi, T>(
    comm: &Comm,
    buffer: *const c_void,
    check: impl FnOnce() -> Outcome<T>,
) -> Outcome<Option<T>> {
    match (in_place::<A>(buffer), comm.inter()) {
        (false, _) => check().map(Some),
        (true, None) => Ok(None),
        (true, Some(inter)) => Err(inter::in_place_refused(&inter)),
    }
}

/// The arguments of a gather: the root alone receives, and in one group may do so in place.
fn gathering<A: Abi>(
    comm: &Comm,
    at: c_int,
    send_buffer: *const c_void,
    send: impl FnOnce() -> Outcome<Part>,
    receive: impl FnOnce() -> Outcome<BlockList>,
) -> Outcome<Arguments<A>> {
    let (root, role) = Role::check::<A>(comm, at)?;
    Ok(Arguments::Gather {
        send: match role {
            Role::Root if comm.is_inter() => None,
            Role::Root => unless_in_place::<A, _>(comm, send_buffer, send)?,
            Role::Other => Some(send()?),
            Role::Beside => return Ok(Arguments::BESIDE),
        },
        receive: (role == Role::Root).then(receive).transpose()?,
        root,
    })
}

/// The arguments of a scatter: the root alone sends, and in one group may receive in place.
fn scattering<A: Abi>(
    comm: &Comm,
    at: c_int,
    buffer: *const c_void,
    send: impl FnOnce() -> Outcome<BlockList>,
    receive: impl FnOnce() -> Outcome<Part>,
) -> Outcome<Arguments<A>> {
    let (root, role) = Role::check::<A>(comm, at)?;
    Ok(Arguments::Scatter {
        receive: match role {
            Role::Root if comm.is_inter() => None,
            Role::Root => unless_in_place::<A, _>(comm, buffer, receive)?,
            Role::Other => Some(receive()?),
            Role::Beside => return Ok(Arguments::BESIDE),
        },
        send: (role == Role::Root).then(send).transpose()?,
        root,
    })
}

/// Equal blocks, one for each member.
fn equal<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: *const c_void,
    elements: C,
    datatype: A::Datatype,
) -> Outcome<BlockList> {
    Part::check(call, buffer, elements, datatype).map(BlockList::Equal)
}

/// Blocks of any length, one for each member, or each of the other group.
///
/// # Safety
/// The arrays have an entry for each member.
unsafe fn varying<A: Abi, C: Count>(
    call: &Call<'_, A>,
    comm: &Comm,
    buffer: *const c_void,
    counts: *const C,
    displacements: *const C::Displacement,
    datatype: A::Datatype,
) -> Outcome<BlockList> {
    let members = comm.peers().size() as usize;
    // SAFETY: the caller's contract.
    unsafe { Varying::check::<A, C>(call, buffer, counts, displacements, datatype, members) }
        .map(BlockList::Varying)
}

/// Blocks of any length and type, one for each member, or each of the other group.
///
/// # Safety
/// The arrays have an entry for each member.
unsafe fn typed<A: Abi, C: Count>(
    call: &Call<'_, A>,
    comm: &Comm,
    buffer: *const c_void,
    counts: *const C,
    displacements: *const C::Displacement,
    datatypes: *const A::Datatype,
) -> Outcome<BlockList> {
    let members = comm.peers().size() as usize;
    // SAFETY: the caller's contract.
    unsafe { Typed::check::<A, C>(call, buffer, counts, displacements, datatypes, members) }
        .map(BlockList::Typed)
}

forms! {
    "MPI_Ibarrier" "MPI_Barrier_init"
    ibarrier barrier_init
    <>()
    = |_call, _comm| Ok::<_, i32>(Arguments::Barrier);

    "MPI_Ibcast" "MPI_Bcast_init"
    ibcast bcast_init
    <C>(buffer: *mut c_void, elements: C, datatype: A::Datatype, from: c_int)
    = |call, comm| Role::check::<A>(comm, from).and_then(|(root, role)| {
        if role == Role::Beside {
            return Ok(Arguments::BESIDE);
        }
        let buffer = Part::check(call, buffer, elements, datatype)?;
        Ok(Arguments::Bcast { buffer, root })
    });

    "MPI_Igather" "MPI_Gather_init"
    igather gather_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
        at: c_int,
    )
    = |call, comm| gathering(
        comm,
        at,
        send_buffer,
        || Part::check(call, send_buffer, send_elements, send_type),
        || equal(call, buffer, elements, datatype),
    );

    "MPI_Igatherv" "MPI_Gatherv_init"
    igatherv gatherv_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        displacements: *const C::Displacement,
        datatype: A::Datatype,
        at: c_int,
    )
    = |call, comm| gathering(
        comm,
        at,
        send_buffer,
        || Part::check(call, send_buffer, send_elements, send_type),
        || varying(call, comm, buffer, counts, displacements, datatype),
    );

    "MPI_Iscatter" "MPI_Scatter_init"
    iscatter scatter_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
        at: c_int,
    )
    = |call, comm| scattering(
        comm,
        at,
        buffer,
        || equal(call, send_buffer, send_elements, send_type),
        || Part::check(call, buffer, elements, datatype),
    );

    "MPI_Iscatterv" "MPI_Scatterv_init"
    iscatterv scatterv_init
    <C>(
        send_buffer: *const c_void,
        send_counts: *const C,
        send_displacements: *const C::Displacement,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
        at: c_int,
    )
    = |call, comm| scattering(
        comm,
        at,
        buffer,
        || varying(call, comm, send_buffer, send_counts, send_displacements, send_type),
        || Part::check(call, buffer, elements, datatype),
    );

    "MPI_Iallgather" "MPI_Allgather_init"
    iallgather allgather_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        Part::check(call, send_buffer, send_elements, send_type)
    })
    .and_then(|send| {
        let receive = equal(call, buffer, elements, datatype)?;
        Ok(Arguments::Allgather { send, receive })
    });

    "MPI_Iallgatherv" "MPI_Allgatherv_init"
    iallgatherv allgatherv_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        displacements: *const C::Displacement,
        datatype: A::Datatype,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        Part::check(call, send_buffer, send_elements, send_type)
    })
    .and_then(|send| {
        let receive = varying(call, comm, buffer, counts, displacements, datatype)?;
        Ok(Arguments::Allgather { send, receive })
    });

    "MPI_Ialltoall" "MPI_Alltoall_init"
    ialltoall alltoall_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        equal(call, send_buffer, send_elements, send_type)
    })
    .and_then(|send| {
        let receive = equal(call, buffer, elements, datatype)?;
        Ok(Arguments::Alltoall { send, receive })
    });

    "MPI_Ialltoallv" "MPI_Alltoallv_init"
    ialltoallv alltoallv_init
    <C>(
        send_buffer: *const c_void,
        send_counts: *const C,
        send_displacements: *const C::Displacement,
        send_type: A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        displacements: *const C::Displacement,
        datatype: A::Datatype,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        varying(call, comm, send_buffer, send_counts, send_displacements, send_type)
    })
    .and_then(|send| {
        let receive = varying(call, comm, buffer, counts, displacements, datatype)?;
        Ok(Arguments::Alltoall { send, receive })
    });

    "MPI_Ialltoallw" "MPI_Alltoallw_init"
    ialltoallw alltoallw_init
    <C>(
        send_buffer: *const c_void,
        send_counts: *const C,
        send_displacements: *const C::Displacement,
        send_types: *const A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        displacements: *const C::Displacement,
        datatypes: *const A::Datatype,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        typed(call, comm, send_buffer, send_counts, send_displacements, send_types)
    })
    .and_then(|send| {
        let receive = typed(call, comm, buffer, counts, displacements, datatypes)?;
        Ok(Arguments::Alltoall { send, receive })
    });
}

//! Barrier, and the collectives that move data as it is, nonblocking and persistent (MPI-4.1 sections
//! 6.12 and 6.13).

use super::super::inter;
use super::super::parts::{BlockList, Typed, Varying, in_place};
use super::{Arguments, Role};
use crate::arguments::{Call, Comm, Error, Outcome};
use crate::data::Data;
use crate::passed::{Array, Base, Buffer, Out};
use cohort_abi::{Abi, Count};
use core::ffi::c_int;

/// What `check` makes of a buffer argument; `None` for `MPI_IN_PLACE`, which intercommunicators do not have.
#[inline]
fn unless_in_place<A: Abi, T>(
    comm: &Comm,
    buffer: impl Into<Base>,
    check: impl FnOnce() -> Outcome<T>,
) -> Outcome<Option<T>> {
    match (in_place::<A>(buffer), comm.inter()) {
        (false, _) => check().map(Some),
        (true, None) => Ok(None),
        (true, Some(_)) => Err(inter::in_place_refused()),
    }
}

/// The arguments of a gather: the root alone receives, and in one group may do so in place.
fn gathering<A: Abi>(
    comm: &Comm,
    at: c_int,
    send_buffer: impl Into<Base>,
    send: impl FnOnce() -> Outcome<Data>,
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
    buffer: impl Into<Base>,
    send: impl FnOnce() -> Outcome<BlockList>,
    receive: impl FnOnce() -> Outcome<Data>,
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
fn equal<A: Abi, C: Count>(call: &Call<'_, A>, buffer: Buffer<A, C>) -> Outcome<BlockList> {
    Data::check(call, buffer).map(BlockList::Equal)
}

/// Blocks of any length, one for each member, or each of the other group.
fn varying<A: Abi, C: Count>(
    call: &Call<'_, A>,
    comm: &Comm,
    buffer: Base,
    counts: Array<'_, C>,
    displacements: Array<'_, C::Displacement>,
    datatype: A::Datatype,
) -> Outcome<BlockList> {
    let members = comm.peers().size() as usize;
    Varying::check::<A, C>(call, buffer, counts, displacements, datatype, members).map(BlockList::Varying)
}

/// Blocks of any length and type, one for each member, or each of the other group.
fn typed<A: Abi, C: Count>(
    call: &Call<'_, A>,
    comm: &Comm,
    buffer: Base,
    counts: Array<'_, C>,
    displacements: Array<'_, C::Displacement>,
    datatypes: Array<'_, A::Datatype>,
) -> Outcome<BlockList> {
    let members = comm.peers().size() as usize;
    Typed::check::<A, C>(call, buffer, counts, displacements, datatypes, members).map(BlockList::Typed)
}

forms! {
    "MPI_Ibarrier" "MPI_Barrier_init"
    ibarrier barrier_init
    <>()
    = |_call, _comm| Ok::<_, Error>(Arguments::Barrier);

    "MPI_Ibcast" "MPI_Bcast_init"
    ibcast bcast_init
    <C>(buffer: Buffer<A, C>, from: c_int)
    = |call, comm| Role::check::<A>(comm, from).and_then(|(root, role)| {
        if role == Role::Beside {
            return Ok(Arguments::BESIDE);
        }
        let buffer = Data::check(call, buffer)?;
        Ok(Arguments::Bcast { buffer, root })
    });

    "MPI_Igather" "MPI_Gather_init"
    igather gather_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
        at: c_int,
    )
    = |call, comm| gathering(
        comm,
        at,
        send_buffer,
        || Data::check(call, send_buffer),
        || equal(call, buffer),
    );

    "MPI_Igatherv" "MPI_Gatherv_init"
    igatherv gatherv_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatype: A::Datatype,
        at: c_int,
    )
    = |call, comm| gathering(
        comm,
        at,
        send_buffer,
        || Data::check(call, send_buffer),
        || varying(call, comm, buffer, counts, displacements, datatype),
    );

    "MPI_Iscatter" "MPI_Scatter_init"
    iscatter scatter_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
        at: c_int,
    )
    = |call, comm| scattering(
        comm,
        at,
        buffer,
        || equal(call, send_buffer),
        || Data::check(call, buffer),
    );

    "MPI_Iscatterv" "MPI_Scatterv_init"
    iscatterv scatterv_init
    <C>(
        send_buffer: Base,
        send_counts: Array<'_, C>,
        send_displacements: Array<'_, C::Displacement>,
        send_type: A::Datatype,
        buffer: Buffer<A, C>,
        at: c_int,
    )
    = |call, comm| scattering(
        comm,
        at,
        buffer,
        || varying(call, comm, send_buffer, send_counts, send_displacements, send_type),
        || Data::check(call, buffer),
    );

    "MPI_Iallgather" "MPI_Allgather_init"
    iallgather allgather_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        Data::check(call, send_buffer)
    })
    .and_then(|send| {
        let receive = equal(call, buffer)?;
        Ok(Arguments::Allgather { send, receive })
    });

    "MPI_Iallgatherv" "MPI_Allgatherv_init"
    iallgatherv allgatherv_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatype: A::Datatype,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        Data::check(call, send_buffer)
    })
    .and_then(|send| {
        let receive = varying(call, comm, buffer, counts, displacements, datatype)?;
        Ok(Arguments::Allgather { send, receive })
    });

    "MPI_Ialltoall" "MPI_Alltoall_init"
    ialltoall alltoall_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        equal(call, send_buffer)
    })
    .and_then(|send| {
        let receive = equal(call, buffer)?;
        Ok(Arguments::Alltoall { send, receive })
    });

    "MPI_Ialltoallv" "MPI_Alltoallv_init"
    ialltoallv alltoallv_init
    <C>(
        send_buffer: Base,
        send_counts: Array<'_, C>,
        send_displacements: Array<'_, C::Displacement>,
        send_type: A::Datatype,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
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
        send_buffer: Base,
        send_counts: Array<'_, C>,
        send_displacements: Array<'_, C::Displacement>,
        send_types: Array<'_, A::Datatype>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatypes: Array<'_, A::Datatype>,
    )
    = |call, comm| unless_in_place::<A, _>(comm, send_buffer, || {
        typed(call, comm, send_buffer, send_counts, send_displacements, send_types)
    })
    .and_then(|send| {
        let receive = typed(call, comm, buffer, counts, displacements, datatypes)?;
        Ok(Arguments::Alltoall { send, receive })
    });
}

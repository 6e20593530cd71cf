//! Barrier, and the collectives that move data as it is (MPI-4.1 sections 6.3 to 6.8).

use super::blocking::Blocking;
use super::described::{Allgather, Alltoall, Barrier, Bcast, Gather, Scatter};
use super::forms::Form;
use super::nonblocking::Nonblocking;
use super::parts::{OfOneType, OfTypes, Unchecked, in_place_refused};
use super::persistent::Persistent;
use super::root::{NOBODY, is_root, root};
use crate::arguments::{Call, Comm, Outcome};
use crate::data::Data;
use cohort_abi::parameters::{Array, Base, Buffer, Out};
use cohort_abi::{Abi, Count};
use core::ffi::c_int;

/// A buffer argument of a member that may have its data in place; between groups nobody does.
#[inline(always)]
fn unless_in_place<A: Abi, U: Unchecked<A>>(call: &Call<'_, A>, comm: &Comm, buffer: U) -> Outcome<Option<U::Checked>> {
    match buffer.is_in_place() {
        false => buffer.check(call, peers(comm)).map(Some),
        true if comm.is_inter() => Err(in_place_refused()),
        true => Ok(None),
    }
}

/// How many members have blocks: those of the group, or of the other group.
#[inline]
fn peers(comm: &Comm) -> usize {
    comm.peers().size() as usize
}

/// A gather: the root alone receives, and in one group may do so in place.
#[inline(always)]
fn gathering<A: Abi, C: Count, R: Unchecked<A>>(
    (call, comm, form): (&Call<'_, A>, &Comm, impl Form),
    send: Buffer<A, C>,
    receive: R,
    at: c_int,
) -> Outcome<()> {
    let root = root::<A>(comm, at)?;
    if is_root(comm, root) {
        let send = match comm.is_inter() || send.is_in_place() {
            true => None,
            false => Some(Data::check(call, send)?),
        };
        let receive = Some(receive.check(call, peers(comm))?);
        form.with(Gather { send, receive, root })
    } else if root == NOBODY {
        form.beside()
    } else {
        let send = Some(Data::check(call, send)?);
        form.with(Gather { send, receive: None::<R::Checked>, root })
    }
}

/// A scatter: the root alone sends, and in one group may receive in place.
#[inline(always)]
fn scattering<A: Abi, C: Count, S: Unchecked<A>>(
    (call, comm, form): (&Call<'_, A>, &Comm, impl Form),
    send: S,
    receive: Buffer<A, C>,
    at: c_int,
) -> Outcome<()> {
    let root = root::<A>(comm, at)?;
    if is_root(comm, root) {
        let receive = match comm.is_inter() || receive.is_in_place() {
            true => None,
            false => Some(Data::check(call, receive)?),
        };
        let send = Some(send.check(call, peers(comm))?);
        form.with(Scatter { send, receive, root })
    } else if root == NOBODY {
        form.beside()
    } else {
        let receive = Some(Data::check(call, receive)?);
        form.with(Scatter { send: None::<S::Checked>, receive, root })
    }
}

/// An allgather.
#[inline(always)]
fn spreading<A: Abi, C: Count>(
    (call, comm, form): (&Call<'_, A>, &Comm, impl Form),
    send: Buffer<A, C>,
    receive: impl Unchecked<A>,
) -> Outcome<()> {
    let send = unless_in_place(call, comm, send)?;
    let receive = receive.check(call, peers(comm))?;
    form.with(Allgather { send, receive })
}

/// An all-to-all.
#[inline(always)]
fn exchanging<A: Abi, P: Unchecked<A>>(
    (call, comm, form): (&Call<'_, A>, &Comm, impl Form),
    send: P,
    receive: P,
) -> Outcome<()> {
    let send = unless_in_place(call, comm, send)?;
    let receive = receive.check(call, peers(comm))?;
    form.with(Alltoall { send, receive })
}

forms! {
    "Barrier" barrier ibarrier barrier_init
    <>()
    = |_call, _comm, form| form.with(Barrier {});

    "Bcast" bcast ibcast bcast_init
    <C>(buffer: Buffer<A, C>, from: c_int)
    = |call, comm, form| match root::<A>(comm, from)? {
        NOBODY => form.beside(),
        root => form.with(Bcast { buffer: Data::check(call, buffer)?, root }),
    };

    "Gather" gather igather gather_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
        at: c_int,
    )
    = |call, comm, form| gathering((call, comm, form), send_buffer, buffer, at);

    "Gatherv" gatherv igatherv gatherv_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatype: A::Datatype,
        at: c_int,
    )
    = |call, comm, form| gathering(
        (call, comm, form),
        send_buffer,
        OfOneType(buffer, counts, displacements, datatype),
        at,
    );

    "Scatter" scatter iscatter scatter_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
        at: c_int,
    )
    = |call, comm, form| scattering((call, comm, form), send_buffer, buffer, at);

    "Scatterv" scatterv iscatterv scatterv_init
    <C>(
        send_buffer: Base,
        send_counts: Array<'_, C>,
        send_displacements: Array<'_, C::Displacement>,
        send_type: A::Datatype,
        buffer: Buffer<A, C>,
        at: c_int,
    )
    = |call, comm, form| scattering(
        (call, comm, form),
        OfOneType(send_buffer, send_counts, send_displacements, send_type),
        buffer,
        at,
    );

    "Allgather" allgather iallgather allgather_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    = |call, comm, form| spreading((call, comm, form), send_buffer, buffer);

    "Allgatherv" allgatherv iallgatherv allgatherv_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatype: A::Datatype,
    )
    = |call, comm, form| spreading((call, comm, form), send_buffer, OfOneType(buffer, counts, displacements, datatype));

    "Alltoall" alltoall ialltoall alltoall_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    = |call, comm, form| exchanging((call, comm, form), send_buffer, buffer);

    "Alltoallv" alltoallv ialltoallv alltoallv_init
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
    = |call, comm, form| exchanging(
        (call, comm, form),
        OfOneType(send_buffer, send_counts, send_displacements, send_type),
        OfOneType(buffer, counts, displacements, datatype),
    );

    "Alltoallw" alltoallw ialltoallw alltoallw_init
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
    = |call, comm, form| exchanging(
        (call, comm, form),
        OfTypes(send_buffer, send_counts, send_displacements, send_types),
        OfTypes(buffer, counts, displacements, datatypes),
    );
}

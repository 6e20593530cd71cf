//! Neighbourhood collectives (MPI-4.1 sections 8.6 to 8.8): each member exchanges messages with its neighbours of the
//! communicator's topology. The persistent forms are pools, as of other collectives.

use super::blocking::Blocking;
use super::described::Neighbours;
use super::forms::Form;
use super::nonblocking::Nonblocking;
use super::parts::{OfOneType, OfTypes, Unchecked};
use super::persistent::Persistent;
use crate::arguments::{Call, Comm, Outcome};
use cohort_abi::parameters::{Array, Base, Buffer, Out};
use cohort_abi::{Abi, Count, neutral};

/// An exchange with all neighbours; with `to_all` every destination gets the one block of `send`.
///
/// # Errors
/// `MPI_ERR_TOPOLOGY` without a topology.
#[inline(always)]
fn around<A: Abi>(
    (call, comm, form): (&Call<'_, A>, &Comm, impl Form),
    send: impl Unchecked<A>,
    to_all: bool,
    receive: impl Unchecked<A>,
) -> Outcome<()> {
    let Some(all) = comm.neighbours().cloned() else {
        let what = format_args!("the communicator has no topology");
        return Err(call.blame(neutral::ERR_TOPOLOGY, what));
    };
    let send = send.check(call, all.destinations.len())?;
    let receive = receive.check(call, all.sources.len())?;
    form.with(Neighbours { all, send, to_all, receive })
}

forms! {
    "Neighbor_allgather" neighbor_allgather ineighbor_allgather neighbor_allgather_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    = |call, comm, form| around((call, comm, form), send_buffer, true, buffer);

    "Neighbor_allgatherv" neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatype: A::Datatype,
    )
    = |call, comm, form| around(
        (call, comm, form),
        send_buffer,
        true,
        OfOneType(buffer, counts, displacements, datatype),
    );

    "Neighbor_alltoall" neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    = |call, comm, form| around((call, comm, form), send_buffer, false, buffer);

    "Neighbor_alltoallv" neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init
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
    = |call, comm, form| around(
        (call, comm, form),
        OfOneType(send_buffer, send_counts, send_displacements, send_type),
        false,
        OfOneType(buffer, counts, displacements, datatype),
    );

    "Neighbor_alltoallw" neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init
    <C>(
        send_buffer: Base,
        send_counts: Array<'_, C>,
        send_displacements: Array<'_, isize>,
        send_types: Array<'_, A::Datatype>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, isize>,
        datatypes: Array<'_, A::Datatype>,
    )
    = |call, comm, form| around(
        (call, comm, form),
        OfTypes(send_buffer, send_counts, send_displacements, send_types),
        false,
        OfTypes(buffer, counts, displacements, datatypes),
    );
}

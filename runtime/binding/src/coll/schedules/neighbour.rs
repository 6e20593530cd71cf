//! Persistent neighbourhood collectives (MPI-4.1 section 8.8).

use super::super::neighbour::neighbours;
use super::super::parts::{BlockList, Typed, Varying};
use super::Arguments;
use crate::arguments::{Call, Outcome};
use crate::data::Data;
use crate::passed::{Array, Base, Buffer, Out};
use cohort_abi::{Abi, Count};

persistent_forms! {
    "MPI_Neighbor_allgather_init" neighbor_allgather_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    = |call, comm| neighbours(call, comm).and_then(|all| Ok(Arguments::Neighbours {
        send: BlockList::Equal(Data::check(call, send_buffer)?),
        to_all: true,
        receive: BlockList::Equal(Data::check(call, buffer)?),
        all,
    }));

    "MPI_Neighbor_allgatherv_init" neighbor_allgatherv_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatype: A::Datatype,
    )
    = |call, comm| neighbours(call, comm).and_then(|all| Ok(Arguments::Neighbours {
        send: BlockList::Equal(Data::check(call, send_buffer)?),
        to_all: true,
        receive: BlockList::Varying(Varying::check::<A, C>(
            call, buffer, counts, displacements, datatype, all.sources.len(),
        )?),
        all,
    }));

    "MPI_Neighbor_alltoall_init" neighbor_alltoall_init
    <C>(
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    = |call, comm| neighbours(call, comm).and_then(|all| Ok(Arguments::Neighbours {
        send: BlockList::Equal(Data::check(call, send_buffer)?),
        to_all: false,
        receive: BlockList::Equal(Data::check(call, buffer)?),
        all,
    }));

    "MPI_Neighbor_alltoallv_init" neighbor_alltoallv_init
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
    = |call, comm| neighbours(call, comm).and_then(|all| Ok(Arguments::Neighbours {
        send: BlockList::Varying(Varying::check::<A, C>(
            call, send_buffer, send_counts, send_displacements, send_type, all.destinations.len(),
        )?),
        to_all: false,
        receive: BlockList::Varying(Varying::check::<A, C>(
            call, buffer, counts, displacements, datatype, all.sources.len(),
        )?),
        all,
    }));

    "MPI_Neighbor_alltoallw_init" neighbor_alltoallw_init
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
    = |call, comm| neighbours(call, comm).and_then(|all| Ok(Arguments::Neighbours {
        send: BlockList::Typed(Typed::check_bytes::<A, C, _>(
            call, send_buffer, send_counts, send_displacements, send_types, all.destinations.len(),
        )?),
        to_all: false,
        receive: BlockList::Typed(Typed::check_bytes::<A, C, _>(
            call, buffer, counts, displacements, datatypes, all.sources.len(),
        )?),
        all,
    }));
}

//! Persistent neighbourhood collectives (MPI-4.1 section 8.8).

use super::super::neighbour::neighbours;
use super::super::parts::{BlockList, Part, Typed, Varying};
use super::Arguments;
use crate::arguments::on_comm;
use cohort_abi::{Abi, Count};
use core::ffi::{c_int, c_void};

persistent_forms! {
    "MPI_Neighbor_allgather_init" neighbor_allgather_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
    )
    = |call, comm| neighbours(call, comm).and_then(|all| Ok(Arguments::Neighbours {
        send: BlockList::Equal(Part::check(call, send_buffer, send_elements, send_type)?),
        to_all: true,
        receive: BlockList::Equal(Part::check(call, buffer, elements, datatype)?),
        all,
    }));

    "MPI_Neighbor_allgatherv_init" neighbor_allgatherv_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        displacements: *const C::Displacement,
        datatype: A::Datatype,
    )
    = |call, comm| neighbours(call, comm).and_then(|all| Ok(Arguments::Neighbours {
        send: BlockList::Equal(Part::check(call, send_buffer, send_elements, send_type)?),
        to_all: true,
        receive: BlockList::Varying(Varying::check::<A, C>(
            call, buffer, counts, displacements, datatype, all.sources.len(),
        )?),
        all,
    }));

    "MPI_Neighbor_alltoall_init" neighbor_alltoall_init
    <C>(
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
    )
    = |call, comm| neighbours(call, comm).and_then(|all| Ok(Arguments::Neighbours {
        send: BlockList::Equal(Part::check(call, send_buffer, send_elements, send_type)?),
        to_all: false,
        receive: BlockList::Equal(Part::check(call, buffer, elements, datatype)?),
        all,
    }));

    "MPI_Neighbor_alltoallv_init" neighbor_alltoallv_init
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
        send_buffer: *const c_void,
        send_counts: *const C,
        send_displacements: *const isize,
        send_types: *const A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        displacements: *const isize,
        datatypes: *const A::Datatype,
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

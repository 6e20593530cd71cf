//! `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw` (MPI-4.1 section 6.8).

use super::parts::{Parts, Typed, Varying, in_place};
use super::{apart, inter, run};
use crate::arguments::{Call, Outcome};
use crate::data::Data;
use crate::passed::{Array, Base, Buffer};
use cohort_abi::{Abi, Count};

/// `MPI_Alltoall`.
#[inline(always)]
pub fn alltoall<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Buffer<A, C>,
    buffer: Buffer<A, C>,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let send = match in_place::<A>(send_buffer) {
        true => None,
        false => Some(Data::check(call, send_buffer)?),
    };
    let receive = Data::check(call, buffer)?;
    if let Some(inter) = comm.inter() {
        return inter::alltoall(&inter, send, &receive);
    }
    let group = comm.collective();
    if let Some(send) = &send {
        apart::blocks(&group, &send.blocks(), &receive.blocks())?;
    }
    run::alltoall(&group, send.as_ref(), &receive)
}

/// `MPI_Alltoallv`.
pub fn alltoallv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    send_counts: Array<'_, C>,
    send_displacements: Array<'_, C::Displacement>,
    send_type: A::Datatype,
    buffer: Base,
    counts: Array<'_, C>,
    displacements: Array<'_, C::Displacement>,
    datatype: A::Datatype,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let send = match in_place::<A>(send_buffer) {
        true => None,
        false => Some(Varying::check::<A, C>(
            call,
            send_buffer,
            send_counts,
            send_displacements,
            send_type,
            comm.peers().size() as usize,
        )?),
    };
    let receive = Varying::check::<A, C>(call, buffer, counts, displacements, datatype, comm.peers().size() as usize)?;
    if let Some(inter) = comm.inter() {
        return inter::alltoall(&inter, send, &receive);
    }
    let group = comm.collective();
    if let Some(send) = &send {
        apart::blocks(&group, &send.blocks(), &receive.blocks())?;
    }
    run::alltoall(&group, send.as_ref(), &receive)
}

/// `MPI_Alltoallw`.
pub fn alltoallw<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    send_counts: Array<'_, C>,
    send_displacements: Array<'_, C::Displacement>,
    send_types: Array<'_, A::Datatype>,
    buffer: Base,
    counts: Array<'_, C>,
    displacements: Array<'_, C::Displacement>,
    datatypes: Array<'_, A::Datatype>,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let send = match in_place::<A>(send_buffer) {
        true => None,
        false => Some(Typed::check::<A, C>(
            call,
            send_buffer,
            send_counts,
            send_displacements,
            send_types,
            comm.peers().size() as usize,
        )?),
    };
    let receive = Typed::check::<A, C>(call, buffer, counts, displacements, datatypes, comm.peers().size() as usize)?;
    if let Some(inter) = comm.inter() {
        return inter::alltoall(&inter, send, &receive);
    }
    let group = comm.collective();
    if let Some(send) = &send {
        apart::blocks(&group, &send.blocks(), &receive.blocks())?;
    }
    run::alltoall(&group, send.as_ref(), &receive)
}

//! Collectives that move blocks to or from one member, or to all (MPI-4.1 sections 6.5 to 6.7).

use super::parts::{Parts, Varying, in_place, root};
use super::{apart, inter, run};
use crate::arguments::{Call, Outcome};
use crate::data::Data;
use crate::passed::{Array, Base, Buffer};
use cohort_abi::{Abi, Count};
use core::ffi::c_int;

/// `MPI_Gather`.
#[inline(always)]
pub fn gather<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Buffer<A, C>,
    buffer: Buffer<A, C>,
    at: c_int,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    if let Some(inter) = comm.inter() {
        let at = inter::root::<A>(&inter, at)?;
        return inter::gather(&inter, at, || Data::check(call, send_buffer), || Data::check(call, buffer));
    }
    let group = comm.collective();
    let at = root::<A>(&group, at)?;
    if group.me != at {
        let send = Data::check(call, send_buffer)?;
        return run::gather(&group, Some(&send), None::<&Data>, at);
    }
    let send = match in_place::<A>(send_buffer) {
        true => None,
        false => Some(Data::check(call, send_buffer)?),
    };
    let receive = Data::check(call, buffer)?;
    if let Some(send) = &send {
        apart::from_blocks(&group, send.buffer(), &receive.blocks())?;
    }
    run::gather(&group, send.as_ref(), Some(&receive), at)
}

/// `MPI_Gatherv`.
pub fn gatherv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Buffer<A, C>,
    buffer: Base,
    counts: Array<'_, C>,
    displacements: Array<'_, C::Displacement>,
    datatype: A::Datatype,
    at: c_int,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    if let Some(inter) = comm.inter() {
        let at = inter::root::<A>(&inter, at)?;
        return inter::gather(
            &inter,
            at,
            || Data::check(call, send_buffer),
            || Varying::check::<A, C>(call, buffer, counts, displacements, datatype, inter.remote.len()),
        );
    }
    let group = comm.collective();
    let at = root::<A>(&group, at)?;
    if group.me != at {
        let send = Data::check(call, send_buffer)?;
        return run::gather(&group, Some(&send), None::<&Data>, at);
    }
    let send = match in_place::<A>(send_buffer) {
        true => None,
        false => Some(Data::check(call, send_buffer)?),
    };
    let receive = Varying::check::<A, C>(call, buffer, counts, displacements, datatype, group.world.len())?;
    if let Some(send) = &send {
        apart::from_blocks(&group, send.buffer(), &receive.blocks())?;
    }
    run::gather(&group, send.as_ref(), Some(&receive), at)
}

/// `MPI_Scatter`.
#[inline(always)]
pub fn scatter<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Buffer<A, C>,
    buffer: Buffer<A, C>,
    at: c_int,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    if let Some(inter) = comm.inter() {
        let at = inter::root::<A>(&inter, at)?;
        return inter::scatter(&inter, at, || Data::check(call, send_buffer), || Data::check(call, buffer));
    }
    let group = comm.collective();
    let at = root::<A>(&group, at)?;
    if group.me != at {
        let receive = Data::check(call, buffer)?;
        return run::scatter(&group, None::<&Data>, Some(&receive), at);
    }
    let receive = match in_place::<A>(buffer) {
        true => None,
        false => Some(Data::check(call, buffer)?),
    };
    let send = Data::check(call, send_buffer)?;
    if let Some(receive) = &receive {
        apart::from_blocks(&group, receive.buffer(), &send.blocks())?;
    }
    run::scatter(&group, Some(&send), receive.as_ref(), at)
}

/// `MPI_Scatterv`.
pub fn scatterv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    send_counts: Array<'_, C>,
    send_displacements: Array<'_, C::Displacement>,
    send_type: A::Datatype,
    buffer: Buffer<A, C>,
    at: c_int,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    if let Some(inter) = comm.inter() {
        let at = inter::root::<A>(&inter, at)?;
        return inter::scatter(
            &inter,
            at,
            || {
                Varying::check::<A, C>(
                    call,
                    send_buffer,
                    send_counts,
                    send_displacements,
                    send_type,
                    inter.remote.len(),
                )
            },
            || Data::check(call, buffer),
        );
    }
    let group = comm.collective();
    let at = root::<A>(&group, at)?;
    if group.me != at {
        let receive = Data::check(call, buffer)?;
        return run::scatter(&group, None::<&Data>, Some(&receive), at);
    }
    let receive = match in_place::<A>(buffer) {
        true => None,
        false => Some(Data::check(call, buffer)?),
    };
    let send =
        Varying::check::<A, C>(call, send_buffer, send_counts, send_displacements, send_type, group.world.len())?;
    if let Some(receive) = &receive {
        apart::from_blocks(&group, receive.buffer(), &send.blocks())?;
    }
    run::scatter(&group, Some(&send), receive.as_ref(), at)
}

/// `MPI_Allgather`.
#[inline(always)]
pub fn allgather<A: Abi, C: Count>(
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
        return inter::allgather(&inter, send, &receive);
    }
    let group = comm.collective();
    if let Some(send) = &send {
        apart::from_blocks(&group, send.buffer(), &receive.blocks())?;
    }
    run::allgather(&group, send.as_ref(), &receive)
}

/// `MPI_Allgatherv`.
pub fn allgatherv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Buffer<A, C>,
    buffer: Base,
    counts: Array<'_, C>,
    displacements: Array<'_, C::Displacement>,
    datatype: A::Datatype,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let send = match in_place::<A>(send_buffer) {
        true => None,
        false => Some(Data::check(call, send_buffer)?),
    };
    let receive = Varying::check::<A, C>(call, buffer, counts, displacements, datatype, comm.peers().size() as usize)?;
    if let Some(inter) = comm.inter() {
        return inter::allgather(&inter, send, &receive);
    }
    let group = comm.collective();
    if let Some(send) = &send {
        apart::from_blocks(&group, send.buffer(), &receive.blocks())?;
    }
    run::allgather(&group, send.as_ref(), &receive)
}

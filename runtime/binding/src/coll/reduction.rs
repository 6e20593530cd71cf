//! Collectives that reduce (MPI-4.1 sections 6.9 to 6.11).

use super::equal::{self, Listeners};
use super::operands::{Operands, Role};
use super::parts::root;
use super::{apart, inter, run};
use crate::arguments::{Call, Outcome, counts, only_intra};
use crate::data::Data;
use crate::op::BoundOp;
use crate::passed::{Array, Base, Buffer};
use cohort_abi::{Abi, Count, neutral};
use cohort_engine::coll::Scan;
use cohort_engine::coll::inter::Root;
use cohort_engine::op;
use core::ffi::c_int;

/// `MPI_Allreduce`.
#[inline(always)]
pub fn allreduce<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    buffer: Buffer<A, C>,
    op: A::Op,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let operands = match Operands::check(call, send_buffer, buffer, op, Role::Both) {
        Ok(operands) => operands,
        Err(why) => {
            let buffers = (send_buffer, buffer);
            return equal::instead(call, buffers, op, comm, Listeners::All, why);
        }
    };
    if let Some(inter) = comm.inter() {
        operands.out_of_place()?;
        return run::allreduce_between(&inter, &operands);
    }
    let (group, reduction) = (comm.collective(), operands.reduction());
    apart::operands(&group, &reduction, reduction.result().count())?;
    run::allreduce(&group, &operands)
}

/// `MPI_Reduce`.
#[inline(always)]
pub fn reduce<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    buffer: Buffer<A, C>,
    op: A::Op,
    at: c_int,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    if let Some(inter) = comm.inter() {
        let at = inter::root::<A>(&inter, at)?;
        let role = match at {
            Root::Beside => return Ok(()),
            Root::Here => Role::Receiver,
            Root::Remote(_) => Role::Contributor,
        };
        let operands = Operands::check(call, send_buffer, buffer, op, role)?;
        return run::reduce_between(&inter, &operands, at);
    }
    let group = comm.collective();
    let at = root::<A>(&group, at)?;
    let role = if group.me == at { Role::Both } else { Role::Contributor };
    let operands = match Operands::check(call, send_buffer, buffer, op, role) {
        Ok(operands) => operands,
        Err(why) => {
            let buffers = (send_buffer, buffer);
            return equal::instead(call, buffers, op, comm, Listeners::Root(at), why);
        }
    };
    if role == Role::Both {
        let reduction = operands.reduction();
        apart::operands(&group, &reduction, reduction.result().count())?;
    }
    run::reduce(&group, &operands, at)
}

/// `MPI_Scan`.
pub fn scan<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    buffer: Buffer<A, C>,
    op: A::Op,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    only_intra(comm)?;
    let group = comm.collective();
    let operands = Operands::check(call, send_buffer, buffer, op, Role::Both)?;
    let reduction = operands.reduction();
    apart::operands(&group, &reduction, reduction.result().count())?;
    run::scan(&group, &operands, Scan::Inclusive)
}

/// `MPI_Exscan`.
pub fn exscan<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    buffer: Buffer<A, C>,
    op: A::Op,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    only_intra(comm)?;
    let group = comm.collective();
    let operands = Operands::check(call, send_buffer, buffer, op, Role::Both)?;
    let reduction = operands.reduction();
    apart::operands(&group, &reduction, reduction.result().count())?;
    run::scan(&group, &operands, Scan::Exclusive)
}

/// `MPI_Reduce_scatter`.
pub fn reduce_scatter<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    buffer: Base,
    lengths: Array<'_, C>,
    datatype: A::Datatype,
    op: A::Op,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let group = comm.collective();
    let lengths = counts(lengths, group.world.len())?;
    let total = lengths.iter().try_fold(0_i64, |sum, &count| sum.checked_add(count));
    let all = Buffer { base: buffer, count: total.ok_or(neutral::ERR_COUNT)?, datatype };
    let operands = Operands::check(call, send_buffer, all, op, Role::Both)?;
    if let Some(inter) = comm.inter() {
        operands.out_of_place()?;
        return run::reduce_scatter_between(&inter, &operands, &lengths);
    }
    apart::scattered(&group, &operands.reduction(), &lengths)?;
    run::reduce_scatter(&group, &operands, &lengths)
}

/// `MPI_Reduce_scatter_block`.
pub fn reduce_scatter_block<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Base,
    buffer: Buffer<A, C>,
    op: A::Op,
    comm: A::Comm,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let group = comm.collective();
    let elements = call.count(buffer.count)?;
    let lengths = alloc::vec![elements; group.world.len()];
    let total = elements.checked_mul(lengths.len() as i64);
    let all = buffer.with_count(total.ok_or(neutral::ERR_COUNT)?);
    let operands = Operands::check(call, send_buffer, all, op, Role::Both)?;
    if let Some(inter) = comm.inter() {
        operands.out_of_place()?;
        return run::reduce_scatter_between(&inter, &operands, &lengths);
    }
    apart::scattered(&group, &operands.reduction(), &lengths)?;
    run::reduce_scatter(&group, &operands, &lengths)
}

/// `MPI_Reduce_local`.
pub fn reduce_local<A: Abi, C: Count>(call: &Call<'_, A>, input: Base, inout: Buffer<A, C>, op: A::Op) -> Outcome<()> {
    let op = BoundOp::new(call, op, inout.datatype)?;
    let input = Data::check(call, inout.at(input))?;
    let inout = Data::check(call, inout)?;
    op.check(input.datatype())?;
    let (from, to) = (input.buffer(), inout.buffer());
    if call.checks() {
        apart::buffers(from, to)?;
    }
    // SAFETY: both buffers are checked arguments of this call.
    let known = unsafe { op::reduce(op.as_op(), from.base(), to.base(), to.count(), input.datatype()) };
    if known { Ok(()) } else { Err(neutral::ERR_OP.into()) }
}

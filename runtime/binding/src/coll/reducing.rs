//! Collectives that reduce (MPI-4.1 sections 6.9 to 6.11).

use super::blocking::Blocking;
use super::described::{Allreduce, Reduce, ReduceScatter, Scanned};
use super::forms::Form;
use super::nonblocking::Nonblocking;
use super::operands::{Operands, Role};
use super::parts::in_place;
use super::persistent::Persistent;
use super::root::{NOBODY, is_root, root};
use super::{apart, equal};
use crate::arguments::{Call, Comm, Numbers, Outcome, counts, only_intra};
use crate::data::Data;
use crate::op::BoundOp;
use cohort_abi::parameters::{Array, Base, Buffer, Out};
use cohort_abi::{Abi, Count, neutral};
use cohort_engine::coll::Scan;
use cohort_engine::op;
use core::ffi::c_int;

/// Operands of which every member has one, and gets a result; between groups never in place.
#[inline(always)]
fn both<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    send_buffer: Base,
    buffer: Buffer<A, impl Count>,
    op: A::Op,
    role: Role,
) -> Outcome<Operands<A>> {
    let operands = Operands::check(call, send_buffer, buffer, op, role)?;
    if comm.is_inter() {
        operands.out_of_place()?;
    }
    Ok(operands)
}

/// A scan, of which there is one in one group only.
#[inline(always)]
fn scanning<A: Abi>(
    (call, comm, form): (&Call<'_, A>, &Comm, impl Form),
    send_buffer: Base,
    buffer: Buffer<A, impl Count>,
    op: A::Op,
    kind: Scan,
) -> Outcome<()> {
    only_intra(comm)?;
    let role = match kind {
        // The first member gets nothing, so its result may be NULL. In place it has its operand there.
        Scan::Exclusive if comm.me() == 0 && !in_place::<A>(send_buffer) => Role::Contributor,
        _ => Role::Both,
    };
    let operands = both(call, comm, send_buffer, buffer, op, role)?;
    form.with(Scanned { operands, kind })
}

/// A reduce-scatter with so many elements for each member.
#[inline(always)]
fn sharing<A: Abi>(
    (call, comm, form): (&Call<'_, A>, &Comm, impl Form),
    counts: Numbers,
    send_buffer: Base,
    (base, datatype): (Base, A::Datatype),
    op: A::Op,
) -> Outcome<()> {
    let total = counts.iter().try_fold(0_i64, |sum, &count| sum.checked_add(count));
    let all = Buffer { base, count: total.ok_or(neutral::ERR_COUNT)?, datatype };
    let own = counts.get(comm.me() as usize).copied().unwrap_or(0);
    let operands = both(call, comm, send_buffer, all, op, Role::Sharer(own))?;
    form.with(ReduceScatter { operands, counts })
}

forms! {
    "Reduce" reduce ireduce reduce_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
        at: c_int,
    )
    = |call, comm, form| {
        let root = root::<A>(comm, at)?;
        let role = match is_root(comm, root) {
            _ if root == NOBODY => return form.beside(),
            true if comm.is_inter() => Role::Receiver,
            true => Role::Both,
            false => Role::Contributor,
        };
        match Operands::check(call, send_buffer, buffer, op, role) {
            Ok(operands) => form.with(Reduce { operands, root }),
            Err(why) => form.refused(why, |why| {
                equal::instead(call, (send_buffer, buffer), op, comm, Some(root), why)
            }),
        }
    };

    "Allreduce" allreduce iallreduce allreduce_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
    )
    = |call, comm, form| match both(call, comm, send_buffer, buffer, op, Role::Both) {
        Ok(operands) => form.with(Allreduce { operands }),
        Err(why) => form.refused(why, |why| {
            equal::instead(call, (send_buffer, buffer), op, comm, None, why)
        }),
    };

    "Scan" scan iscan scan_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
    )
    = |call, comm, form| scanning((call, comm, form), send_buffer, buffer, op, Scan::Inclusive);

    "Exscan" exscan iexscan exscan_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
    )
    = |call, comm, form| scanning((call, comm, form), send_buffer, buffer, op, Scan::Exclusive);

    "Reduce_scatter" reduce_scatter ireduce_scatter reduce_scatter_init
    <C>(
        send_buffer: Base,
        buffer: Base,
        lengths: Array<'_, C>,
        datatype: A::Datatype,
        op: A::Op,
    )
    = |call, comm, form| {
        let counts = counts(lengths, comm.size() as usize)?;
        sharing((call, comm, form), counts, send_buffer, (buffer, datatype), op)
    };

    "Reduce_scatter_block" reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
    )
    = |call, comm, form| {
        let counts = Numbers::from_elem(call.count(buffer.count)?, comm.size() as usize);
        sharing((call, comm, form), counts, send_buffer, (buffer.base, buffer.datatype), op)
    };
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

//! Collectives that reduce, nonblocking and persistent (MPI-4.1 sections 6.12 and 6.13).

use super::super::operands::{Operands, Role as Buffers};
use super::{Arguments, Role};
use crate::arguments::{Call, Comm, Outcome, counts, only_intra};
use crate::passed::{Array, Base, Buffer, Out};
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, neutral};
use cohort_engine::coll::Scan;
use core::ffi::c_int;

/// Operands of which every member has one, and gets a result; between groups never in place.
fn both<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    send_buffer: Base,
    buffer: Buffer<A, impl Count>,
    op: A::Op,
) -> Outcome<Operands<A>> {
    let operands = Operands::check(call, send_buffer, buffer, op, Buffers::Both)?;
    match comm.inter() {
        Some(_) => operands.out_of_place().map(|()| operands),
        None => Ok(operands),
    }
}

/// The shares of a reduce-scatter, and the elements of all of them.
fn scattered<A: Abi>(lengths: Vec<i64>, operands: impl FnOnce(i64) -> Outcome<Operands<A>>) -> Outcome<Arguments<A>> {
    let total = lengths.iter().try_fold(0_i64, |sum, &count| sum.checked_add(count));
    Ok(Arguments::ReduceScatter { operands: operands(total.ok_or(neutral::ERR_COUNT)?)?, counts: lengths })
}

forms! {
    "MPI_Ireduce" "MPI_Reduce_init"
    ireduce reduce_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
        at: c_int,
    )
    = |call, comm| Role::check::<A>(comm, at).and_then(|(root, role)| {
        let role = match role {
            Role::Root if comm.is_inter() => Buffers::Receiver,
            Role::Root => Buffers::Both,
            Role::Other => Buffers::Contributor,
            Role::Beside => return Ok(Arguments::BESIDE),
        };
        let operands = Operands::check(call, send_buffer, buffer, op, role)?;
        Ok(Arguments::Reduce { operands, root })
    });

    "MPI_Iallreduce" "MPI_Allreduce_init"
    iallreduce allreduce_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
    )
    = |call, comm| both(call, comm, send_buffer, buffer, op).map(Arguments::Allreduce);

    "MPI_Iscan" "MPI_Scan_init"
    iscan scan_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
    )
    = |call, comm| only_intra(comm).and_then(|()| {
        let operands = both(call, comm, send_buffer, buffer, op)?;
        Ok(Arguments::Scan { operands, kind: Scan::Inclusive })
    });

    "MPI_Iexscan" "MPI_Exscan_init"
    iexscan exscan_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
    )
    = |call, comm| only_intra(comm).and_then(|()| {
        let operands = both(call, comm, send_buffer, buffer, op)?;
        Ok(Arguments::Scan { operands, kind: Scan::Exclusive })
    });

    "MPI_Ireduce_scatter" "MPI_Reduce_scatter_init"
    ireduce_scatter reduce_scatter_init
    <C>(
        send_buffer: Base,
        buffer: Base,
        lengths: Array<'_, C>,
        datatype: A::Datatype,
        op: A::Op,
    )
    = |call, comm| counts(lengths, comm.size() as usize).and_then(|lengths| {
        scattered(lengths, |count| {
            let all = Buffer { base: buffer, count, datatype };
            both(call, comm, send_buffer, all, op)
        })
    });

    "MPI_Ireduce_scatter_block" "MPI_Reduce_scatter_block_init"
    ireduce_scatter_block reduce_scatter_block_init
    <C>(
        send_buffer: Base,
        buffer: Buffer<A, C>,
        op: A::Op,
    )
    = |call, comm| call.count(buffer.count).and_then(|count| {
        scattered(alloc::vec![count; comm.size() as usize], |total| {
            both(call, comm, send_buffer, buffer.with_count(total), op)
        })
    });
}

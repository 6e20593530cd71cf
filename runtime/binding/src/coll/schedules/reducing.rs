//! Collectives that reduce, nonblocking and persistent (MPI-4.1 sections 6.12 and 6.13).

use super::super::parts::root;
use super::super::reduction::{Operands, Role};
use super::Arguments;
use crate::arguments::{Outcome, counts, on_comm};
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, neutral};
use cohort_engine::coll::Scan;
use core::ffi::{c_int, c_void};

/// The shares of a reduce-scatter, and the elements of all of them.
fn scattered<A: Abi>(
    lengths: Vec<i64>,
    operands: impl FnOnce(i64) -> Outcome<Operands<A>>,
) -> Outcome<Arguments<A>> {
    let total = lengths
        .iter()
        .try_fold(0_i64, |sum, &count| sum.checked_add(count));
    Ok(Arguments::ReduceScatter {
        operands: operands(total.ok_or(neutral::ERR_COUNT)?)?,
        counts: lengths,
    })
}

forms! {
    "MPI_Ireduce" "MPI_Reduce_init"
    ireduce reduce_init
    <C>(
        send_buffer: *const c_void,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
        op: A::Op,
        at: c_int,
    )
    = |call, comm| root::<A>(&comm.collective(), at).and_then(|root| {
        let role = match comm.me() == root {
            true => Role::Both,
            false => Role::Contributor,
        };
        let count = call.count(elements)?;
        let operands = Operands::check(call, send_buffer, buffer, count, datatype, op, role)?;
        Ok(Arguments::Reduce { operands, root })
    });

    "MPI_Iallreduce" "MPI_Allreduce_init"
    iallreduce allreduce_init
    <C>(
        send_buffer: *const c_void,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
        op: A::Op,
    )
    = |call, _comm| call.count(elements).and_then(|count| {
        Operands::check(call, send_buffer, buffer, count, datatype, op, Role::Both)
            .map(Arguments::Allreduce)
    });

    "MPI_Iscan" "MPI_Scan_init"
    iscan scan_init
    <C>(
        send_buffer: *const c_void,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
        op: A::Op,
    )
    = |call, _comm| call.count(elements).and_then(|count| {
        let operands =
            Operands::check(call, send_buffer, buffer, count, datatype, op, Role::Both)?;
        Ok(Arguments::Scan { operands, kind: Scan::Inclusive })
    });

    "MPI_Iexscan" "MPI_Exscan_init"
    iexscan exscan_init
    <C>(
        send_buffer: *const c_void,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
        op: A::Op,
    )
    = |call, _comm| call.count(elements).and_then(|count| {
        let operands =
            Operands::check(call, send_buffer, buffer, count, datatype, op, Role::Both)?;
        Ok(Arguments::Scan { operands, kind: Scan::Exclusive })
    });

    "MPI_Ireduce_scatter" "MPI_Reduce_scatter_init"
    ireduce_scatter reduce_scatter_init
    <C>(
        send_buffer: *const c_void,
        buffer: *mut c_void,
        lengths: *const C,
        datatype: A::Datatype,
        op: A::Op,
    )
    = |call, comm| counts(lengths, comm.size() as usize).and_then(|lengths| {
        scattered(lengths, |total| {
            Operands::check(call, send_buffer, buffer, total, datatype, op, Role::Both)
        })
    });

    "MPI_Ireduce_scatter_block" "MPI_Reduce_scatter_block_init"
    ireduce_scatter_block reduce_scatter_block_init
    <C>(
        send_buffer: *const c_void,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
        op: A::Op,
    )
    = |call, comm| call.count(elements).and_then(|count| {
        scattered(alloc::vec![count; comm.size() as usize], |total| {
            Operands::check(call, send_buffer, buffer, total, datatype, op, Role::Both)
        })
    });
}

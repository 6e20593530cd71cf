//! Collectives and operations.

use super::*;
use alloc::vec::Vec;
use cohort_abi::Constants;
use core::ptr::{null, null_mut, without_provenance_mut};

type Op = <Mpi5 as Abi>::Op;

fn in_place() -> *mut c_void {
    without_provenance_mut(<Mpi5 as Constants>::IN_PLACE)
}

fn sum() -> Op {
    Op::from_neutral((), neutral::handle::SUM)
}

#[test]
fn blocks_go_where_they_belong() {
    run(4, |program| {
        let me = program.rank;
        let mut all = [-1; 4];
        let (mine, target) = ((&raw const me).cast(), all.as_mut_ptr().cast::<c_void>());
        assert_eq!(mpi!(program, Allgather, mine, 1, int(), target, 1, int(), world()), 0);
        assert_eq!(all, [0, 1, 2, 3]);
        assert_eq!(mpi!(program, Barrier, world()), 0);
        let mut value = if me == 2 { 99 } else { 0 };
        assert_eq!(mpi!(program, Bcast, (&raw mut value).cast(), 1, int(), 2, world()), 0);
        assert_eq!(value, 99);
        let out: [c_int; 4] = core::array::from_fn(|to| me * 10 + to as c_int);
        let from = out.as_ptr().cast();
        assert_eq!(mpi!(program, Alltoall, from, 1, int(), target, 1, int(), world()), 0);
        assert_eq!(all, core::array::from_fn(|from| from as c_int * 10 + me));
    });
}

/// The root's own block stays in place, in reverse order.
#[test]
fn blocks_are_gathered_where_displacements_say() {
    run(4, |program| {
        let me = program.rank;
        let lengths = [1; 4];
        let places: [c_int; 4] = core::array::from_fn(|rank| 3 - rank as c_int);
        let mut all = [0, 0, 0, me];
        let send = if me == 0 { in_place() } else { (&raw const me).cast_mut().cast() };
        let target = all.as_mut_ptr().cast();
        let code = mpi!(program, Gatherv, send, 1, int(), target, lengths.as_ptr(), places.as_ptr(), int(), 0, world());
        assert_eq!(code, 0);
        assert!(me != 0 || all == [3, 2, 1, 0]);
        let code = mpi!(program, Bcast, target, 1, int(), 4, world());
        assert_eq!(code, neutral::ERR_ROOT);
    });
}

#[test]
fn predefined_operations_reduce() {
    run(3, |program| {
        let mut values = [program.rank, 10];
        let buffer = values.as_mut_ptr().cast::<c_void>();
        assert_eq!(mpi!(program, Allreduce, in_place(), buffer, 2, int(), sum(), world()), 0);
        assert_eq!(values, [3, 30]);
        let (one, mut prefix) = (1, 0);
        let (from, to) = ((&raw const one).cast(), (&raw mut prefix).cast());
        assert_eq!(mpi!(program, Scan, from, to, 1, int(), sum(), world()), 0);
        assert_eq!(prefix, program.rank + 1);
        let replace = Op::from_neutral((), neutral::handle::REPLACE);
        let float = Datatype::from_neutral((), neutral::handle::FLOAT);
        let band = Op::from_neutral((), neutral::handle::BAND);
        let code = mpi!(program, Allreduce, from, to, 1, int(), replace, world());
        assert_eq!(code, neutral::ERR_OP);
        let code = mpi!(program, Allreduce, from, to, 1, float, band, world());
        assert_eq!(code, neutral::ERR_OP);
        let code = mpi!(program, Reduce_local, from, to, 1, int(), sum());
        assert_eq!((code, prefix), (0, program.rank + 2));
    });
}

/// `b = a * 10 + b`, in order.
unsafe extern "C" fn digits(input: *mut c_void, inout: *mut c_void, length: *mut c_int, datatype: *mut Datatype) {
    // SAFETY: the runtime passes `length` ints.
    unsafe {
        assert!(*datatype == int());
        for at in 0..*length as usize {
            let (a, b) = (input.cast::<c_int>().add(at), inout.cast::<c_int>().add(at));
            *b += *a * 10;
        }
    }
}

#[test]
fn the_programs_operation_sees_its_own_handle() {
    run(2, |program| {
        let mut op = Op::from_neutral((), neutral::handle::OP_NULL);
        assert_eq!(mpi!(program, Op_create, Some(digits), 0, &mut op), 0);
        let mut commutes = -1;
        assert_eq!(mpi!(program, Op_commutative, op, &mut commutes), 0);
        assert_eq!(commutes, 0);
        let (mine, mut result) = (program.rank + 1, 0);
        let (from, to) = ((&raw const mine).cast(), (&raw mut result).cast());
        assert_eq!(mpi!(program, Allreduce, from, to, 1, int(), op, world()), 0);
        assert_eq!(result, 12);
        assert_eq!(mpi!(program, Op_free, &mut op), 0);
        assert!(op == Op::from_neutral((), neutral::handle::OP_NULL));
        let mut predefined = sum();
        assert_eq!(mpi!(program, Op_free, &mut predefined), neutral::ERR_OP);
        let code = mpi!(program, Op_create, None, 0, &mut op);
        assert_eq!(code, neutral::ERR_ARG);
    });
}

#[test]
fn nothing_can_be_exchanged() {
    run(2, |program| {
        let (from, to) = (null(), null_mut());
        assert_eq!(mpi!(program, Alltoall, from, 0, int(), to, 0, int(), world()), 0);
        assert_eq!(mpi!(program, Allreduce, from, to, 0, int(), sum(), world()), 0);
    });
}

/// Elements of an operation that is a pool.
const LONG: c_int = 20_000;

/// Starts the sum of `values` over all members, of elements of this type.
fn start_sum(program: Program, values: &mut [c_int], count: c_int, datatype: Datatype) -> Request {
    let mut request = null_request();
    let buffer = values.as_mut_ptr().cast();
    let (world, operation) = (world(), sum());
    let code = mpi!(program, Iallreduce, in_place(), buffer, count, datatype, operation, world, &mut request);
    assert_eq!(code, 0);
    request
}

/// Starts a broadcast of `values` from rank 0, of elements of this type.
fn start_bcast(program: Program, values: &mut [c_int], count: c_int, datatype: Datatype) -> Request {
    let mut request = null_request();
    let buffer = values.as_mut_ptr().cast();
    let code = mpi!(program, Ibcast, buffer, count, datatype, 0, world(), &mut request);
    assert_eq!(code, 0);
    request
}

#[test]
fn records_of_collectives_serve_again_and_old_handles_stay_dead() {
    run(3, |program| {
        let mut pair = int();
        assert_eq!(mpi!(program, Type_contiguous, 2, int(), &mut pair), 0);
        assert_eq!(mpi!(program, Type_commit, &mut pair), 0);
        let mut buffers = [const { Vec::new() }; 12];
        for round in 0..40 {
            // At times more than are kept, of predefined types and others.
            let some = 1 + round % buffers.len();
            let mut requests: Vec<Request> = (0..some)
                .map(|at| {
                    let values = &mut buffers[at];
                    values.clear();
                    values.resize(LONG as usize, (program.rank + 1) * (at + round) as c_int);
                    match (at + round) % 4 {
                        0 => start_bcast(program, values, LONG / 2, pair),
                        1 => start_bcast(program, values, LONG, int()),
                        _ => start_sum(program, values, LONG, int()),
                    }
                })
                .collect();
            let mut stale = requests[0];
            if round % 2 == 0 {
                let (count, list) = (some as c_int, requests.as_mut_ptr());
                assert_eq!(mpi!(program, Waitall, count, list, null_mut()), 0);
            }
            for request in &mut requests {
                let mut flag = 0;
                while flag == 0 {
                    assert_eq!(mpi!(program, Test, request, &mut flag, null_mut()), 0);
                }
                assert!(*request == null_request());
            }
            assert_eq!(mpi!(program, Wait, &mut stale, null_mut()), neutral::ERR_REQUEST);
            for (at, values) in buffers.iter().take(some).enumerate() {
                let expected = match (at + round) % 4 {
                    0 | 1 => at + round,
                    _ => 6 * (at + round),
                };
                assert!(values.iter().all(|&it| it as usize == expected), "{round} {at}");
            }
        }
        assert_eq!(mpi!(program, Type_free, &mut pair), 0);
    });
}

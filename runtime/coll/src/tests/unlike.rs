//! Allreduces among nodes whose members give operands of different lengths, in a wrong program: nobody waits for ever,
//! and nothing is left behind that the next operation could take for its own.

use super::data::{double, int};
use super::{on_crowded_nodes, on_nodes};
use crate::{Call, Group, Reduction, allreduce, start};
use cohort_core::EngineError;
use cohort_core::Status;
use cohort_core::wait::{self, WaitKind};
use cohort_datatype::op::{Op, PredefinedOp};
use cohort_datatype::{Buffer, TypeRef};
use std::vec;
use std::vec::Vec;

/// Elements on both sides of where the way of two and of three members changes, and shares of others' operands.
const COUNTS: [usize; 15] = [0, 1, 2, 100, 455, 456, 1024, 1025, 2048, 2049, 2731, 4096, 4097, 8192, 60_000];

/// The same of four and of eight on nodes that share too few CPUs.
const COUNTS_CROWDED: [usize; 14] = [0, 1, 2, 256, 512, 513, 1024, 2048, 2049, 4103, 4104, 8195, 8196, 16_384];

fn reduction<'a>(memory: &mut [i32], datatype: &'a TypeRef) -> Reduction<'a> {
    Reduction {
        input: None,
        // SAFETY: the test's own memory, which stays until the operation is over.
        result: unsafe { Buffer::new(memory.as_mut_ptr().cast(), memory.len() as u64, datatype) },
        op: Op::Predefined(PredefinedOp::Sum),
    }
}

/// Whether an allreduce of so many elements hears that others have another number.
fn is_refused(group: &Group<'_>, count: usize, blocks: bool) -> bool {
    let (datatype, mut memory) = (int(), vec![1; count]);
    let reduction = reduction(&mut memory, &datatype);
    if blocks {
        return match allreduce(group, &reduction) {
            Ok(()) => false,
            Err(EngineError::Truncated { .. }) => true,
            Err(error) => panic!("{error:?}"),
        };
    }
    // SAFETY: the memory lives until the request is complete.
    let request = unsafe { start(group, &Call::Allreduce { reduction }) }.expect("memory");
    wait::until(group.owner, WaitKind::Request, || request.is_complete());
    let error = request.status().error;
    request.release(&mut group.rank().enter());
    assert!([Status::SUCCESS, Status::TRUNCATE].contains(&error));
    error == Status::TRUNCATE
}

/// The counts of the members of one operation after the other: all pairs, in turn between all neighbours.
fn counts_of(size: usize, counts: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let all = (0..counts.len()).flat_map(|one| (0..counts.len()).map(move |other| (one, other)));
    all.map(move |(one, other)| {
        let mut those = vec![counts[one]; size];
        those[(one + other) % size] = counts[other];
        those
    })
}

fn disagree(size: usize, blocks: bool, is_crowded: bool) {
    let nodes: Vec<_> = (0..size as u32).map(|rank| vec![rank]).collect();
    let all = |group: &Group<'_>| {
        for counts in counts_of(size, if is_crowded { &COUNTS_CROWDED } else { &COUNTS }) {
            let own = counts[group.me as usize];
            let is_refused = is_refused(group, own, blocks);
            let agree = counts.iter().all(|&count| count == own);
            // Of two long ones with equal shares only some hear of it.
            let are_long = counts.iter().all(|count| 4 * count * size > 32 << 10);
            // And of none at all where others double, who stop when they have seen that.
            let is_none = is_crowded && own == 0;
            assert!(is_refused != agree || (are_long || is_none) && !is_refused, "{counts:?}");
            let (datatype, mut memory) = (int(), vec![group.me as i32 + 1; 3]);
            allreduce(group, &reduction(&mut memory, &datatype)).expect("the group still works");
            assert_eq!(memory, [(size * (size + 1) / 2) as i32; 3], "{counts:?}");
        }
    };
    match is_crowded {
        true => on_crowded_nodes(&nodes, all),
        false => on_nodes(&nodes, all),
    }
}

#[test]
fn members_whose_operands_are_unlike_get_through() {
    for size in [2, 3, 5] {
        disagree(size, true, false);
    }
}

#[test]
fn members_that_do_not_wait_for_them_get_through_too() {
    for size in [2, 3] {
        disagree(size, false, false);
    }
}

#[test]
fn members_on_crowded_nodes_get_through_too() {
    for (size, blocks) in [(4, true), (8, true), (4, false)] {
        disagree(size, blocks, true);
    }
}

/// Operands of as many bytes, whose elements are of another size, on one node.
#[test]
fn elements_of_another_size_are_told_and_not_folded() {
    on_nodes(&[vec![0, 1], vec![2]], |group| {
        let (ints, doubles) = (int(), double());
        let mut memory = vec![1; 4];
        let datatype = if group.me == 1 { &doubles } else { &ints };
        let count = 16 / datatype.size() as u64;
        // SAFETY: the memory lives until the request is complete.
        let result = unsafe { Buffer::new(memory.as_mut_ptr().cast(), count, datatype) };
        let reduction = Reduction { input: None, result, op: Op::Predefined(PredefinedOp::Sum) };
        // SAFETY: as above.
        let request = unsafe { start(group, &Call::Allreduce { reduction }) }.expect("memory");
        wait::until(group.owner, WaitKind::Request, || request.is_complete());
        let error = request.status().error;
        request.release(&mut group.rank().enter());
        assert!(error == Status::TRUNCATE || group.me == 2, "{error}");
        let mut memory = vec![group.me as i32 + 1; 3];
        allreduce(group, &self::reduction(&mut memory, &ints)).expect("the group still works");
        assert_eq!(memory, [6; 3]);
    });
}

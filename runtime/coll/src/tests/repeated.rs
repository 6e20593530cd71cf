//! Small persistent collectives, which go on at a board: members run ahead and lag behind, and results are those of
//! each start.

use super::data::{Random, double};
use super::on_node;
use crate::{Call, Group, Reduction, Repeated};
use cohort_base::settings::{Settings, WaitMode};
use cohort_core::node::Node;
use cohort_core::wait::{self, WaitKind};
use cohort_datatype::Buffer;
use cohort_datatype::op::{Op, PredefinedOp};
use core::time::Duration;
use std::thread;
use std::vec::Vec;

const STARTS: usize = 400;

fn await_end(group: &Group<'_>, operation: &Repeated) {
    wait::until(group.owner, WaitKind::Request, || operation.is_complete());
    operation.end(|request| request.release(&mut group.rank().enter()));
}

/// What `member` gives in a start.
fn given(member: usize, start: usize) -> [f64; 2] {
    [member as f64 + start as f64 / 8.0, (member * start) as f64]
}

fn folded(op: PredefinedOp, start: usize, size: usize) -> [f64; 2] {
    let all = (0..size).map(|member| given(member, start));
    let fold = |at: usize| {
        let values: Vec<f64> = all.clone().map(|it| it[at]).collect();
        let each = values.into_iter();
        match op {
            PredefinedOp::Max => each.reduce(f64::max),
            _ => each.rev().reduce(|right, left| left + right),
        }
    };
    [fold(0), fold(1)].map(|it| it.expect("members"))
}

/// Starts a barrier, a broadcast, a reduction in place to the last member, and one to all, again and again.
fn take_part(group: &Group<'_>) {
    let (me, size) = (group.me as usize, group.world.len());
    let datatype = double();
    let mut delay = Random::new(me as u64 + 5);
    let operations: Vec<_> = (0..4).map(|_| Repeated::open(group).expect("an operation")).collect();
    let (root, last) = (1 % size as u32, size as u32 - 1);
    let (mut sent, mut reduced, mut operand, mut all) = ([0.0; 2], [0.0; 2], [0.0; 2], [0.0; 2]);
    let (sent_at, reduced_at): (*mut [f64; 2], *mut [f64; 2]) = (&raw mut sent, &raw mut reduced);
    let (operand_at, all_at): (*mut [f64; 2], *mut [f64; 2]) = (&raw mut operand, &raw mut all);
    // SAFETY: the test's own memory, which stays until the operation is over.
    let buffer = |base: *mut [f64; 2]| unsafe { Buffer::new(base.cast(), 2, &datatype) };
    let call = |which: usize| match which {
        0 => Call::Barrier,
        1 => Call::Bcast { buffer: buffer(sent_at), root },
        2 => Call::Reduce {
            reduction: Reduction {
                input: (me as u32 != last).then_some(reduced_at.cast_const().cast()),
                result: buffer(reduced_at),
                op: Op::Predefined(PredefinedOp::Max),
            },
            root: last,
        },
        _ => Call::Allreduce {
            reduction: Reduction {
                input: Some(operand_at.cast_const().cast()),
                result: buffer(all_at),
                op: Op::Predefined(PredefinedOp::Sum),
            },
        },
    };
    for start in 0..STARTS {
        let own = given(me, start);
        // SAFETY: nothing is under way, and the buffers live to the end of the function.
        unsafe {
            sent_at.write(if me as u32 == root { own } else { [-1.0; 2] });
            reduced_at.write(own);
            operand_at.write(own);
        }
        match delay.below(40) {
            0 => thread::sleep(Duration::from_micros(300)),
            1..5 => thread::yield_now(),
            _ => {}
        }
        for at in 0..4 {
            let which = (at + me) % 4;
            // SAFETY: as above.
            unsafe { operations[which].start(group.owner, || call(which)) }.expect("a start");
        }
        for at in 0..4 {
            await_end(group, &operations[(3 * at + me) % 4]);
        }
        // SAFETY: all is complete.
        unsafe {
            assert_eq!(sent_at.read(), given(root as usize, start));
            assert_eq!(all_at.read(), folded(PredefinedOp::Sum, start, size));
            if me as u32 == last {
                assert_eq!(reduced_at.read(), folded(PredefinedOp::Max, start, size));
            }
        }
    }
}

#[test]
fn small_ones_start_again_and_again() {
    for size in [2, 3, 6] {
        for wait in [WaitMode::Auto, WaitMode::Park] {
            let settings = Settings { wait, ..Settings::DEFAULT };
            on_node(Node::for_test_with(size, settings), take_part);
        }
    }
}

/// Members that give different operations, or different amounts, never come to a board.
#[test]
fn members_that_are_not_alike_go_on_with_pools() {
    on_node(Node::for_test(2), |group| {
        let datatype = double();
        let operation = Repeated::open(group).expect("an operation");
        let mut data = [1.0_f64, 2.0, 3.0];
        let count = 1 + u64::from(group.me);
        for _ in 0..3 {
            // SAFETY: the test's own memory, which stays until the operation is over.
            let buffer = unsafe { Buffer::new(data.as_mut_ptr().cast(), count, &datatype) };
            // SAFETY: live buffers.
            unsafe { operation.start(group.owner, || Call::Bcast { buffer, root: 1 }) }.expect("a start");
            wait::until(group.owner, WaitKind::Request, || operation.is_complete());
            let is_cut = operation.status().error == cohort_core::Status::TRUNCATE;
            assert_eq!(is_cut, group.me == 0);
            operation.end(|request| request.release(&mut group.rank().enter()));
        }
    });
}

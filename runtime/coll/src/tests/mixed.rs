//! Long random sequences of different collectives, with members that run ahead and lag behind.

use super::data::{Random, int};
use super::on_node;
use crate::{Blocks, Group, Reduction, allgather, allreduce, barrier, bcast, gather, scatter};
use cohort_base::settings::{Settings, WaitMode};
use cohort_core::node::Node;
use cohort_datatype::op::{Op, PredefinedOp};
use cohort_datatype::{Buffer, TypeRef};
use core::time::Duration;
use std::thread;
use std::vec;
use std::vec::Vec;

const ROUNDS: usize = 3000;

/// What `member` contributes to a round.
fn value(member: usize, round: usize, at: usize) -> i32 {
    (member * 1_000_003 + round * 101 + at) as i32
}

fn values(member: usize, round: usize, count: usize) -> Vec<i32> {
    (0..count).map(|at| value(member, round, at)).collect()
}

fn buffer_of<'a>(ints: &mut [i32], datatype: &'a TypeRef) -> Buffer<'a> {
    // SAFETY: the test's own memory, which stays until the operation is over.
    unsafe { Buffer::new(ints.as_mut_ptr().cast(), ints.len() as u64, datatype) }
}

fn blocks<'a>(ints: &mut [i32], members: usize, datatype: &'a TypeRef) -> Blocks<'a> {
    let count = (ints.len() / members) as u64;
    // SAFETY: the test's own memory, which stays until the operation is over.
    unsafe { Blocks::equal(Buffer::new(ints.as_mut_ptr().cast(), count, datatype)) }
}

/// One collective, chosen by numbers that are the same at all members.
fn one(group: &Group<'_>, kind: u64, root: usize, count: usize, round: usize) {
    let (me, size) = (group.me as usize, group.world.len());
    let datatype = &int();
    let everyone: Vec<_> = (0..size).flat_map(|member| values(member, round, count)).collect();
    let mut own = values(me, round, count);
    let at_root = me == root;
    // SAFETY: live buffers, in every arm.
    unsafe {
        match kind {
            0 => barrier(group).expect("barrier"),
            1 | 2 => {
                let mut buffer = if at_root { own } else { vec![0; count] };
                bcast(group, buffer_of(&mut buffer, datatype), root as u32).expect("bcast");
                assert_eq!(buffer, values(root, round, count));
            }
            3 | 4 => {
                let mut all = vec![0; if at_root { size * count } else { 0 }];
                let target = at_root.then(|| blocks(&mut all, size, datatype));
                let own = Some(buffer_of(&mut own, datatype));
                gather(group, own, target, root as u32).expect("gather");
                assert!(!at_root || all == everyone);
            }
            5 => {
                let mut all = if at_root { everyone.clone() } else { Vec::new() };
                let source = at_root.then(|| blocks(&mut all, size, datatype));
                let mut part = vec![0; count];
                let target = Some(buffer_of(&mut part, datatype));
                scatter(group, source, target, root as u32).expect("scatter");
                assert_eq!(part, own);
            }
            6 => {
                let mut all = vec![0; size * count];
                let target = blocks(&mut all, size, datatype);
                allgather(group, Some(buffer_of(&mut own, datatype)), target).expect("allgather");
                assert_eq!(all, everyone);
            }
            _ => {
                let op = Op::Predefined(PredefinedOp::Max);
                let output = own.as_mut_ptr().cast();
                let call = Reduction { input: None, result: Buffer::new(output, count as u64, datatype), op };
                allreduce(group, &call).expect("allreduce");
                assert_eq!(own, values(size - 1, round, count));
            }
        }
    }
}

/// Runs the sequence on `size` ranks; some of the time a member is late enough for the
/// others to park.
fn run(size: u32, wait: WaitMode) {
    let node = Node::for_test_with(size, Settings { wait, ..Settings::DEFAULT });
    on_node(node, |group| {
        let mut common = Random::new(size.into());
        let mut delay = Random::new(1000 + u64::from(group.me));
        for round in 0..ROUNDS {
            let (kind, root) = (common.below(8), common.below(size.into()) as usize);
            let count = [1, 1, 1, 50, 300][common.below(5) as usize];
            match delay.below(400) {
                0 => thread::sleep(Duration::from_micros(300)),
                1..20 => thread::yield_now(),
                _ => {}
            }
            one(group, kind, root, count, round);
        }
    });
}

#[test]
fn members_run_ahead_and_lag_behind() {
    for size in [2, 3, 6] {
        run(size, WaitMode::Auto);
        run(size, WaitMode::Park);
    }
}

/// One kind of collective after the other, of data beside entries: who only gives gets as far ahead as there are
/// entries, where ranks outnumber CPUs and where they do not, and others read what was meant for them.
#[test]
fn members_that_only_give_run_far_ahead() {
    for wait in [WaitMode::Auto, WaitMode::Park] {
        for size in [2, 6] {
            let node = Node::for_test_with(size, Settings { wait, ..Settings::DEFAULT });
            on_node(node, |group| {
                let mut common = Random::new(7);
                for kind in [1, 3, 5] {
                    for round in 0..600 {
                        let count = [61, 100, 256, 1024, 1025][common.below(5) as usize];
                        let takes = (group.me == 0) == (kind == 3);
                        if takes && round % 150 == 10 {
                            thread::sleep(Duration::from_millis(2));
                        }
                        one(group, kind, 0, count, round);
                    }
                }
            });
        }
    }
}

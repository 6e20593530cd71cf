//! Allgathers among so many nodes that blocks go from one to the next.

use super::data::{Ints, Random, int_layouts};
use super::moving::{Varying, block_of, message, some_count};
use super::on_nodes;
use crate::{Blocks, Call, Group, Table, allgather, start};
use cohort_core::wait::{self, WaitKind};
use std::vec::Vec;

/// Nodes with one member each, with consecutive ones, and with members in no order.
fn placements() -> [Vec<Vec<u32>>; 3] {
    let alone = (0..13).rev().map(|member| [member].into()).collect();
    let consecutive = (0..9).map(|node| (node * 2..node * 2 + 2).collect());
    let mixed = (0..11).map(|node| (0..22).filter(|it| it * 7 % 11 == node).collect());
    [alone, consecutive.collect(), mixed.collect()]
}

/// The blocking form and the nonblocking one.
unsafe fn run(group: &Group<'_>, call: &Call<'_>, blocks: bool) {
    let Call::Allgather { send, receive } = *call else {
        panic!("an allgather");
    };
    // SAFETY: the caller's promise.
    unsafe {
        if blocks {
            return allgather(group, send, receive).expect("allgather");
        }
        let request = start(group, call).expect("it starts");
        let is_complete = || request.is_complete();
        wait::until(group.owner, WaitKind::Request, is_complete);
        assert_eq!(request.status().error, 0);
        request.release(&mut group.rank().enter());
    }
}

#[test]
fn equal_blocks_of_many_nodes() {
    for nodes in placements() {
        let size = nodes.concat().len();
        on_nodes(&nodes, |group| {
            let me = group.me as usize;
            let expected = |count: u64, round: usize| -> Vec<i32> {
                let of = |member| message(member, 0, 2 * count as usize, round);
                (0..size).flat_map(of).collect()
            };
            for round in 0..12 {
                let count = [1, 30, 700][round % 3];
                let layouts = int_layouts(2);
                let (here, there) = (&layouts[(me + round) % 3], &layouts[round / 3 % 3]);
                let mut own = Ints::filled(here, count, &message(me, 0, 2 * count as usize, round));
                let mut all = Ints::empty(there, count * size as u64);
                // SAFETY: the test's own memory, which stays until the operation is over.
                let first = unsafe { cohort_datatype::Buffer::new(all.base(), count, there) };
                // SAFETY: the test's own memory, which stays until the operation is over.
                let (receive, mut send) = (unsafe { Blocks::equal(first) }, Some(own.buffer()));
                if round % 2 == 1 {
                    crate::data::copy_whole(receive.block(me), own.buffer()).expect("as long");
                    send = None;
                }
                let call = Call::Allgather { send, receive };
                // SAFETY: live buffers until it is over.
                unsafe { run(group, &call, round % 4 < 2) };
                assert_eq!(all.ints(), expected(count, round), "round {round}");
            }
        });
    }
}

#[test]
fn varying_blocks_of_many_nodes() {
    for nodes in placements() {
        let size = nodes.concat().len();
        on_nodes(&nodes, |group| {
            let (me, mut random) = (group.me as usize, Random::new(13));
            for round in 0..12 {
                let counts = (0..size).map(|_| some_count(&mut random) as i64).collect();
                let shape = Varying::of(counts);
                let layouts = int_layouts(2);
                let (here, there) = (&layouts[round % 3], &layouts[(me + round) % 3]);
                let count = shape.counts[me] as u64;
                let mut own = Ints::filled(here, count, &message(me, 0, 2 * count as usize, round));
                let mut all = Ints::empty(there, shape.total);
                let base = all.base();
                let call = Call::Allgather { send: Some(own.buffer()), receive: shape.blocks(base, there) };
                // SAFETY: live buffers until it is over.
                unsafe { run(group, &call, round % 2 == 0) };
                for member in 0..size {
                    let length = 2 * shape.counts[member] as usize;
                    let block = block_of(&mut all, &shape, there, member);
                    assert_eq!(block, message(member, 0, length, round), "round {round}");
                }
            }
        });
    }
}

#[test]
fn members_of_a_node_look_at_one_table() {
    let few = [[[3, 0].into(), [1].into(), [4, 2, 5].into()].into()];
    for nodes in placements().into_iter().chain(few) {
        on_nodes(&nodes, |group| {
            let say = |member: u32, round: i32| [member as i32 * 100 + round, -1, member as i32];
            for round in 0..20 {
                let size = group.world.len() as u32;
                let check = |all: &[[i32; 3]]| {
                    let expected: Vec<_> = (0..size).map(|member| say(member, round)).collect();
                    assert_eq!(all, expected);
                    all.len()
                };
                let length = crate::view(group, Table::Object, say(group.me, round), check);
                assert_eq!(length, Ok(size as usize));
            }
        });
    }
}

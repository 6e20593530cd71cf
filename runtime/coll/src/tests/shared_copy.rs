//! Gathers of long data, which the members copy with the root.

use super::data::int;
use super::on_node;
use crate::{Blocks, gather};
use cohort_core::EngineError;
use cohort_core::node::Node;
use cohort_datatype::Buffer;
use core::time::Duration;
use std::thread;
use std::vec;
use std::vec::Vec;

/// Elements of a block: some pieces, the last of which is not whole.
const COUNT: usize = 100_001;

fn given(member: usize, round: usize) -> Vec<i32> {
    (0..COUNT as i32).map(|at| at * 7 + (member * 1000 + round) as i32).collect()
}

/// One that is late in some rounds.
fn be_late(me: u32, round: usize) {
    if round % 3 == me as usize {
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn long_blocks_come_whole_whoever_is_late() {
    on_node(Node::for_test(2), |group| {
        let (me, datatype) = (group.me as usize, int());
        for round in 0..12 {
            be_late(group.me, round);
            let (root, mut send) = (round % 2, given(me, round));
            // SAFETY: the test's own memory, which stays until the operation is over.
            let send = unsafe { Buffer::new(send.as_mut_ptr().cast(), COUNT as u64, &datatype) };
            let mut all = vec![-1; 2 * COUNT];
            // SAFETY: the test's own memory, which stays until the operation is over.
            let blocks = unsafe { Buffer::new(all.as_mut_ptr().cast(), COUNT as u64, &datatype) };
            // SAFETY: the test's own memory, which stays until the operation is over.
            let receive = (me == root).then_some(unsafe { Blocks::equal(blocks) });
            let result = gather(group, Some(send), receive, root as u32);
            assert!(result.is_ok());
            if me == root {
                let whole = [given(0, round), given(1, round)].concat();
                assert!(all == whole, "round {round}");
            }
        }
    });
}

#[test]
fn a_long_block_without_room_fails_at_the_root_alone() {
    on_node(Node::for_test(2), |group| {
        let (me, datatype) = (group.me as usize, int());
        let room = COUNT / 2;
        let mut send = given(me, 0);
        let count = if me == 0 { room } else { COUNT };
        // SAFETY: the test's own memory, which stays until the operation is over.
        let send = unsafe { Buffer::new(send.as_mut_ptr().cast(), count as u64, &datatype) };
        let mut all = vec![-1; 2 * room + 1];
        // SAFETY: the test's own memory, which stays until the operation is over.
        let blocks = unsafe { Buffer::new(all.as_mut_ptr().cast(), room as u64, &datatype) };
        // SAFETY: the test's own memory, which stays until the operation is over.
        let receive = (me == 0).then_some(unsafe { Blocks::equal(blocks) });
        let result = gather(group, Some(send), receive, 0);
        if me == 0 {
            assert!(matches!(result, Err(EngineError::Truncated { .. })));
            assert_eq!(all[room..2 * room], given(1, 0)[..room]);
            assert_eq!(all[2 * room], -1);
        } else {
            assert!(result.is_ok());
        }
    });
}

//! Communicators that are made from others and from groups have the members that were asked for.

use super::{group_of, is_even, members, on_nodes, roll_call};
use crate::comm::Comm;
use crate::errhandler::Errhandler;
use crate::room::Room;
use cohort_abi::neutral;
use cohort_engine::coll::Table;
use cohort_engine::wait::{WaitKind, until};
use std::vec;
use std::vec::Vec;

/// Ranks in no order.
const NODES: [&[u32]; 3] = [&[4, 1, 6], &[0, 5], &[2, 3]];

/// Checks who the members are, and frees the communicator.
#[track_caller]
fn check(comm: &Comm, expected: &[i32]) {
    assert_eq!(members(comm), expected);
    assert_eq!(roll_call(comm), expected);
    assert_eq!(expected[comm.me() as usize], comm.rank().world_rank() as i32);
    comm.release();
}

#[test]
fn duplicates_have_the_members_of_the_parent() {
    on_nodes(
        &NODES,
        |_| {},
        |world| {
            let all: Vec<i32> = (0..7).collect();
            let first = world.duplicate(0, Room::There).expect("a duplicate");
            let second = first.duplicate(0, Room::There).expect("a duplicate");
            check(&second, &all);
            let (third, numbering) = first.duplicate_at_once(0, Room::There).expect("a duplicate");
            until(world.owner(), WaitKind::Request, || numbering.is_complete());
            numbering.settle(&third).expect("a number");
            numbering.release(&mut world.rank().enter());
            assert_eq!(first.compare(&third), neutral::CONGRUENT);
            check(&third, &all);
            check(&first, &all);
        },
    );
}

/// Disjoint groups use one number at the same time, and two of them have members on one node.
#[test]
fn parts_with_one_number_do_not_meet() {
    on_nodes(
        &NODES,
        |_| {},
        |world| {
            let me = world.me() as i32;
            for _ in 0..20 {
                let part = world.split(me % 2, -me, Room::There).expect("a part").expect("a color");
                let expected = if me % 2 == 0 { vec![6, 4, 2, 0] } else { vec![5, 3, 1] };
                let own = part.duplicate(0, Room::There).expect("a duplicate");
                check(&own, &expected);
                check(&part, &expected);
            }
            let color = if me < 5 { 3 } else { neutral::UNDEFINED };
            match world.split(color, 0, Room::There).expect("a part") {
                Some(part) => check(&part, &[0, 1, 2, 3, 4]),
                None => assert!(me >= 5),
            }
        },
    );
}

#[test]
fn disjoint_groups_become_communicators_in_one_call() {
    on_nodes(
        &NODES,
        |_| {},
        |world| {
            let (even, odd) = (vec![6, 0, 2, 4], vec![5, 1]);
            let mine = if is_even(world.rank()) { &even } else { &odd };
            let made = world.create(&group_of(world, mine), Room::There).expect("groups of it");
            match made {
                Some(made) => check(&made, mine),
                None => assert_eq!(world.me(), 3),
            }
        },
    );
}

#[test]
fn groups_become_communicators_without_the_others() {
    on_nodes(
        &NODES,
        |_| {},
        |world| {
            let ranks = [5, 6, 0, 3, 2];
            if !ranks.contains(&(world.me() as i32)) {
                return;
            }
            let group = group_of(world, &ranks);
            for turn in 0..5 {
                let made = world.create_group(&group, turn, Room::There).expect("a communicator");
                check(&made, &ranks);
            }
            let from_group = Comm::from_group(world.rank(), &group, "some", Errhandler::Return, Room::There);
            check(&from_group.expect("a communicator"), &ranks);
        },
    );
}

#[test]
fn the_ranks_of_a_node_share_one_list() {
    on_nodes(
        &NODES,
        |_| {},
        |world| {
            let copy = world.duplicate(0, Room::There).expect("a duplicate");
            let address = copy.group().members().as_ptr();
            assert_eq!(address, world.group().members().as_ptr());
            let part = world.split(0, 0, Room::There).expect("a part").expect("a color");
            let address = part.group().members().as_ptr().addr() as i64;
            let told = part.allgather(Table::Object, [address as i32, (address >> 32) as i32]).expect("an allgather");
            for (member, &[low, high]) in told.iter().enumerate() {
                let peer = part.group().members()[member];
                let is_same = address == i64::from(high) << 32 | i64::from(low.cast_unsigned());
                let is_here = world.rank().node().local(peer).is_some();
                assert_eq!(is_same, is_here);
            }
            part.release();
            copy.release();
        },
    );
}

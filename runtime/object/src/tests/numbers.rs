//! A node that has given out all its numbers says so, at all members.

use super::{group_of, on_nodes, roll_call};
use crate::Outcome;
use crate::comm::Comm;
use crate::errhandler::Errhandler;
use crate::info::Info;
use crate::ports;
use crate::room::Room;
use crate::win::{Flavor, Win};
use cohort_abi::neutral;
use cohort_base::spawn::SHARED_NUMBERS;
use cohort_engine::rma::Part;
use cohort_engine::wait::{WaitKind, until};
use std::string::String;
use std::sync::OnceLock;
use std::thread;
use std::vec::Vec;

#[track_caller]
fn assert_exhausted<T>(made: Outcome<T>) {
    let error = made.err().expect("no number is left");
    assert_eq!(error.code(), neutral::ERR_OTHER);
    assert!(error.detail().contains("no number is left"), "{error:?}");
}

fn window(comm: &Comm) -> Outcome<Win> {
    let part = Part { base: 0, size: 0, unit: 1 };
    Win::make(comm, Flavor::Dynamic, Ok((part, Info::default())), Room::There)
}

#[test]
fn all_members_learn_that_no_number_is_left() {
    const NODES: [&[u32]; 2] = [&[0, 3], &[1, 2]];
    let short = |node: &'static cohort_engine::Node| {
        if node.boot().node == 0 {
            node.leave_contexts(3);
        }
    };
    on_nodes(&NODES, short, |world| {
        let rank = world.rank();
        let copies: Vec<Comm> = (0..2).map(|_| world.duplicate(0, Room::There).expect("a number is left")).collect();
        let last = world.split(0, 0, Room::There).expect("a number is left");
        let last = last.expect("a color");
        assert_eq!(roll_call(&last), [0, 1, 2, 3]);
        assert_exhausted(world.duplicate(0, Room::There));
        assert_exhausted(world.split(0, 0, Room::There));
        assert_exhausted(world.create(world.group(), Room::There));
        assert_exhausted(world.create_group(world.group(), 3, Room::There));
        let from_group = Comm::from_group(rank, world.group(), "tag", Errhandler::Return, Room::There);
        assert_exhausted(from_group);
        assert_exhausted(window(world));
        let (copy, numbering) = world.duplicate_at_once(0, Room::There).expect("it fails later");
        until(world.owner(), WaitKind::Request, || numbering.is_complete());
        assert_exhausted(numbering.settle(&copy));
        numbering.release(&mut rank.enter());
        // A number of the other node's is as good.
        let others_first = group_of(world, &[1, 0, 2, 3]);
        let made = world.create_group(&others_first, 4, Room::There).expect("a number");
        assert_eq!(roll_call(&made), [1, 0, 2, 3]);
        // The communicators that there are work as before.
        for comm in copies.iter().chain([&last, &made]) {
            assert_eq!(roll_call(comm).len(), 4);
            comm.release();
        }
    });
}

#[test]
fn numbers_end_before_they_come_again() {
    const NODES: [&[u32]; 3] = [&[0], &[1], &[2]];
    on_nodes(
        &NODES,
        |_| {},
        |world| {
            let node = world.rank().node();
            node.leave_contexts(2);
            let drawn: Vec<_> = (0..2).filter_map(|_| node.next_context()).collect();
            assert!(drawn.len() == 2 && drawn[0] < drawn[1] && drawn[1] < SHARED_NUMBERS);
            assert!(drawn[1] > SHARED_NUMBERS - 10, "nearly all were used");
            for _ in 0..3 {
                assert_eq!(node.next_context(), None);
            }
        },
    );
}

#[test]
fn who_accepts_without_a_number_takes_no_call() {
    let name: OnceLock<String> = OnceLock::new();
    on_nodes(
        &[&[0, 1]],
        |_| {},
        |world| {
            let (rank, me) = (world.rank(), world.rank().world_rank());
            let own = group_of(world, &[me as i32]);
            let alone = Comm::from_group(rank, &own, "alone", Errhandler::Return, Room::There).expect("a number");
            let seen = ports::calls();
            if me == 0 {
                name.get_or_init(|| ports::open(rank).expect("a port"));
            }
            roll_call(world);
            let port = name.get().expect("it is open");
            if me == 0 {
                while ports::calls() == seen {
                    thread::yield_now();
                }
                // One for the own group, none for both.
                rank.node().leave_contexts(1);
                assert_exhausted(alone.accept(0, port, Room::There));
                ports::close(rank, port).expect("it is open");
            } else {
                let refused = alone.call_at(0, port, Room::There).err().expect("nobody accepts");
                assert_eq!(refused.code(), neutral::ERR_PORT);
            }
            roll_call(world);
            alone.release();
        },
    );
}

//! Threads play the ranks of a node and compare every collective with a sequential reference.

mod data;
mod mixed;
mod moving;
mod reducing;

use super::*;
use crate::node::Node;
use std::thread;
use std::vec::Vec;

/// Runs `work` at every member of a fresh communicator of `size` ranks; returns the results
/// in rank order.
pub(super) fn on_ranks<R: Send>(size: u32, work: impl Fn(&Group<'_>) -> R + Sync) -> Vec<R> {
    on_node(Node::for_test(size), work)
}

/// [`on_ranks`] on all ranks of `node`.
pub(super) fn on_node<R: Send>(
    node: &'static Node,
    work: impl Fn(&Group<'_>) -> R + Sync,
) -> Vec<R> {
    const CONTEXT: u32 = 1;
    let size = node.size();
    let world: Vec<_> = (0..size).map(Peer::local).collect();
    thread::scope(|scope| {
        let start = |me| {
            let (world, work) = (&world, &work);
            scope.spawn(move || {
                let shared = node.comm_shared(CONTEXT, size);
                let rank = node.rank(me);
                let group = Group {
                    rank,
                    context: CONTEXT,
                    me,
                    world,
                    shared,
                };
                let result = work(&group);
                shared.leave();
                result
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a rank panicked"))
            .collect()
    })
}

#[test]
fn nobody_leaves_a_barrier_before_everybody_arrived() {
    use core::sync::atomic::{AtomicU32, Ordering};
    for (size, rounds) in [(1, 500), (2, 500), (3, 500), (8, 500), (70, 50)] {
        let arrived = AtomicU32::new(0);
        on_ranks(size, |group| {
            for round in 1..=rounds {
                arrived.fetch_add(1, Ordering::SeqCst);
                barrier(group).expect("barrier");
                assert!(arrived.load(Ordering::SeqCst) >= round * size);
            }
        });
        assert_eq!(arrived.into_inner(), rounds * size);
    }
}

#[test]
fn the_last_member_that_leaves_frees_the_shared_part() {
    let node = Node::for_test(2);
    let first = node.comm_shared(7, 2);
    first.leave();
    let second = node.comm_shared(7, 2);
    assert!(core::ptr::eq(first, second), "one member is still missing");
    second.leave();
    let other = node.comm_shared(9, 3);
    assert_eq!(other.size(), 3);
    (0..3).for_each(|_| other.leave());
}

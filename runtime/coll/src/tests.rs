//! Threads play the ranks of a node and compare every collective with a sequential reference.

mod data;
mod displaced;
mod large;
mod mixed;
mod moving;
mod pools;
mod ranks;
mod reducing;
mod repeated;
mod scanning;
mod shared_copy;
mod sleeping;
mod small;
mod small_moving;
mod spreading;
mod stolen;
mod unlike;
mod varying;

use super::*;
use cohort_base::Peer;
use cohort_base::settings::{Algorithm, Algorithms, Doubling, Settings};
use cohort_core::Owner;
use cohort_core::node::Node;
use cohort_fabric_fake::Options;
use ranks::Ranks;
pub(crate) use sleeping::Probe;
use std::thread;
use std::vec;
use std::vec::Vec;

/// Runs `work` at every member of a fresh communicator of `size` ranks; returns the results
/// in rank order. Runs it with each algorithm, and with the members on several nodes.
pub(super) fn on_ranks<R: Send>(size: u32, work: impl Fn(&Group<'_>) -> R + Sync) -> Vec<R> {
    for algorithm in [Algorithm::Rounds, Algorithm::Schedule] {
        let settings = Settings { collectives: Algorithms::all(algorithm), ..Settings::DEFAULT };
        on_node(Node::for_test_with(size, settings), &work);
    }
    let results = on_node(Node::for_test(size), &work);
    for placement in placements(size) {
        on_nodes(&placement, &work);
    }
    if (4..=8).contains(&size) {
        on_crowded_nodes(&four_nodes(size), &work);
    }
    results
}

/// Some ways to place `size` ranks on nodes: blocks of different lengths, and mixed up.
fn placements(size: u32) -> Vec<Vec<Vec<u32>>> {
    match size {
        0 | 1 | 9.. => vec![],
        2 => vec![vec![vec![1], vec![0]]],
        _ => {
            let (third, end) = (size / 3, size - 1);
            let blocks = vec![(0..third).collect(), (third..end).collect(), vec![end]];
            let odd = (0..size).filter(|rank| rank % 2 == 1).collect();
            let even = (0..size).rev().filter(|rank| rank % 2 == 0).collect();
            let mut all = vec![blocks, vec![odd, even]];
            if size > 5 {
                let each = (2..5).map(|rank| vec![rank]);
                all.push([vec![0, 1]].into_iter().chain(each).chain([(5..size).collect()]).collect());
            }
            all
        }
    }
}

/// `size` ranks on four nodes, in order, and eight on one each.
fn four_nodes(size: u32) -> Vec<Vec<u32>> {
    let last = if size < 8 { 4 } else { 8 };
    (0..last).map(|node| if node + 1 < last { vec![node] } else { (node..size).collect() }).collect()
}

/// [`on_ranks`] with member *m* at the place where `nodes` has *m*.
fn on_nodes<R: Send>(nodes: &[Vec<u32>], work: impl Fn(&Group<'_>) -> R + Sync) {
    on_nodes_with(nodes, Settings::DEFAULT, work);
}

/// [`on_nodes`] as if they shared too few CPUs.
fn on_crowded_nodes<R: Send>(nodes: &[Vec<u32>], work: impl Fn(&Group<'_>) -> R + Sync) {
    on_nodes_with(nodes, Settings { doubling: Doubling::On, ..Settings::DEFAULT }, work);
}

fn on_nodes_with<R: Send>(nodes: &[Vec<u32>], settings: Settings, work: impl Fn(&Group<'_>) -> R + Sync) {
    const CONTEXT: u32 = 1;
    let nodes: Vec<&[u32]> = nodes.iter().map(Vec::as_slice).collect();
    let ranks = Ranks::new(&nodes, Options::default(), settings);
    ranks.run(|rank| {
        let node = rank.node();
        let world: Vec<_> = (0..node.world_size()).map(|it| node.peer(it)).collect();
        let owner = Owner::for_test(rank);
        let shared = CommShared::of(owner, CONTEXT, &world);
        let group = Group { owner, context: CONTEXT, me: rank.world_rank(), world: &world, shared };
        work(&group);
        barrier(&group).expect("barrier");
        shared.leave(owner);
    });
}

/// [`on_ranks`] on all ranks of `node`.
pub(super) fn on_node<R: Send>(node: &'static Node, work: impl Fn(&Group<'_>) -> R + Sync) -> Vec<R> {
    const CONTEXT: u32 = 1;
    let size = node.size();
    let world: Vec<_> = (0..size).map(Peer::local).collect();
    thread::scope(|scope| {
        let start = |me| {
            let (world, work) = (&world, &work);
            scope.spawn(move || {
                let owner = Owner::for_test(node.rank(me));
                let shared = CommShared::of(owner, CONTEXT, world);
                let group = Group { owner, context: CONTEXT, me, world, shared };
                let result = work(&group);
                shared.leave(owner);
                result
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
    })
}

#[test]
fn nobody_leaves_a_barrier_before_everybody_arrived() {
    use core::sync::atomic::{AtomicU32, Ordering};
    for (size, rounds) in [(1, 500), (2, 500), (3, 500), (8, 500), (70, 50)] {
        let arrived = AtomicU32::new(0);
        on_node(Node::for_test(size), |group| {
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
    let owner = Owner::for_test(Node::for_test(2).rank(0));
    let members = [0, 1, 2].map(Peer::local);
    let first = CommShared::of(owner, 7, &members[..2]);
    first.leave(owner);
    let second = CommShared::of(owner, 7, &members[..2]);
    assert!(core::ptr::eq(first, second), "one member is still missing");
    second.leave(owner);
    let other = CommShared::of(owner, 9, &members);
    assert_eq!(other.size(), 3);
    (0..3).for_each(|_| other.leave(owner));
}

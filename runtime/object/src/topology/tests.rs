//! Grids, graphs and their placement.

use super::placement::{assign, assign_nearer, graph_order, grid_order, shares};
use super::{Cart, Graph, Neighbour};
use alloc::vec;
use alloc::vec::Vec;
use cohort_abi::neutral;

fn grid(dims: &[i32], periods: &[bool]) -> Cart {
    Cart::new(dims.to_vec(), periods.to_vec(), 1 << 20).expect("valid extents")
}

#[test]
fn ranks_and_coordinates_are_inverse() {
    let cart = grid(&[3, 4, 2], &[false, true, false]);
    for rank in 0..cart.cells() {
        assert_eq!(cart.rank(&cart.coords(rank)), Ok(rank));
    }
    assert_eq!(cart.rank(&[1, -1, 0]), cart.rank(&[1, 3, 0]));
    assert_eq!(cart.rank(&[3, 0, 0]), Err(neutral::ERR_ARG.into()));
    assert_eq!(cart.beside(0, 0, -1), None);
    assert_eq!(cart.beside(0, 1, -i64::from(i32::MIN)), cart.rank(&[0, 0, 0]).ok(), "a ring of four");
    assert_eq!(cart.beside(0, 1, -1), cart.rank(&[0, 3, 0]).ok());
}

#[test]
fn grids_larger_than_the_communicator_are_refused() {
    let make = |dims: &[i32]| Cart::new(dims.to_vec(), vec![false; dims.len()], 6).map(|_| ());
    assert_eq!(make(&[2, 3]), Ok(()));
    assert_eq!(make(&[]), Ok(()));
    assert_eq!(make(&[2, 4]), Err(neutral::ERR_DIMS.into()));
    assert_eq!(make(&[0, 4]), Err(neutral::ERR_DIMS.into()));
    assert_eq!(make(&[i32::MAX, i32::MAX, i32::MAX]), Err(neutral::ERR_DIMS.into()));
}

#[test]
fn parts_of_a_grid_have_their_own_numbers() {
    let cart = grid(&[2, 3, 4], &[true, false, true]);
    let (part, color, rank) = cart.sub(&[true, false, true], cart.rank(&[1, 2, 3]).unwrap());
    assert_eq!(part, grid(&[2, 4], &[true, true]));
    assert_eq!((color, rank), (2, 7));
    let (point, color, rank) = cart.sub(&[false; 3], 17);
    assert_eq!((point.cells(), color, rank), (1, 17, 0));
}

#[test]
fn what_is_sent_down_arrives_from_above() {
    let lanes = super::Topology::Cart(grid(&[2], &[true])).neighbours(0);
    let other = |lane| Neighbour { rank: Some(1), lane };
    assert_eq!(lanes.destinations, [other(0), other(1)]);
    assert_eq!(lanes.sources, [other(1), other(0)]);
}

#[test]
fn graphs_are_checked() {
    let make = |index: &[i32], edges: &[i32]| Graph::new(index.to_vec(), edges.to_vec(), 4).map(|_| ());
    assert_eq!(make(&[1, 2], &[1, 0]), Ok(()));
    assert_eq!(make(&[2, 1], &[1]), Err(neutral::ERR_ARG.into()));
    assert_eq!(make(&[1, 2], &[1, 2]), Err(neutral::ERR_ARG.into()));
    assert_eq!(make(&[1, 2], &[1]), Err(neutral::ERR_ARG.into()));
    assert_eq!(make(&[0; 5], &[]), Err(neutral::ERR_ARG.into()));
}

/// Edges of the grid whose ends run in different parts of the machine.
fn cut_edges(cart: &Cart, assigned: &[usize], part: impl Fn(usize) -> u32) -> usize {
    let cells = 0..cart.cells();
    let pairs = cells.flat_map(|cell| {
        let dimensions = 0..cart.dims().len();
        dimensions.filter_map(move |it| Some((cell, cart.beside(cell, it, 1)?)))
    });
    let apart = |cell: u32| part(assigned[cell as usize]);
    pairs.filter(|&(a, b)| apart(a) != apart(b)).count()
}

#[test]
fn blocks_of_a_grid_share_a_cache() {
    // 16 processes dealt round robin to 4 caches.
    let sites: Vec<_> = (0..16).map(|process| [0, 0, process % 4, process]).collect();
    assert_eq!(shares(&sites), [4]);
    let cart = grid(&[4, 4], &[false, false]);
    let placed = assign(&grid_order(&cart, &shares(&sites)), &sites);
    let mut sorted = placed.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..16), "everyone has one place");
    let cache = |process: usize| sites[process][2];
    let identity: Vec<usize> = (0..16).collect();
    assert_eq!(cut_edges(&cart, &identity, cache), 12);
    // Four blocks of 2 x 2 have 8 edges between them, the least possible.
    assert_eq!(cut_edges(&cart, &placed, cache), 8);
}

#[test]
fn blocks_nest_by_cache_and_numa_node() {
    let sites: Vec<_> = (0..16_u32).map(|process| [0, process / 8, process / 2, process]).collect();
    assert_eq!(shares(&sites), [2, 8]);
    let cart = grid(&[2, 8], &[false, false]);
    let placed = assign(&grid_order(&cart, &shares(&sites)), &sites);
    assert_eq!(cut_edges(&cart, &placed, |process: usize| sites[process][1]), 2);
}

#[test]
fn unequal_shares_and_odd_grids_still_give_everyone_one_place() {
    let sites: Vec<_> = (0..7).map(|process| [0, process / 3, 0, process]).collect();
    let cart = grid(&[3, 2], &[false, true]);
    let mut placed = assign(&grid_order(&cart, &shares(&sites)), &sites);
    placed.sort_unstable();
    assert!(placed.into_iter().eq(0..6));
}

#[test]
fn processes_stay_as_they_are_unless_neighbours_come_nearer() {
    // A ring of four.
    let ring = Graph::new(vec![2, 4, 6, 8], vec![1, 3, 0, 2, 1, 3, 0, 2], 4).expect("a ring");
    let edges = || (0..4).flat_map(|node| [(node, (node + 1) % 4), ((node + 1) % 4, node)]);
    let order = graph_order(&ring);
    let on = |nodes: [u32; 4]| nodes.map(|node| [node, 0, 0, 0]);
    for nodes in [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]] {
        let placed = assign_nearer(&order, &on(nodes), edges());
        assert_eq!(placed, [0, 1, 2, 3], "{nodes:?}");
    }
    // Dealt round robin, each edge leaves a node; two of them do with two neighbours on each.
    let sites = on([0, 1, 0, 1]);
    let placed = assign_nearer(&order, &sites, edges());
    let leaves = |&(one, other): &(usize, usize)| sites[placed[one]] != sites[placed[other]];
    assert_eq!(edges().filter(leaves).count(), 4);
}

#[test]
fn nodes_of_a_graph_follow_their_neighbours() {
    // A ring through 0, 3, 1, 4, 2.
    let edges = [3, 2, 3, 4, 4, 0, 0, 1, 1, 2];
    let graph = Graph::new(vec![2, 4, 6, 8, 10], edges.to_vec(), 5).expect("a ring");
    assert_eq!(graph_order(&graph), [0, 3, 2, 1, 4]);
}

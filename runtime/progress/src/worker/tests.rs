use super::*;
use std::vec::Vec;

fn numbers(ranks: u32, workers: u32, placement: WorkerPlacement, numa: &[u32]) -> Vec<u32> {
    (0..ranks).map(|rank| number_for(rank, ranks, workers, placement, |id| numa[id as usize])).collect()
}

#[test]
fn ranks_are_dealt_out_in_their_order() {
    let numa = [0; 6];
    assert_eq!(numbers(6, 2, WorkerPlacement::Machine, &numa), [0, 0, 0, 1, 1, 1]);
    assert_eq!(numbers(3, 4, WorkerPlacement::Machine, &numa), [0, 1, 2]);
}

#[test]
fn workers_stay_on_their_numa_node() {
    let numa = [0, 0, 0, 1, 1, 1];
    assert_eq!(numbers(6, 2, WorkerPlacement::Numa, &numa), [0, 0, 0, 1, 1, 1]);
    assert_eq!(numbers(6, 4, WorkerPlacement::Numa, &numa), [0, 2, 0, 1, 3, 1]);
}

#[test]
fn one_worker_serves_several_numa_nodes_when_there_are_few() {
    let numa = [0, 1, 2, 0, 1, 2];
    assert_eq!(numbers(6, 1, WorkerPlacement::Numa, &numa), [0; 6]);
    let numbers = numbers(6, 2, WorkerPlacement::Numa, &numa);
    assert!(numbers.iter().all(|&number| number < 2));
}

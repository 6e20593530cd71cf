//! Victim orders on small made-up machines.

use super::*;

/// Eight CPUs: two per core, four per cache, NUMA nodes {0..4} and {4..8}.
fn machine() -> [CpuLocation; 8] {
    core::array::from_fn(|cpu| {
        let cpu = cpu as u32;
        CpuLocation { cpu, core: cpu / 2, l3: cpu / 4, numa: cpu / 4 }
    })
}

#[test]
fn nearer_ranks_come_first() {
    let mut storage = [0; 7];
    let order = build(2, 8, &machine(), |rank| rank as i32, Locality::Machine, &mut storage);
    assert_eq!(order.ranks, [3, 0, 1, 4, 5, 6, 7]);
    assert_eq!(order.ends, [1, 3, 3, 7]);
    assert_eq!((order.count(), order.count_near()), (7, 3));
}

#[test]
fn the_limit_cuts_far_ranks_off() {
    for (limit, count) in [(Locality::Core, 1), (Locality::L3, 3), (Locality::Numa, 3)] {
        let mut storage = [0; 7];
        let order = build(0, 8, &machine(), |rank| rank as i32, limit, &mut storage);
        assert_eq!(order.count(), count, "{limit:?}");
    }
}

#[test]
fn unbound_ranks_are_all_near_and_spread() {
    let mut storage = [0; 3];
    let order = build(1, 4, &machine(), |_| -1, Locality::Numa, &mut storage);
    assert_eq!((order.ranks, order.count_near()), (&[2, 3, 0][..], 3));
    let mut storage = [0; 3];
    assert_eq!(build(1, 4, &machine(), |_| -1, Locality::Core, &mut storage).count(), 0);
}

#[test]
fn a_cpu_that_is_not_in_the_table_counts_as_unbound() {
    let mut storage = [0; 1];
    let order = build(0, 2, &[], |rank| rank as i32, Locality::Machine, &mut storage);
    assert_eq!(order.count_near(), 1);
}

#[test]
fn every_round_visits_every_victim_and_rings_stay_in_order() {
    let mut storage = [0; 7];
    let order = build(2, 8, &machine(), |rank| rank as i32, Locality::Machine, &mut storage);
    for round in [0, 1, 2, 3, 50, u32::MAX] {
        let mut seen: [LocalRank; 7] = core::array::from_fn(|p| order.nth(p as u32, round));
        assert_eq!(seen[0], 3);
        assert!(seen[1..3].iter().all(|&rank| rank < 2));
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 3, 4, 5, 6, 7]);
    }
    assert_ne!(order.nth(3, 0), order.nth(3, 1), "rounds begin at different victims");
}

#[test]
fn a_single_rank_has_no_victims() {
    let order = build(0, 1, &[], |_| -1, Locality::Machine, &mut []);
    assert_eq!((order.count(), order.count_near()), (0, 0));
}

//! Which CPUs the ranks are bound to.
//!
//! Every rank is dealt a core, in the order of `--map-by`, and bound to what `--bind-to` says around
//! that core: the core itself, or all CPUs that share its cache, NUMA node or socket. With `PE=N` it is dealt N
//! cores of one unit of `--map-by`. Nodes of one job on the same machine take its cores one after the other.

use super::options::{Bind, Placement, Section};
use super::topology::{Cpu, Level, Topology};
use cohort_manager::Place;
use pip_ground::Refusal;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where one rank runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The first CPU of the core that the rank was dealt.
    pub cpu: u32,
    /// The CPUs that it may run on.
    pub cpus: Vec<u32>,
    /// What `--rank-by` deals rank numbers out over, where it is given.
    pub unit: Option<u32>,
}

impl Binding {
    /// For [`Binding::cpu`]: no core is the rank's own.
    pub const ANY: u32 = u32::MAX;
}

/// What the options bind ranks to; `None` when they are not bound.
#[must_use]
pub fn level(placement: &Placement) -> Option<Level> {
    let wanted = placement.map.is_some() || placement.first_cpu.is_some() || placement.cores.is_some();
    match placement.bind {
        Some(Bind::None) => None,
        Some(Bind::To(level)) => Some(level),
        None if placement.map == Some(Level::HwThread) => Some(Level::HwThread),
        None => wanted.then_some(Level::Core),
    }
}

/// How many ranks of a program run on this node.
///
/// # Errors
/// As [`Section::ranks_on`].
pub fn ranks_of(section: &Section, placement: &Placement, topology: &Topology, place: Place) -> Result<usize, Refusal> {
    match (placement.per_unit, placement.map, section.ranks.is_empty()) {
        (Some(each), Some(unit), true) => {
            let units: BTreeSet<u32> = topology.cpus.iter().map(|cpu| unit.of(cpu)).collect();
            Ok(each * units.len().max(1))
        }
        _ => section.ranks_on(place),
    }
}

/// Refuses more ranks than cores, for `--nooversubscribe`.
///
/// # Errors
/// There are more.
pub fn check_room(placement: &Placement, topology: &Topology, ranks: usize) -> Result<(), Refusal> {
    let room = cores(topology, Level::Core).len() / placement.cores.unwrap_or(1);
    match placement.oversubscribe {
        Some(false) if ranks > room => Err(Refusal::new(format!(
            "{ranks} ranks are more than the {room} that the cores of this node take; run fewer, or leave out \
             --nooversubscribe"
        ))),
        _ => Ok(()),
    }
}

/// The bindings that ranks take in turn, one for each core, or `None` when ranks are not bound: see
/// [`deal`].
///
/// # Errors
/// `-c` names a CPU that this job may not use, or the system does not tell which it may.
pub fn turns(placement: &Placement, topology: &Topology) -> Result<Option<Vec<Binding>>, Refusal> {
    let Some(level) = level(placement) else {
        return Ok(None);
    };
    if topology.cpus.is_empty() {
        return Err(Refusal::new("ranks cannot be bound: the system does not tell which CPUs this job may use"));
    }
    let smallest = match (level, placement.map) {
        (Level::HwThread, _) | (_, Some(Level::HwThread)) => Level::HwThread,
        _ => Level::Core,
    };
    let cores = cores(topology, smallest);
    let start = match placement.first_cpu {
        None => 0,
        Some(cpu) => core_of(cpu, &cores, topology)?,
    };
    let pieces = pieces(&cores, placement)?;
    let turn = pieces.iter().position(|piece| piece.contains(&start));
    let mut sharing: HashMap<u32, Vec<u32>> = HashMap::new();
    for cpu in &topology.cpus {
        sharing.entry(level.of(cpu)).or_default().push(cpu.place.cpu);
    }
    let of_piece = |piece: &Vec<usize>| {
        let first = &cores[piece[0]][0];
        let all = piece.iter().flat_map(|&core| &cores[core]);
        let wider: BTreeSet<u32> = all.flat_map(|cpu| sharing[&level.of(cpu)].iter().copied()).collect();
        Binding {
            cpu: first.place.cpu,
            cpus: wider.into_iter().collect(),
            unit: placement.rank_by.map(|unit| unit.of(first)),
        }
    };
    let turn = turn.unwrap_or(0);
    let pieces = pieces[turn..].iter().chain(&pieces[..turn]);
    Ok(Some(pieces.map(of_piece).collect()))
}

/// The cores that ranks are dealt, as indices: one each, or as many as `PE=N` says.
///
/// # Errors
/// No unit of `--map-by` has that many.
fn pieces(cores: &[Vec<Cpu>], placement: &Placement) -> Result<Vec<Vec<usize>>, Refusal> {
    let unit = match (placement.map, placement.per_unit) {
        // A piece may lie anywhere.
        (None | Some(Level::HwThread | Level::Core), None) => Level::Board,
        (map, _) => map.unwrap_or(Level::Core),
    };
    let each = placement.cores.unwrap_or(1);
    let mut units: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, core) in cores.iter().enumerate() {
        units.entry(unit.of(&core[0])).or_default().push(index);
    }
    // Pieces with their turn: one of each unit, or as many as `ppr:N` puts there before the next unit's.
    let mut keyed = Vec::new();
    for (number, unit) in units.values().enumerate() {
        let pieces = unit.chunks_exact(each).map(<[usize]>::to_vec);
        match placement.per_unit {
            None => keyed.extend(pieces.enumerate().map(|(turn, piece)| (turn, number, 0, piece))),
            Some(ranks) => {
                let pieces: Vec<_> = pieces.collect();
                let dealt = pieces.iter().cycle().take(ranks).cloned();
                keyed.extend(dealt.enumerate().map(|(turn, piece)| (0, number, turn, piece)));
            }
        }
    }
    if keyed.is_empty() {
        let most = units.values().map(Vec::len).max().unwrap_or(0);
        return Err(Refusal::new(format!(
            "PE={each}: the largest unit of --map-by that this job may use has {most} cores"
        )));
    }
    keyed.sort_unstable();
    Ok(keyed.into_iter().map(|(.., piece)| piece).collect())
}

/// The bindings of `ranks` ranks when `before` ranks of the same machine have taken theirs. With more
/// ranks than cores the turns begin anew.
#[must_use]
pub fn deal(turns: &[Binding], before: usize, ranks: usize) -> Vec<Binding> {
    let first = before % turns.len().max(1);
    let mut dealt: Vec<Binding> = turns.iter().cycle().skip(first).take(ranks).cloned().collect();
    // One of each unit in turn, in the order in which they were dealt.
    let mut taken: BTreeMap<Option<u32>, usize> = BTreeMap::new();
    dealt.sort_by_cached_key(|binding| {
        let turn = taken.entry(binding.unit).or_default();
        *turn += 1;
        match binding.unit {
            None => (0, None),
            unit => (*turn, unit),
        }
    });
    dealt
}

/// The index of the core that a CPU of `-c` belongs to.
fn core_of(cpu: u32, cores: &[Vec<Cpu>], topology: &Topology) -> Result<usize, Refusal> {
    let has = |core: &Vec<Cpu>| core.iter().any(|c| c.place.cpu == cpu);
    cores.iter().position(has).ok_or_else(|| {
        let usable: Vec<u32> = topology.cpus.iter().map(|cpu| cpu.place.cpu).collect();
        Refusal::new(format!("-c {cpu}: this job may not use that CPU; usable ones: {}", ranges(&usable)))
    })
}

/// CPUs grouped by core, or each for itself; cores that share a cache, a node or a socket are neighbours.
fn cores(topology: &Topology, smallest: Level) -> Vec<Vec<Cpu>> {
    let mut cores: BTreeMap<_, Vec<Cpu>> = BTreeMap::new();
    for cpu in &topology.cpus {
        let place = cpu.place;
        cores
            .entry((
                cpu.package,
                place.numa,
                place.l3,
                place.core,
                match smallest {
                    Level::HwThread => place.cpu,
                    _ => 0,
                },
            ))
            .or_default()
            .push(*cpu);
    }
    cores.into_values().collect()
}

/// Ascending numbers as the kernel writes lists: `0-3,8`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|&one, &next| one + 1 == next);
    let runs: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    runs.join(",")
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::large;
    use super::*;
    use cohort_base::boot::CpuLocation;

    /// Two sockets of two cores of two threads: CPU n and n + 4 share core n.
    fn machine() -> Topology {
        let cpu = |cpu: u32| {
            let core = cpu % 4;
            Cpu { place: CpuLocation { cpu, core, l3: core / 2, numa: core / 2 }, package: core / 2 }
        };
        Topology { cpus: (0..8).map(cpu).collect(), capacity: 8 }
    }

    fn bound(placement: &Placement, topology: &Topology, ranks: usize) -> Vec<Binding> {
        let turns = turns(placement, topology).expect("usable");
        deal(&turns.expect("bound"), 0, ranks)
    }

    fn firsts(placement: &Placement, topology: &Topology, ranks: usize) -> Vec<u32> {
        let bindings = bound(placement, topology, ranks);
        bindings.iter().map(|binding| binding.cpu).collect()
    }

    fn by(map: Level) -> Placement {
        Placement { map: Some(map), ..Placement::default() }
    }

    fn to(level: Level) -> Placement {
        Placement { bind: Some(Bind::To(level)), ..Placement::default() }
    }

    #[test]
    fn unbound_unless_asked() {
        let placement = Placement { bind: Some(Bind::None), map: Some(Level::Core), ..Placement::default() };
        for placement in [Placement::default(), placement] {
            assert_eq!(turns(&placement, &machine()).expect("usable"), None);
        }
    }

    #[test]
    fn ranks_take_cores_in_turn_with_both_threads() {
        let placement = to(Level::Core);
        assert_eq!(firsts(&placement, &machine(), 5), [0, 1, 2, 3, 0]);
        assert_eq!(bound(&placement, &machine(), 1)[0].cpus, [0, 4]);
    }

    #[test]
    fn a_second_node_of_the_machine_takes_the_cores_that_follow() {
        let turns = turns(&to(Level::Core), &machine()).expect("usable");
        let second = deal(&turns.expect("bound"), 3, 3);
        let cpus: Vec<u32> = second.iter().map(|binding| binding.cpu).collect();
        assert_eq!(cpus, [3, 0, 1]);
    }

    #[test]
    fn sockets_alternate() {
        for map in [Level::Socket, Level::Numa, Level::L3Cache] {
            assert_eq!(firsts(&by(map), &machine(), 4), [0, 2, 1, 3]);
        }
    }

    #[test]
    fn a_first_cpu_may_be_named_by_any_thread_of_its_core() {
        let placement = Placement { first_cpu: Some(6), ..Placement::default() };
        assert_eq!(firsts(&placement, &machine(), 3), [2, 3, 0]);
        let placement = Placement { first_cpu: Some(99), ..Placement::default() };
        let message = turns(&placement, &machine()).unwrap_err().to_string();
        assert!(message.contains("usable ones: 0-7"), "{message}");
    }

    #[test]
    fn ranks_go_round_caches_nodes_and_sockets_of_a_large_machine() {
        let large = large(0..128);
        let cores = [
            (Level::Core, [0, 1, 2, 3, 4]),
            (Level::L3Cache, [0, 4, 8, 12, 16]),
            (Level::Numa, [0, 8, 16, 24, 32]),
            (Level::Socket, [0, 32, 1, 33, 2]),
        ];
        for (map, expected) in cores {
            assert_eq!(firsts(&by(map), &large, 5), expected, "{map:?}");
            // Every core has a rank before one has two.
            let mut all = firsts(&by(map), &large, 64);
            all.sort_unstable();
            assert_eq!(all, (0..64).collect::<Vec<_>>(), "{map:?}");
            assert_eq!(firsts(&by(map), &large, 65)[64], 0, "{map:?}");
        }
    }

    #[test]
    fn ranks_may_have_all_cpus_that_share_a_cache_a_node_or_a_socket() {
        let large = large(0..128);
        let widths = [
            (Level::Core, "1,65"),
            (Level::L3Cache, "0-3,64-67"),
            (Level::Numa, "0-7,64-71"),
            (Level::Socket, "0-31,64-95"),
        ];
        for (level, expected) in widths {
            let second = &bound(&to(level), &large, 2)[1];
            assert_eq!((second.cpu, &*ranges(&second.cpus)), (1, expected));
        }
    }

    #[test]
    fn a_restricted_job_uses_what_it_may() {
        // One thread of a core, an odd end of a cache, all of another socket's node.
        let part = large([1, 7, 64, 65, 40, 41, 42, 43, 44, 45, 46, 47]);
        assert_eq!(firsts(&by(Level::Socket), &part, 4), [64, 40, 1, 41]);
        let numa = Placement { map: Some(Level::Numa), ..to(Level::Numa) };
        let lists: Vec<String> = bound(&numa, &part, 3).iter().map(|binding| ranges(&binding.cpus)).collect();
        assert_eq!(lists, ["1,7,64-65", "40-47", "1,7,64-65"]);
    }

    #[test]
    fn without_known_cpus_nothing_is_bound() {
        let message = turns(&to(Level::Numa), &large([])).unwrap_err();
        assert!(message.to_string().contains("cannot be bound"));
    }

    #[test]
    fn ranks_with_threads_get_cores_of_one_unit() {
        let placement = Placement { cores: Some(3), ..by(Level::L3Cache) };
        let large = large(0..128);
        let lists = |placement: &Placement, ranks| -> Vec<String> {
            let all = bound(placement, &large, ranks);
            all.iter().map(|binding| ranges(&binding.cpus)).collect()
        };
        assert_eq!(lists(&placement, 2), ["0-2,64-66", "4-6,68-70"]);
        let placement = Placement { cores: Some(3), ..Placement::default() };
        assert_eq!(lists(&placement, 2), ["0-2,64-66", "3-5,67-69"]);
        let placement = Placement { cores: Some(5), ..by(Level::L3Cache) };
        let message = turns(&placement, &large).unwrap_err().to_string();
        assert!(message.contains("PE=5") && message.contains("has 4 cores"), "{message}");
    }

    #[test]
    fn units_take_as_many_ranks_as_ppr_says() {
        let placement = Placement { per_unit: Some(2), ..by(Level::Socket) };
        let large = large(0..128);
        assert_eq!(firsts(&placement, &large, 4), [0, 1, 32, 33]);
        let cores = Placement { per_unit: Some(2), ..by(Level::Core) };
        assert_eq!(firsts(&cores, &large, 4), [0, 0, 1, 1]);
        let place = Place { index: 0, count: 1 };
        let section = Section::default();
        assert_eq!(ranks_of(&section, &placement, &large, place).expect("known"), 4);
    }

    #[test]
    fn ranks_are_numbered_over_units() {
        let placement = Placement { rank_by: Some(Level::Socket), per_unit: Some(2), ..by(Level::Socket) };
        assert_eq!(firsts(&placement, &large(0..128), 4), [0, 32, 1, 33]);
        let placement = Placement { rank_by: Some(Level::Core), ..by(Level::Socket) };
        assert_eq!(firsts(&placement, &large(0..128), 4), [0, 1, 32, 33]);
    }

    #[test]
    fn threads_of_a_core_may_have_a_rank_each() {
        let all = bound(&to(Level::HwThread), &large(0..128), 3);
        let lists: Vec<String> = all.iter().map(|binding| ranges(&binding.cpus)).collect();
        assert_eq!(lists, ["0", "64", "1"]);
        assert_eq!(bound(&to(Level::Board), &machine(), 1)[0].cpus.len(), 8);
    }

    #[test]
    fn more_ranks_than_cores_are_refused_on_request() {
        let placement = Placement { oversubscribe: Some(false), ..Placement::default() };
        check_room(&placement, &machine(), 4).expect("room");
        let message = check_room(&placement, &machine(), 5).unwrap_err().to_string();
        assert!(message.contains("--nooversubscribe"), "{message}");
    }
}

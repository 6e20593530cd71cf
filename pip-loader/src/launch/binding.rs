//! Which cores the ranks are bound to.

use super::Refusal;
use super::options::{Bind, Map, Options};
use super::topology::{Cpu, Topology};
use std::collections::BTreeMap;

/// CPUs that one rank may run on: the hardware threads of its core.
pub type Binding = Vec<u32>;

/// The binding of each rank, or `None` when ranks are not bound. Cores are used in turn
/// when there are more ranks than cores.
///
/// # Errors
/// `-c` names a CPU that this job may not use.
pub fn bind(
    options: &Options,
    topology: &Topology,
    ranks: usize,
) -> Result<Option<Vec<Binding>>, Refusal> {
    let wanted = options.map.is_some() || options.first_cpu.is_some();
    let bind = options
        .bind
        .unwrap_or(if wanted { Bind::Core } else { Bind::None });
    if bind == Bind::None {
        return Ok(None);
    }
    let cores = cores(topology);
    let start = match options.first_cpu {
        None => 0,
        Some(cpu) => cores
            .iter()
            .position(|core| core.iter().any(|c| c.place.cpu == cpu))
            .ok_or_else(|| {
                let usable: Vec<String> = topology
                    .cpus
                    .iter()
                    .map(|cpu| cpu.place.cpu.to_string())
                    .collect();
                Refusal::new(format!(
                    "-c {cpu}: this job may not use that CPU; usable ones: {}",
                    usable.join(" ")
                ))
            })?,
    };
    let order = order(&cores, options.map.unwrap_or(Map::Core));
    let turn = order.iter().position(|&core| core == start).unwrap_or(0);
    let of_rank = |rank: usize| {
        let core = &cores[order[(turn + rank) % order.len()]];
        core.iter().map(|cpu| cpu.place.cpu).collect()
    };
    Ok(Some((0..ranks).map(of_rank).collect()))
}

/// CPUs grouped by core; cores of a socket are neighbours.
fn cores(topology: &Topology) -> Vec<Vec<Cpu>> {
    let mut cores: BTreeMap<(u32, u32), Vec<Cpu>> = BTreeMap::new();
    for cpu in &topology.cpus {
        cores
            .entry((cpu.package, cpu.place.core))
            .or_default()
            .push(*cpu);
    }
    cores.into_values().collect()
}

/// Indices of cores in the order in which ranks take them.
fn order(cores: &[Vec<Cpu>], map: Map) -> Vec<usize> {
    let group = |core: &[Cpu]| match map {
        Map::Core => 0,
        Map::Socket => core[0].package,
        Map::Numa => core[0].place.numa,
    };
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    let mut keyed: Vec<(usize, u32, usize)> = Vec::with_capacity(cores.len());
    for (index, core) in cores.iter().enumerate() {
        let turn = taken.entry(group(core)).or_default();
        keyed.push((*turn, group(core), index));
        *turn += 1;
    }
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, _, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_base::boot::CpuPlace;

    /// Two sockets of two cores of two threads: CPU n and n + 4 share core n.
    fn machine() -> Topology {
        let cpu = |cpu: u32| {
            let core = cpu % 4;
            Cpu {
                place: CpuPlace {
                    cpu,
                    core,
                    l3: core / 2,
                    numa: core / 2,
                },
                package: core / 2,
            }
        };
        Topology {
            cpus: (0..8).map(cpu).collect(),
            capacity: 8,
        }
    }

    fn firsts(options: &Options, ranks: usize) -> Option<Vec<u32>> {
        let bindings = bind(options, &machine(), ranks).expect("usable");
        bindings.map(|list| list.iter().map(|binding| binding[0]).collect())
    }

    #[test]
    fn unbound_unless_asked() {
        assert_eq!(firsts(&Options::default(), 2), None);
        let options = Options {
            bind: Some(Bind::None),
            map: Some(Map::Core),
            ..Options::default()
        };
        assert_eq!(firsts(&options, 2), None);
    }

    #[test]
    fn ranks_take_cores_in_turn_with_both_threads() {
        let options = Options {
            bind: Some(Bind::Core),
            ..Options::default()
        };
        assert_eq!(firsts(&options, 5), Some(vec![0, 1, 2, 3, 0]));
        assert_eq!(bind(&options, &machine(), 1).unwrap().unwrap()[0], [0, 4]);
    }

    #[test]
    fn sockets_alternate() {
        for map in [Map::Socket, Map::Numa] {
            let options = Options {
                map: Some(map),
                ..Options::default()
            };
            assert_eq!(firsts(&options, 4), Some(vec![0, 2, 1, 3]));
        }
    }

    #[test]
    fn a_first_cpu_may_be_named_by_any_thread_of_its_core() {
        let options = Options {
            first_cpu: Some(6),
            ..Options::default()
        };
        assert_eq!(firsts(&options, 3), Some(vec![2, 3, 0]));
        let options = Options {
            first_cpu: Some(99),
            ..Options::default()
        };
        let message = bind(&options, &machine(), 1).unwrap_err().to_string();
        assert!(message.contains("usable ones: 0 1 2"), "{message}");
    }
}

//! The exchange before the ranks of a job start: what the nodes tell each other.
//!
//! Every client publishes a [`NodeInfo`]; from all of them each computes the same [`World`]. This
//! takes one fence of the manager.

pub use crate::gather::{all_gather, fetch, publish};
pub use crate::node_info::{NodeInfo, Numbering, RANKS_MAX};
use crate::{Failure, Manager, Place};
use cohort_base::boot::RankLocation;
use cohort_base::settings::ALIKE;
use cohort_proof::Secret;
use std::collections::BTreeMap;

/// The CPUs of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// The node.
    pub node: u32,
    /// How many its ranks may use.
    pub all: u32,
    /// How many of them none of the job's first ranks has.
    pub free: u32,
}

/// The whole job, as all of its nodes see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// This node.
    pub place: Place,
    /// All nodes of the job.
    pub nodes: Vec<NodeInfo>,
    /// Where each rank lives, in the order of `MPI_COMM_WORLD`.
    pub homes: Vec<RankLocation>,
}

impl World {
    /// The world in which this node is alone.
    #[must_use]
    pub fn alone(info: NodeInfo) -> Self {
        let place = Place { index: 0, count: 1 };
        Self::of(place, vec![info])
    }

    fn of(place: Place, nodes: Vec<NodeInfo>) -> Self {
        let counts: Vec<u32> = nodes.iter().map(|info| info.ranks).collect();
        let numbering = nodes.first().map(|info| info.numbering).unwrap_or_default();
        Self { place, nodes, homes: homes(&counts, numbering) }
    }

    /// The ranks in `MPI_COMM_WORLD` of a node, in the order of its own.
    #[must_use]
    pub fn ranks_of(&self, node: u32) -> Vec<u32> {
        let ranks = self.homes.iter().zip(0..);
        ranks.filter(|(home, _)| home.node == node).map(|(_, rank)| rank).collect()
    }

    /// `MPI_APPNUM` of the first program of this node's command line. The manager's applications come one after the
    /// other; each has as many programs as that of its nodes which has most.
    #[must_use]
    pub fn first_application(&self) -> u32 {
        let own = self.nodes[self.place.index as usize].application;
        let mut programs = BTreeMap::new();
        for info in self.nodes.iter().filter(|info| info.application < own) {
            let most: &mut u32 = programs.entry(info.application).or_default();
            *most = info.programs.max(*most);
        }
        programs.values().sum()
    }

    /// What all nodes of this job know and no other job does.
    #[must_use]
    pub fn token(&self) -> [u64; 2] {
        self.nodes.first().map_or([0; 2], |info| info.token)
    }

    /// The same in a word, 0 if it has one node.
    #[must_use]
    pub fn number(&self) -> u64 {
        let [first, second] = self.token();
        match self.place.count {
            1 => 0,
            // Not 0, which is that of no job.
            _ => (first ^ second.rotate_left(32)) | 1,
        }
    }

    /// By what the nodes of this job prove themselves to each other. It has come through the manager
    /// and travels nowhere else.
    #[must_use]
    pub fn secret(&self) -> Secret {
        let drawn = self.nodes.first().map_or([0; 32], |info| info.secret);
        Secret::new(&drawn)
    }

    /// How many of its `usable` CPUs this node has for itself, rounded down, when the ranks of other
    /// nodes on the same machine outnumber the CPUs together with its own. 0 is less than one.
    #[must_use]
    pub fn cpus(&self, usable: u32) -> u32 {
        let own = self.nodes[self.place.index as usize].ranks;
        self.share(usable, own).unwrap_or(usable)
    }

    /// Where among the `usable` CPUs those begin that this node has for itself, if it has not all of them.
    #[must_use]
    pub fn first_cpu(&self, usable: u32) -> Option<u32> {
        self.share(usable, self.ranks_before())
    }

    /// Whether somewhere in the job ranks of several nodes outnumber the CPUs that one of these may use. All nodes say
    /// the same.
    #[must_use]
    pub fn shares_cpus(&self) -> bool {
        let mut nodes_of: BTreeMap<&str, u32> = BTreeMap::new();
        for info in &self.nodes {
            *nodes_of.entry(&info.machine).or_default() += 1;
        }
        // Mostly each node has a machine of its own.
        let together = self.nodes.iter().filter(|info| nodes_of[&*info.machine] > 1);
        together.into_iter().any(|info| {
            let ranks = self.ranks_beside(info);
            ranks > info.ranks && ranks > count(&info.cpus)
        })
    }

    /// The part of the `usable` CPUs for so many of the ranks that share them, rounded down, if others' ranks and this
    /// node's together outnumber them.
    fn share(&self, usable: u32, ranks: u32) -> Option<u32> {
        let (own, all) = (self.nodes[self.place.index as usize].ranks, self.ranks_here());
        let is_short = all > usable.max(own);
        is_short.then(|| (u64::from(usable) * u64::from(ranks) / u64::from(all)) as u32)
    }

    /// Nodes on other CPUs than this one's, one of those that share some: how many CPUs each may use, and how many of
    /// them none of the job's first ranks has.
    #[must_use]
    pub fn others_cpus(&self) -> Vec<Cpus> {
        let own = &self.nodes[self.place.index as usize];
        let mut found: Vec<Cpus> = Vec::new();
        for (node, info) in (0_u32..).zip(&self.nodes) {
            let is_known = |it: &Cpus| self.nodes[it.node as usize].shares_cpus_with(info);
            if !info.isolated && !info.shares_cpus_with(own) && !found.iter().any(is_known) {
                let all = count(&info.cpus);
                found.push(Cpus { node, all, free: all.saturating_sub(self.ranks_beside(info)) });
            }
        }
        found
    }

    /// How many of the job's first ranks may use some CPU of this node.
    #[must_use]
    pub fn ranks_here(&self) -> u32 {
        self.ranks_beside(&self.nodes[self.place.index as usize])
    }

    fn ranks_beside(&self, info: &NodeInfo) -> u32 {
        let sharing = self.nodes.iter().filter(|other| other.shares_cpus_with(info));
        sharing.map(|other| other.ranks).fold(0, u32::saturating_add)
    }

    /// Ranks of the nodes before this one that may use some of its CPUs: they take theirs first.
    #[must_use]
    pub fn ranks_before(&self) -> u32 {
        let own = &self.nodes[self.place.index as usize];
        let before = &self.nodes[..self.place.index as usize];
        let sharing = before.iter().filter(|info| info.shares_cpus_with(own));
        sharing.map(|info| info.ranks).fold(0, u32::saturating_add)
    }

    /// A node's host.
    #[must_use]
    pub fn host(&self, node: u32) -> &str {
        self.nodes.get(node as usize).map_or("an unknown host", |info| info.host.as_str())
    }
}

/// How many CPUs a mask has.
fn count(cpus: &[u8]) -> u32 {
    cpus.iter().map(|byte| byte.count_ones()).sum()
}

/// Where each rank runs, of nodes that have so many.
#[must_use]
pub fn homes(counts: &[u32], numbering: Numbering) -> Vec<RankLocation> {
    let nodes = || (0..).zip(counts);
    let most = counts.iter().max().copied().unwrap_or(0);
    match numbering {
        Numbering::Block => nodes()
            .flat_map(|(node, &count)| (0..count).map(move |local_rank| RankLocation { node, local_rank }))
            .collect(),
        Numbering::Cyclic => (0..most)
            .flat_map(|local_rank| {
                nodes()
                    .filter(move |&(_, &count)| local_rank < count)
                    .map(move |(node, _)| RankLocation { node, local_rank })
            })
            .collect(),
    }
}

/// Tells this node's [`NodeInfo`] to all others and learns theirs.
///
/// # Errors
/// The manager fails, or a node is of another version or wants another numbering.
pub fn exchange(manager: &mut dyn Manager, info: &NodeInfo) -> Result<World, Failure> {
    let place = manager.place();
    let own = match place.index {
        0 => info.clone(),
        _ => NodeInfo { token: [0; 2], secret: [0; 32], ..info.clone() },
    };
    let texts = all_gather(manager, "info", &own.encode())?;
    let mut nodes = Vec::with_capacity(texts.len());
    for (node, bytes) in (0..).zip(&texts) {
        let peer = |problem: &str| Failure::Peer { node, problem: problem.to_owned() };
        let other = NodeInfo::decode(bytes).ok_or_else(|| peer("it runs another version of Cohort"))?;
        if other.numbering != info.numbering {
            return Err(peer("its --map-by numbers ranks in another way"));
        }
        if other.isolated != info.isolated {
            return Err(peer(
                "only its ranks, or only those of this node, have address spaces of their own; use \
                 --isolate on all",
            ));
        }
        let mut settings = ALIKE.iter().zip(other.alike.iter().zip(&info.alike));
        if let Some((name, _)) = settings.find(|(_, (theirs, own))| theirs != own) {
            return Err(peer(&format!(
                "{name} has another value there than here, and is to be the same on all nodes; give it to all, where \
                 the job is started"
            )));
        }
        if other.alone != info.alone {
            return Err(peer(
                "pip-exec has started its ranks and not those of this node, or the other way round; start all programs \
                 of the job with pip-exec, or none",
            ));
        }
        nodes.push(other);
    }
    Ok(World::of(place, nodes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    fn home(node: u32, local_rank: u32) -> RankLocation {
        RankLocation { node, local_rank }
    }

    #[test]
    fn long_and_empty_values_reach_everyone() {
        let value = |index: u32| vec![index as u8; 300 * index as usize];
        let seen = Table::run(3, |manager| {
            let own = value(manager.place().index);
            all_gather(manager, "x", &own).expect("gathered")
        });
        let expected: Vec<_> = (0..3).map(value).collect();
        assert!(seen.iter().all(|values| *values == expected));
    }

    #[test]
    fn all_nodes_see_the_same_world() {
        let worlds = Table::run(3, |manager| {
            let index = manager.place().index;
            let info = NodeInfo {
                ranks: [2, 1, 3][index as usize],
                token: [u64::from(index) + 7, 0],
                host: format!("host{index}"),
                interfaces: vec![index as u8; 200],
                ..NodeInfo::default()
            };
            exchange(manager, &info).expect("exchanged")
        });
        let homes = [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)];
        for (index, world) in worlds.iter().enumerate() {
            assert_eq!(world.place.index as usize, index);
            assert_eq!(world.homes, homes.map(|(node, rank)| home(node, rank)));
            assert_eq!(world.nodes, worlds[0].nodes);
            assert_eq!((world.token(), world.host(2)), ([7, 0], "host2"));
        }
        assert_eq!(worlds[0].ranks_of(2), [3, 4, 5]);
    }

    #[test]
    fn programs_of_all_applications_are_numbered() {
        let info = |(application, programs)| NodeInfo { application, programs, ..NodeInfo::default() };
        let nodes: Vec<_> = [(0, 1), (2, 1), (0, 2), (1, 3)].map(info).into();
        let first = |index| World { place: Place { index, count: 4 }, nodes: nodes.clone(), homes: vec![] };
        let firsts = [0, 1, 2, 3].map(|index| first(index).first_application());
        assert_eq!(firsts, [0, 5, 0, 2]);
    }

    #[test]
    fn cyclic_numbering_deals_ranks_out() {
        let dealt = homes(&[2, 1, 3], Numbering::Cyclic);
        let expected = [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (2, 2)];
        assert_eq!(dealt, expected.map(|(node, rank)| home(node, rank)));
    }

    #[test]
    fn nodes_that_do_not_fit_are_named() {
        let failures = Table::run(2, |manager| {
            let numbering = [Numbering::Block, Numbering::Cyclic][manager.place().index as usize];
            let info = NodeInfo { numbering, ..NodeInfo::default() };
            exchange(manager, &info).unwrap_err().to_string()
        });
        assert!(failures[0].contains("node 1"), "{failures:?}");
        assert!(failures[1].contains("node 0"), "{failures:?}");
    }

    /// A node of so many ranks that may use these CPUs of a machine.
    fn info(machine: &str, ranks: u32, cpus: u8) -> NodeInfo {
        NodeInfo { ranks, machine: machine.to_owned(), cpus: vec![cpus], ..NodeInfo::default() }
    }

    #[test]
    fn a_setting_that_is_another_one_there_is_named() {
        let failures = Table::run(2, |manager| {
            let alike = [vec![0, 0, 0], vec![0, 0, 2]][manager.place().index as usize].clone();
            exchange(manager, &NodeInfo { alike, ..NodeInfo::default() }).unwrap_err().to_string()
        });
        assert!(failures.iter().all(|failure| failure.contains("COHORT_DOUBLING has another value")), "{failures:?}");
    }

    #[test]
    fn nodes_that_share_a_machine_share_its_cpus() {
        let nodes = vec![info("a", 2, 0b1111), info("a", 3, 0b1100), info("a", 1, 0b11_0000), info("b", 9, 0b1111)];
        let world = |index| World::of(Place { index, count: 4 }, nodes.clone());
        assert_eq!(world(0).cpus(4), 1, "5 ranks on 4 CPUs: 4 * 2 / 5");
        let firsts = [0, 1, 2, 3].map(|index| world(index).first_cpu(4));
        assert_eq!(firsts, [Some(0), Some(1), None, None], "behind those of the nodes before");
        let cpus = |node, all, free| Cpus { node, all, free };
        assert_eq!((world(0).ranks_here(), world(0).others_cpus()), (5, vec![cpus(2, 2, 1), cpus(3, 4, 0)]));
        assert_eq!(world(3).others_cpus(), [cpus(0, 4, 0), cpus(2, 2, 1)]);
        assert_eq!(world(1).cpus(2), 1, "5 ranks on 2 CPUs");
        assert_eq!(world(2).cpus(2), 2, "for itself");
        assert_eq!(world(3).cpus(4), 4, "too few, but its own");
        let before = [0, 1, 2, 3].map(|index| world(index).ranks_before());
        assert_eq!(before, [0, 2, 0, 0]);
        let crowd = vec![info("a", 1, 1); 3];
        let world = World::of(Place { index: 0, count: 3 }, crowd);
        assert_eq!(world.cpus(1), 0, "less than one");
        assert!(world.shares_cpus());
    }

    #[test]
    fn all_nodes_know_whether_some_share_too_few_cpus() {
        for (ranks, second, shares) in [([1, 1], "a", false), ([2, 1], "a", true), ([9, 9], "b", false)] {
            let nodes = vec![info("a", ranks[0], 0b11), info(second, ranks[1], 0b11), info("c", 1, 0b11)];
            let told = [0, 1, 2].map(|index| World::of(Place { index, count: 3 }, nodes.clone()).shares_cpus());
            assert_eq!(told, [shares; 3], "{ranks:?} on {second}");
        }
    }
}

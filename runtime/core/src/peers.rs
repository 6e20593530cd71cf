//! Which peer is which rank of the job.
//!
//! A node's numbers of peers, of which `n` ranks began the job there, with room for `c` in all, in a job of `w` ranks
//! (`base::spawn` has the numbers of those that are spawned):
//!
//! | peers | are |
//! |---|---|
//! | `0..n` | the node's own ranks |
//! | `n..c` | those that are spawned there |
//! | `c..c + w - n` | the others of `MPI_COMM_WORLD`, in its order |
//! | beyond | those that may be spawned on any node, in the order of their numbers |

use cohort_base::boot::{NodeBoot, RankLocation};
use cohort_base::spawn::{ROOM, number_of, place_of};
use cohort_base::{LocalRank, Peer, WorldRank};

/// One rank of the job, as its number on this node and its rank in `MPI_COMM_WORLD` lead to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// The rank in `MPI_COMM_WORLD` of the peer with this entry's index; other nodes' peers follow the own ones here.
    world: WorldRank,
    /// The peer's number of the rank in `MPI_COMM_WORLD` that is this entry's index.
    peer: u32,
    /// The node of that peer.
    node: u32,
}

/// A process as all jobs know it that are connected: the node of a job, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// What tells its job from others.
    pub job: u64,
    /// The index of its node in that job.
    pub node: u32,
    /// Its index on that node.
    pub index: LocalRank,
}

/// The ranks of the job as one node numbers them; made once with the node. With one node there is no
/// table: its ranks are numbered alike everywhere.
#[derive(Debug)]
pub(crate) struct Peers {
    entries: &'static [Entry],
    node: u32,
    nodes: u32,
    /// Ranks of the node when the job began.
    node_ranks: u32,
    /// Ranks that the node may have in all.
    capacity: u32,
}

impl Peers {
    /// Entries of the table of a job.
    pub(crate) fn entries(boot: &NodeBoot) -> usize {
        if boot.homes.is_null() {
            return 0;
        }
        boot.world_ranks as usize
    }

    /// The peers of the node that `boot` describes, in a table of [`Peers::entries`] zeroed entries.
    pub(crate) fn new(boot: &NodeBoot, table: &'static mut [Entry]) -> Self {
        let (node, node_ranks) = (boot.node, boot.node_ranks);
        if boot.homes.is_null() {
            return Self { entries: &[], node, nodes: 1, node_ranks, capacity: boot.capacity.max(node_ranks) };
        }
        // SAFETY: the loader's record holds one home for each rank of the job.
        let homes = unsafe { core::slice::from_raw_parts(boot.homes, boot.world_ranks as usize) };
        let capacity = boot.capacity.max(node_ranks);
        Self::of_homes(homes, (node, boot.nodes), (node_ranks, capacity), table)
    }

    fn of_homes(
        homes: &[RankLocation],
        (node, nodes): (u32, u32),
        (node_ranks, capacity): (u32, u32),
        entries: &'static mut [Entry],
    ) -> Self {
        let mut next_remote = node_ranks;
        for (world, home) in homes.iter().enumerate() {
            let (index, peer) = if home.node == node {
                (home.local_rank, home.local_rank)
            } else {
                next_remote += 1;
                (next_remote - 1, next_remote - 1 + capacity - node_ranks)
            };
            entries[world].peer = peer;
            entries[index as usize].world = world as WorldRank;
            entries[index as usize].node = home.node;
        }
        Self { entries, node, nodes, node_ranks, capacity }
    }

    /// Ranks of `MPI_COMM_WORLD`.
    fn world_ranks(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The first peer that may be spawned on any node.
    fn first_spawned(&self) -> u32 {
        self.capacity + self.world_ranks() - self.node_ranks
    }

    /// Whether there may be a rank of this number in the job.
    pub(crate) fn has(&self, world: WorldRank) -> bool {
        match self.entries.is_empty() {
            true => world < self.capacity,
            false => u64::from(world) < u64::from(self.world_ranks()) + u64::from(self.nodes) * u64::from(ROOM),
        }
    }

    /// The peer with this number in the job.
    pub(crate) fn of_world(&self, world: WorldRank) -> Peer {
        if self.entries.is_empty() {
            return Peer::of_index(world);
        }
        Peer::of_index(match place_of(self.world_ranks(), world) {
            None => self.entries[world as usize].peer,
            Some((node, place)) if node == self.node => self.node_ranks + place,
            Some(_) => self.first_spawned() + (world - self.world_ranks()),
        })
    }

    /// The entry of a peer that the job began with.
    fn entry(&self, peer: Peer) -> Option<&Entry> {
        match peer.index() {
            own if own < self.node_ranks => self.entries.get(own as usize),
            other if other < self.capacity => None,
            other => self.entries.get((other - self.capacity + self.node_ranks) as usize),
        }
    }

    /// The peer's number in the job.
    pub(crate) fn world_rank(&self, peer: Peer) -> WorldRank {
        if self.entries.is_empty() {
            return peer.index();
        }
        match self.entry(peer) {
            Some(entry) => entry.world,
            None if peer.index() < self.capacity => {
                number_of(self.world_ranks(), self.node, peer.index() - self.node_ranks)
            }
            None => self.world_ranks() + (peer.index() - self.first_spawned()),
        }
    }

    /// The node of a peer of the job, and the peer's index there.
    pub(crate) fn location(&self, boot: &NodeBoot, peer: Peer) -> (u32, LocalRank) {
        if self.entries.is_empty() || peer.index() < self.capacity {
            return (self.node, peer.index());
        }
        // SAFETY: the loader's record holds one home for each rank of the job.
        let homes = unsafe { core::slice::from_raw_parts(boot.homes, boot.world_ranks as usize) };
        let world = self.world_rank(peer);
        match place_of(self.world_ranks(), world) {
            None => (homes[world as usize].node, homes[world as usize].local_rank),
            Some((node, place)) => {
                let began = homes.iter().filter(|home| home.node == node).count() as u32;
                (node, began + place)
            }
        }
    }

    /// The node that the peer lives on.
    pub(crate) fn home_node(&self, peer: Peer) -> u32 {
        if self.entries.is_empty() {
            return 0;
        }
        match self.entry(peer) {
            Some(entry) => entry.node,
            None => place_of(self.world_ranks(), self.world_rank(peer)).map_or(self.node, |(node, _)| node),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(homes: &[RankLocation], node: u32, capacity: u32) -> Peers {
        let table = std::vec![Entry::default(); homes.len()].into_boxed_slice();
        let node_ranks = homes.iter().filter(|home| home.node == node).count() as u32;
        Peers::of_homes(homes, (node, 3), (node_ranks, capacity), std::boxed::Box::leak(table))
    }

    /// World ranks 0..6 live on nodes 1 0 1 2 0 1.
    fn homes() -> [RankLocation; 6] {
        let home = |node, local_rank| RankLocation { node, local_rank };
        [home(1, 0), home(0, 0), home(1, 1), home(2, 0), home(0, 1), home(1, 2)]
    }

    #[test]
    fn own_ranks_come_first_and_the_others_in_world_order() {
        let homes = homes();
        let peers = of(&homes, 1, 3);
        let numbers: std::vec::Vec<u32> = (0..6).map(|world| peers.of_world(world).index()).collect();
        assert_eq!(numbers, [0, 3, 1, 4, 5, 2]);
        for world in 0..6 {
            let peer = peers.of_world(world);
            assert_eq!(peers.world_rank(peer), world);
            assert_eq!(peers.home_node(peer), homes[world as usize].node);
        }
    }

    #[test]
    fn each_rank_that_is_spawned_has_a_number_of_its_own_on_each_node() {
        let homes = homes();
        for (node, capacity) in [(0, 2 + ROOM), (1, 3 + ROOM), (2, 1)] {
            let peers = of(&homes, node, capacity);
            let mut seen = std::collections::BTreeSet::new();
            for world in (0..6).chain((0..3).flat_map(|other| [0, 1, ROOM - 1].map(|it| number_of(6, other, it)))) {
                let home = place_of(6, world).map_or_else(|| homes[world as usize].node, |(other, _)| other);
                if home == node && world >= 6 && capacity < ROOM {
                    // None is spawned where there is no room.
                    continue;
                }
                let peer = peers.of_world(world);
                assert!(peers.has(world) && seen.insert(peer.index()));
                assert_eq!((peers.world_rank(peer), peers.home_node(peer)), (world, home));
                assert_eq!(peer.index() < capacity, home == node);
            }
            assert!(!peers.has(6 + 3 * ROOM) && !peers.has(u32::MAX));
        }
    }

    #[test]
    fn one_node_needs_no_table() {
        let peers = Peers { entries: &[], node: 0, nodes: 1, node_ranks: 4, capacity: 4 + ROOM };
        assert_eq!(peers.of_world(5), Peer::local(5));
        assert_eq!(peers.world_rank(Peer::local(5)), 5);
        assert_eq!(peers.home_node(Peer::local(5)), 0);
        assert!(peers.has(4 + ROOM - 1) && !peers.has(4 + ROOM));
    }
}

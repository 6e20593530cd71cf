//! Which peer is which rank of the job.

use cohort_base::boot::{NodeBoot, RankLocation};
use cohort_base::{Peer, WorldRank};

/// One rank of the job, as its number on this node and its rank in `MPI_COMM_WORLD` lead to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// The rank in `MPI_COMM_WORLD` of the peer with this entry's index.
    world: WorldRank,
    /// The peer's number of the rank in `MPI_COMM_WORLD` that is this entry's index.
    peer: u32,
    /// The node of the peer with this entry's index.
    node: u32,
}

/// The ranks of the job as one node numbers them; made once with the node. With one node there is no
/// table: its ranks are numbered alike everywhere.
#[derive(Debug)]
pub(crate) struct Peers(&'static [Entry]);

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
        if boot.homes.is_null() {
            return Self(&[]);
        }
        // SAFETY: the loader's record holds one home for each rank of the job.
        let homes = unsafe { core::slice::from_raw_parts(boot.homes, boot.world_ranks as usize) };
        Self::of_homes(homes, boot.node, boot.node_ranks, table)
    }

    fn of_homes(homes: &[RankLocation], node: u32, node_ranks: u32, entries: &'static mut [Entry]) -> Self {
        let mut next_remote = node_ranks;
        for (world, home) in homes.iter().enumerate() {
            let peer = if home.node == node {
                home.local_rank
            } else {
                next_remote += 1;
                next_remote - 1
            };
            entries[world].peer = peer;
            entries[peer as usize].world = world as WorldRank;
            entries[peer as usize].node = home.node;
        }
        Self(entries)
    }

    /// The peer with this rank in `MPI_COMM_WORLD`.
    pub(crate) fn of_world(&self, world: WorldRank) -> Peer {
        if self.0.is_empty() {
            return Peer::of_index(world);
        }
        Peer::of_index(self.0[world as usize].peer)
    }

    /// The peer's rank in `MPI_COMM_WORLD`.
    pub(crate) fn world_rank(&self, peer: Peer) -> WorldRank {
        if self.0.is_empty() {
            return peer.index();
        }
        self.0[peer.index() as usize].world
    }

    /// The node that the peer lives on.
    pub(crate) fn home_node(&self, peer: Peer) -> u32 {
        self.0.get(peer.index() as usize).map_or(0, |entry| entry.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ranks_come_first_and_the_others_in_world_order() {
        let home = |node, local_rank| RankLocation { node, local_rank };
        // World ranks 0..6 live on nodes 1 0 1 2 0 1.
        let table = std::vec![Entry::default(); 6].into_boxed_slice();
        let homes = [home(1, 0), home(0, 0), home(1, 1), home(2, 0), home(0, 1), home(1, 2)];
        let peers = Peers::of_homes(&homes, 1, 3, std::boxed::Box::leak(table));
        let numbers: std::vec::Vec<u32> = (0..6).map(|world| peers.of_world(world).index()).collect();
        assert_eq!(numbers, [0, 3, 1, 4, 5, 2]);
        for world in 0..6 {
            let peer = peers.of_world(world);
            assert_eq!(peers.world_rank(peer), world);
            assert_eq!(peers.home_node(peer), homes[world as usize].node);
        }
    }

    #[test]
    fn one_node_needs_no_table() {
        let peers = Peers(&[]);
        assert_eq!(peers.of_world(5), Peer::local(5));
        assert_eq!(peers.world_rank(Peer::local(5)), 5);
        assert_eq!(peers.home_node(Peer::local(5)), 0);
    }
}

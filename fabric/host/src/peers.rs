//! The endpoints of the job, and which of them serves which rank.
//!
//! Each node decides for itself how many endpoints it has, at most one for each rank. Its ranks share them: of `n`
//! endpoints number `r % n` serves local rank `r`. All that goes between two ranks goes between the endpoints that
//! serve them, so it stays in order, and a region of a rank is one of its endpoint. The endpoints of the job are
//! numbered node by node; such a number is a *peer*.

use cohort_base::boot::RankLocation;
use std::ops::Range;

/// Whether endpoint `index` of a node's `count` serves a rank of it.
#[must_use]
#[inline]
pub fn serves(index: usize, count: usize, local_rank: u32) -> bool {
    local_rank as usize % count == index
}

/// All endpoints of the job.
#[derive(Debug)]
pub struct Peers {
    /// The first peer of each node, and how many there are.
    first: Vec<u32>,
    addresses: Vec<Vec<u8>>,
}

impl Peers {
    /// Of the addresses of each node, of which each has one at least.
    #[must_use]
    pub fn new(nodes: Vec<Vec<Vec<u8>>>) -> Self {
        let mut first = Vec::with_capacity(nodes.len() + 1);
        let mut next = 0;
        first.push(next);
        for node in &nodes {
            next += node.len() as u32;
            first.push(next);
        }
        Self { first, addresses: nodes.into_iter().flatten().collect() }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.addresses.len()
    }

    /// Those of a node.
    #[must_use]
    pub fn of_node(&self, node: u32) -> Range<u32> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    /// The one that serves a rank.
    #[must_use]
    #[inline]
    pub fn of_rank(&self, home: RankLocation) -> u32 {
        let (first, next) = (self.first[home.node as usize], self.first[home.node as usize + 1]);
        first + home.local_rank % (next - first)
    }

    /// The node of one.
    #[must_use]
    pub fn node_of(&self, peer: u32) -> u32 {
        self.first.partition_point(|&first| first <= peer) as u32 - 1
    }

    /// The address of one.
    #[must_use]
    pub fn address(&self, peer: u32) -> &[u8] {
        &self.addresses[peer as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_has_one_endpoint_of_its_node() {
        let address = |name: u8| vec![name; 4];
        let peers =
            Peers::new(vec![vec![address(0)], vec![address(1), address(2)], vec![address(3), address(4), address(5)]]);
        assert_eq!((peers.count(), peers.of_node(1)), (6, 1..3));
        let of = |node, local_rank| peers.of_rank(RankLocation { node, local_rank });
        assert_eq!([of(0, 0), of(0, 7)], [0, 0]);
        assert_eq!([of(1, 0), of(1, 1), of(1, 2)], [1, 2, 1]);
        assert_eq!([of(2, 0), of(2, 4), of(2, 5)], [3, 4, 5]);
        assert_eq!(peers.address(of(2, 4)), address(4));
        let nodes = (0..6).map(|peer| peers.node_of(peer));
        assert_eq!(nodes.collect::<Vec<_>>(), [0, 1, 1, 2, 2, 2]);
        assert!(serves(1, 3, 4) && !serves(1, 3, 5));
    }
}

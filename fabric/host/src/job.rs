//! What all endpoints of a node share about the job.

use crate::packet;
use crate::peers::{self, Peers};
use cohort_base::boot::RankLocation;
use cohort_base::spawn::{ROOM, number_of, place_of};
use cohort_fabric::{LocalRank, WorldRank};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// The job, as this node sees it.
#[derive(Debug)]
pub struct Job {
    /// Index of this node.
    pub node: u32,
    /// A random number that only members of the job know.
    pub number: [u64; 2],
    /// What every packet of the job carries.
    pub cookie: u64,
    /// How long a node may be silent until it is dead.
    pub timeout: Duration,
    /// Where each rank of `MPI_COMM_WORLD` lives.
    pub homes: Vec<RankLocation>,
    /// Ranks of this node that there are, with those that were spawned.
    present: AtomicU32,
    /// All endpoints; set once all nodes' addresses are known.
    peers: OnceLock<Peers>,
    /// Nodes with whose ranks this node has exchanged packets.
    contacted: Vec<AtomicBool>,
    /// The ranks of each node when the job began, by their local ranks.
    nodes: Vec<Vec<WorldRank>>,
    /// Why a node is dead; 0 while it is not.
    codes: Vec<AtomicI32>,
    /// How many times `codes` has changed.
    deaths: AtomicU32,
}

impl Job {
    /// A job of `homes.len()` ranks.
    #[must_use]
    pub fn new(node: u32, number: [u64; 2], timeout: Duration, homes: Vec<RankLocation>) -> Self {
        let count = homes.iter().map(|home| home.node as usize + 1).max();
        let mut nodes = vec![Vec::new(); count.unwrap_or(0)];
        for (rank, home) in homes.iter().enumerate() {
            nodes[home.node as usize].push(rank as WorldRank);
        }
        for ranks in &mut nodes {
            ranks.sort_unstable_by_key(|&rank: &WorldRank| homes[rank as usize].local_rank);
        }
        let present = nodes.get(node as usize).map_or(0, |ranks| ranks.len() as u32);
        Self {
            present: AtomicU32::new(present),
            node,
            number,
            cookie: packet::cookie(number),
            timeout,
            peers: OnceLock::new(),
            contacted: nodes.iter().map(|_| AtomicBool::new(false)).collect(),
            codes: nodes.iter().map(|_| AtomicI32::new(0)).collect(),
            deaths: AtomicU32::new(0),
            nodes,
            homes,
        }
    }

    /// Nodes of the job.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The ranks of a node when the job began.
    #[must_use]
    pub fn ranks_of(&self, node: u32) -> &[WorldRank] {
        &self.nodes[node as usize]
    }

    /// All ranks of a node, with those that may be spawned there.
    pub fn all_of(&self, node: u32) -> impl Iterator<Item = WorldRank> + '_ {
        let spawned = (0..ROOM).map(move |place| number_of(self.ranks() as u32, node, place));
        self.ranks_of(node).iter().copied().chain(spawned)
    }

    /// Where a rank lives; none if the job cannot have such a one.
    #[must_use]
    #[inline]
    pub fn home(&self, rank: WorldRank) -> Option<RankLocation> {
        match self.homes.get(rank as usize) {
            Some(&home) => Some(home),
            None => self.home_of_spawned(rank),
        }
    }

    fn home_of_spawned(&self, rank: WorldRank) -> Option<RankLocation> {
        let (node, place) = place_of(self.ranks() as u32, rank)?;
        let first = self.nodes.get(node as usize)?.len() as u32;
        Some(RankLocation { node, local_rank: first + place })
    }

    /// The node of a rank. Panics if the job cannot have such a one.
    #[must_use]
    #[inline]
    pub fn node_of(&self, rank: WorldRank) -> u32 {
        self.home(rank).expect("a rank of the job").node
    }

    /// The index on this node of a rank that is there now.
    #[must_use]
    #[inline]
    pub fn local(&self, rank: WorldRank) -> Option<LocalRank> {
        let home = self.home(rank)?;
        (home.node == self.node && home.local_rank < self.present()).then_some(home.local_rank)
    }

    /// The number in the job of a rank of this node.
    #[must_use]
    #[inline]
    pub fn own_rank(&self, local: LocalRank) -> WorldRank {
        let first = &self.nodes[self.node as usize];
        match first.get(local as usize) {
            Some(&rank) => rank,
            None => number_of(self.ranks() as u32, self.node, local - first.len() as u32),
        }
    }

    /// Ranks of this node that there are now.
    #[must_use]
    #[inline]
    pub fn present(&self) -> u32 {
        // Acquire pairs with the Release of `grow`.
        self.present.load(Ordering::Acquire)
    }

    /// This node has so many ranks from now on.
    pub fn grow(&self, ranks: u32) {
        self.present.fetch_max(ranks, Ordering::Release);
    }

    /// Ranks that `MPI_COMM_WORLD` has.
    #[must_use]
    #[inline]
    pub fn ranks(&self) -> usize {
        self.homes.len()
    }

    /// Stores the endpoints of all nodes; false if that was done before.
    pub fn set_peers(&self, peers: Peers) -> bool {
        self.peers.set(peers).is_ok()
    }

    /// The endpoints of all nodes; none before their addresses are known, and where ranks share none.
    #[must_use]
    #[inline]
    pub fn peers(&self) -> Option<&Peers> {
        self.peers.get()
    }

    /// The ranks that a peer serves.
    pub fn ranks_of_peer(&self, peer: u32) -> impl Iterator<Item = WorldRank> {
        let group = self.peers().map(|peers| {
            let node = peers.node_of(peer);
            let range = peers.of_node(node);
            (node, (peer - range.start) as usize, range.len())
        });
        group.into_iter().flat_map(move |(node, index, count)| {
            let is_served = move |rank: &WorldRank| {
                self.home(*rank).is_some_and(|home| peers::serves(index, count, home.local_rank))
            };
            self.all_of(node).filter(is_served)
        })
    }

    /// Notes that this node talks with a rank. Relaxed: the service looks again soon.
    #[inline]
    pub fn contacted(&self, rank: WorldRank) {
        self.contacted_node(self.node_of(rank));
    }

    /// Notes that this node talks with another.
    #[inline]
    pub fn contacted_node(&self, node: u32) {
        let contacted = &self.contacted[node as usize];
        if !contacted.load(Ordering::Relaxed) {
            contacted.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this node talks with ranks of a node.
    #[must_use]
    pub fn talks_with(&self, node: u32) -> bool {
        let contacted = self.contacted.get(node as usize);
        contacted.is_some_and(|contacted| contacted.load(Ordering::Relaxed))
    }

    /// Notes that a node is dead; whether that is news.
    pub fn mark_node_dead(&self, node: u32, code: i32) -> bool {
        let code = if code == 0 { libc::EIO } else { code };
        let place = &self.codes[node as usize];
        let before = place.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
        if before.is_ok() {
            // Release pairs with the Acquire of `deaths`: who sees the number sees the code.
            self.deaths.fetch_add(1, Ordering::Release);
        }
        before.is_ok()
    }

    /// How many nodes are dead.
    #[must_use]
    #[inline]
    pub fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// Why a node is dead, if it is.
    #[must_use]
    pub fn node_death(&self, node: u32) -> Option<i32> {
        match self.codes[node as usize].load(Ordering::Relaxed) {
            0 => None,
            code => Some(code),
        }
    }

    /// Why a rank is dead, if its node is.
    #[must_use]
    pub fn death(&self, rank: WorldRank) -> Option<i32> {
        self.node_death(self.node_of(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_are_spawned_have_numbers_behind_those_of_the_world() {
        let home = |node, local_rank| RankLocation { node, local_rank };
        let homes = vec![home(0, 1), home(1, 0), home(0, 0)];
        let job = Job::new(0, [1, 2], Duration::from_secs(1), homes.clone());
        for (rank, &home) in (0..).zip(&homes) {
            assert_eq!((job.home(rank), job.local(rank)), (Some(home), (home.node == 0).then_some(home.local_rank)));
        }
        assert_eq!([job.own_rank(0), job.own_rank(1), job.own_rank(2)], [2, 0, 3]);
        let first_of_other = 3 + ROOM;
        assert_eq!(job.home(first_of_other), Some(home(1, 1)));
        assert_eq!(job.home(3 + 2 * ROOM), None);
        assert_eq!((job.home(4), job.local(4)), (Some(home(0, 3)), None));
        job.grow(4);
        assert_eq!((job.local(4), job.local(5), job.local(first_of_other)), (Some(3), None, None));
        let others: Vec<WorldRank> = job.all_of(1).take(2).collect();
        assert_eq!(others, [1, first_of_other]);
    }
}

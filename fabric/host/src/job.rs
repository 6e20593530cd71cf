//! What all endpoints of a node share about the job.

use crate::packet;
use crate::peers::{self, Peers};
use cohort_base::boot::RankLocation;
use cohort_fabric::WorldRank;
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
    /// Where each rank lives.
    pub homes: Vec<RankLocation>,
    /// All endpoints; set once all nodes' addresses are known.
    peers: OnceLock<Peers>,
    /// Nodes with whose ranks this node has exchanged packets.
    contacted: Vec<AtomicBool>,
    /// The ranks of each node.
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
        Self {
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

    /// The ranks of a node.
    #[must_use]
    pub fn ranks_of(&self, node: u32) -> &[WorldRank] {
        &self.nodes[node as usize]
    }

    /// The node of a rank.
    #[must_use]
    #[inline]
    pub fn node_of(&self, rank: WorldRank) -> u32 {
        self.homes[rank as usize].node
    }

    /// Ranks of the job.
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
            let ranks = self.ranks_of(node).iter().copied();
            ranks.filter(move |&rank| peers::serves(index, count, self.homes[rank as usize].local_rank))
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

    /// Notes that a rank's node is dead.
    pub fn mark_dead(&self, rank: WorldRank, code: i32) {
        self.mark_node_dead(self.node_of(rank), code);
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

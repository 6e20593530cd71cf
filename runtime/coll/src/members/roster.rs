//! Who the members are.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_base::Peer;
use spin::Once;

/// Members above which a search is worth an index.
const SEARCH_MOST: usize = 64;

/// The members of a group or a communicator, by rank. Copies share one list, also those of several ranks of a node.
#[derive(Clone)]
pub struct Roster {
    peers: Arc<[Peer]>,
    index: Arc<Index>,
}

/// The ranks of the members, in the order of their peers' numbers; made when somebody first looks for one.
struct Index(Once<Box<[u32]>>);

impl core::fmt::Debug for Roster {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.peers.iter()).finish()
    }
}

impl PartialEq for Roster {
    fn eq(&self, other: &Self) -> bool {
        self.is_same_list(other) || self.peers == other.peers
    }
}

impl Eq for Roster {}

impl Roster {
    /// These members, each of them once.
    #[must_use]
    pub fn new(peers: Vec<Peer>) -> Self {
        Self { peers: peers.into(), index: Arc::new(Index(Once::new())) }
    }

    /// The members, by rank.
    #[inline]
    #[must_use]
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The list itself, for who keeps it.
    #[must_use]
    pub fn list(&self) -> Arc<[Peer]> {
        self.peers.clone()
    }

    /// Whether both share one list.
    fn is_same_list(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.peers, &other.peers)
    }

    /// The rank of a member, if it is one. Of large groups the first search costs as much as sorting them, each
    /// other one a few steps.
    #[must_use]
    pub fn rank_of(&self, member: Peer) -> Option<u32> {
        if self.peers.len() <= SEARCH_MOST {
            let place = self.peers.iter().position(|&peer| peer == member);
            return place.map(|place| place as u32);
        }
        let index = self.index.0.call_once(|| self.sorted());
        let peer_of = |&rank: &u32| self.peers[rank as usize];
        let place = index.binary_search_by_key(&member, peer_of).ok()?;
        Some(index[place])
    }

    fn sorted(&self) -> Box<[u32]> {
        let mut ranks: Box<[u32]> = (0..self.peers.len() as u32).collect();
        ranks.sort_unstable_by_key(|&rank| self.peers[rank as usize]);
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_found_in_small_and_large_groups() {
        for size in [1, 64, 65, 300_000_u32] {
            // Every third peer, in an order that is neither ascending nor descending.
            let peer = |rank: u32| Peer::of_index((rank.wrapping_mul(7919) % size) * 3);
            let roster = Roster::new((0..size).map(peer).collect());
            assert!(!size.is_multiple_of(7919), "ranks of their own");
            for rank in 0..size {
                assert_eq!(roster.rank_of(peer(rank)), Some(rank));
                assert_eq!(roster.rank_of(Peer::of_index(rank * 3 + 1)), None);
            }
        }
    }
}

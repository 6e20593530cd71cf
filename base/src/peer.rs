//! The ranks of the job as one node numbers them.

use crate::LocalRank;

/// A rank of the job, in the numbering of one node: its own ranks come first, by their index on the
/// node, up to its capacity; then all others, in the order of their numbers in the job.
///
/// So "is it on this node?" is one compare, and two peers of a node are the same rank exactly when
/// their numbers are equal. Numbers of different nodes have nothing to do with each other: what travels
/// between nodes are [`WorldRank`](crate::WorldRank)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Peer(u32);

impl Peer {
    /// A rank of this node.
    #[inline]
    #[must_use]
    pub const fn local(rank: LocalRank) -> Self {
        Self(rank)
    }

    /// The peer with this number: below the node's size a rank of this node, else a remote one.
    #[inline]
    #[must_use]
    pub const fn of_index(index: u32) -> Self {
        Self(index)
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }
}

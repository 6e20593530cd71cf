//! Intercommunicators, as a member sees them.

use super::exchange::{Channel, Incoming, Outgoing};
use super::members::{Count, Group};
use cohort_base::Peer;
use cohort_datatype::Buffer;
use core::ops::Range;

/// Tag of messages between the groups.
pub const TAG: i32 = -1;

/// One member's view of an intercommunicator.
#[derive(Clone, Copy)]
pub struct Intergroup<'a> {
    /// The caller's own group.
    pub local: Group<'a>,
    /// Messages between the groups.
    pub channel: Channel<'a>,
    /// The other group.
    pub remote: &'a [Peer],
    /// Nonblocking and persistent operations that the caller has begun.
    pub begun: &'a Count,
}

/// No member: the root of those beside it.
const NOBODY: u32 = u32::MAX;

/// Whose data a rooted collective moves (MPI 6.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The caller's (`MPI_ROOT`).
    Here,
    /// That of another member of the caller's group (`MPI_PROC_NULL`).
    Beside,
    /// That of this member of the other group.
    Remote(u32),
}

impl Intergroup<'_> {
    /// A message to member `member` of the other group.
    #[must_use]
    pub fn to<'d>(&self, member: usize, data: Buffer<'d>) -> Outgoing<'d> {
        Outgoing { to: self.remote[member], tag: TAG, data }
    }

    /// A message from member `member` of the other group.
    #[must_use]
    pub fn from<'d>(&self, member: usize, data: Buffer<'d>) -> Incoming<'d> {
        Incoming { from: self.remote[member], member: member as u32, tag: TAG, data }
    }

    /// The places of the own group's members and of the other's among those of both: first comes
    /// the group whose first member does ([`Node::comes_first`](cohort_core::node::Node::comes_first)).
    pub(crate) fn places(&self) -> (Range<usize>, Range<usize>) {
        let (ours, theirs) = (self.local.world.len(), self.remote.len());
        let node = self.local.rank().node();
        let we_come_first = node.comes_first(self.local.world[0], self.remote[0]);
        match we_come_first {
            true => (0..ours, ours..ours + theirs),
            false => (theirs..theirs + ours, 0..theirs),
        }
    }

    /// A root as a [`Call`](super::Call) names it: its place among the members of both groups.
    #[must_use]
    pub fn place_of(&self, root: Root) -> u32 {
        let (ours, theirs) = self.places();
        match root {
            Root::Here => ours.start as u32 + self.local.me,
            Root::Beside => NOBODY,
            Root::Remote(root) => theirs.start as u32 + root,
        }
    }

    /// The root that a [`Call`](super::Call) names by its place.
    pub(crate) fn root_at(&self, place: u32) -> Root {
        let (_, theirs) = self.places();
        match place {
            NOBODY => Root::Beside,
            place if theirs.contains(&(place as usize)) => Root::Remote(place - theirs.start as u32),
            _ => Root::Here,
        }
    }
}

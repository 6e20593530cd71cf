//! Which members of a communicator live where.

use super::joint::{self, Joint};
use crate::coll::{CommShared, Group};
use crate::meeting::{Link, release_cursor};
use crate::node::Node;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use core::ops::Deref;
use core::ptr::null_mut;

/// Where the members of a communicator live that spans nodes, as one of these nodes sees it. Nodes
/// are numbered in the order of their first members, so all nodes number them alike.
#[derive(Debug)]
pub(in crate::coll) struct Homes {
    /// The members of each node, in ascending order.
    nodes: Vec<Vec<u32>>,
    /// The node of each member.
    homes: Vec<u32>,
    /// This node.
    here: u32,
}

/// [`Homes`], and what the members on this node share.
pub(in crate::coll) struct Spread {
    homes: Arc<Homes>,
    /// This node's members.
    local: Vec<Peer>,
    /// What this node's members share.
    inner: Box<CommShared>,
    /// Where their nonblocking collectives meet in which one of them speaks for all.
    joints: Link<joint::Part, joint::Plan>,
    /// What each of them has begun.
    begun: Vec<Begun>,
}

/// Nonblocking collectives that a member has begun.
struct Begun {
    number: AtomicU32,
    /// Its cursor in the chain of those in which one speaks for all.
    joint: AtomicPtr<Joint>,
}

impl Spread {
    /// Where `members` live; `None` if all live on `node`.
    pub(in crate::coll) fn of(node: &'static Node, context: u32, members: &[Peer]) -> Option<Self> {
        if members.iter().all(|&member| node.local(member).is_some()) {
            return None;
        }
        let mut numbers: Vec<(u32, u32)> = Vec::new();
        let mut nodes: Vec<Vec<u32>> = Vec::new();
        let mut homes = vec![0; members.len()];
        for (member, &peer) in members.iter().enumerate() {
            let home = node.home_node(peer);
            // Consecutive members tend to share a node: look at the newest first.
            let known = numbers.iter().rev().find(|&&(id, _)| id == home);
            let number = known.map_or(nodes.len() as u32, |&(_, number)| number);
            if number as usize == nodes.len() {
                numbers.push((home, number));
                nodes.push(Vec::new());
            }
            nodes[number as usize].push(member as u32);
            homes[member] = number;
        }
        let is_here = |place: &&(u32, u32)| place.0 == node.boot().node;
        let here = numbers
            .iter()
            .find(is_here)
            .map_or(0, |&(_, number)| number);
        let local: Vec<Peer> = nodes[here as usize]
            .iter()
            .map(|&member| members[member as usize])
            .collect();
        let begun = local.iter().map(|_| Begun {
            number: AtomicU32::new(0),
            joint: AtomicPtr::new(null_mut()),
        });
        let inner = CommShared::within_node(node, context, local.len() as u32);
        let homes = Homes { nodes, homes, here };
        Some(Self {
            begun: begun.collect(),
            homes: Arc::new(homes),
            local,
            inner: Box::new(inner),
            joints: Link::new(),
        })
    }

    /// The number of a member's next nonblocking collective, the same at all members.
    pub(in crate::coll) fn begin(&self, group: &Group<'_>) -> u32 {
        // Relaxed: one thread of the member at a time is here, as MPI demands.
        self.begun(group).number.fetch_add(1, Ordering::Relaxed)
    }

    fn begun(&self, group: &Group<'_>) -> &Begun {
        &self.begun[self.place_here(group.me()) as usize]
    }

    /// A member's place in the chain of operations in which one member speaks for all of the node.
    pub(super) fn place(&self, group: &Group<'_>) -> joint::Place<'_> {
        joint::Place {
            first: &self.joints,
            cursor: &self.begun(group).joint,
            me: self.place_here(group.me()),
            size: self.local.len() as u32,
        }
    }

    /// Where the members live, for longer than the communicator may last.
    pub(super) fn homes(&self) -> Arc<Homes> {
        self.homes.clone()
    }

    /// The group of this node's members, as the caller sees it.
    pub(super) fn inner<'a>(&'a self, group: &Group<'a>) -> Group<'a> {
        Group {
            me: self.place_here(group.me()),
            world: &self.local,
            shared: &self.inner,
            ..*group
        }
    }
}

impl Deref for Spread {
    type Target = Homes;

    fn deref(&self) -> &Homes {
        &self.homes
    }
}

impl Drop for Spread {
    fn drop(&mut self) {
        for begun in &self.begun {
            release_cursor(&begun.joint);
        }
    }
}

impl Homes {
    /// Members on this node.
    pub(in crate::coll) fn members_here(&self) -> usize {
        self.nodes[self.here()].len()
    }

    /// The member that speaks for each node: the first, but `root` for its own.
    pub(super) fn leaders(&self, root: usize) -> Vec<usize> {
        let first = |members: &Vec<u32>| members[0] as usize;
        let mut leaders: Vec<usize> = self.nodes.iter().map(first).collect();
        leaders[self.homes[root] as usize] = root;
        leaders
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The members of a node, in ascending order.
    pub(super) fn members(&self, node: usize) -> &[u32] {
        &self.nodes[node]
    }

    /// The members of each other node.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = &[u32]> {
        let others = self.nodes.iter().enumerate();
        let others = others.filter(|&(node, _)| node != self.here());
        others.map(|(_, members)| &members[..])
    }

    /// Whether some node has several members.
    pub(in crate::coll) fn has_neighbours(&self) -> bool {
        self.nodes.len() < self.homes.len()
    }

    /// The place of a member's node among the leaders.
    pub(super) fn home(&self, member: usize) -> usize {
        self.homes[member] as usize
    }

    /// This node's place among the leaders.
    pub(super) fn here(&self) -> usize {
        self.here as usize
    }

    /// The place of a member of this node in the group of its members.
    pub(super) fn place_here(&self, member: usize) -> u32 {
        let place = self.nodes[self.here()].binary_search(&(member as u32));
        place.expect("the member lives here") as u32
    }

    /// Whether every node has consecutive members.
    pub(super) fn is_in_order(&self) -> bool {
        self.nodes.concat().is_sorted()
    }
}

//! Which members of a communicator live where.

use alloc::vec;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_core::node::Node;

/// Where the members of a communicator live that spans nodes, as one of these nodes sees it. Nodes
/// are numbered in the order of their first members, so all nodes number them alike.
#[derive(Debug)]
pub(crate) struct NodeMap {
    /// The members of each node, in ascending order.
    nodes: Vec<Vec<u32>>,
    /// The node of each member.
    node_of: Vec<u32>,
    /// This node.
    this_node: u32,
    /// Whether every node has consecutive members.
    is_in_order: bool,
    /// How many members the node with most of them has.
    most: u32,
}

impl NodeMap {
    /// Where `members` live; `None` if all live on `node`. Where ranks survive each other each is taken for a node, so
    /// that messages are all that a member has of another one.
    pub(crate) fn of(node: &'static Node, members: &[Peer], me: Peer) -> Option<Self> {
        if node.survives() {
            return Self::of_each(members, me);
        }
        if members.iter().all(|&member| node.local(member).is_some()) {
            return None;
        }
        // By node of the job: its number here, and one more.
        let mut numbers = vec![0_u32; node.home_nodes() as usize];
        let mut nodes: Vec<Vec<u32>> = Vec::new();
        let mut node_of = vec![0; members.len()];
        for (member, &peer) in members.iter().enumerate() {
            let number = &mut numbers[node.home_node(peer) as usize];
            if *number == 0 {
                nodes.push(Vec::new());
                *number = nodes.len() as u32;
            }
            nodes[*number as usize - 1].push(member as u32);
            node_of[member] = *number - 1;
        }
        let this_node = numbers[node.boot().node as usize].saturating_sub(1);
        // Each node's members begin where those of the one before end.
        let mut next = 0;
        let is_in_order = nodes.iter().all(|members| {
            let first = next;
            next += members.len();
            members[0] as usize == first && members[members.len() - 1] as usize + 1 == next
        });
        let most = nodes.iter().map(Vec::len).max().unwrap_or(0) as u32;
        Some(Self { is_in_order, nodes, node_of, this_node, most })
    }

    /// Each of the members for itself, as `me` sees them.
    fn of_each(members: &[Peer], me: Peer) -> Option<Self> {
        let this_node = members.iter().position(|&member| member == me)? as u32;
        let numbers = 0..members.len() as u32;
        let nodes = numbers.clone().map(|member| vec![member]).collect();
        Some(Self { nodes, node_of: numbers.collect(), this_node, is_in_order: true, most: 1 })
    }

    /// Members on this node.
    pub(crate) fn local_size(&self) -> usize {
        self.local_members().len()
    }

    /// The members on this node, in ascending order.
    pub(crate) fn local_members(&self) -> &[u32] {
        &self.nodes[self.this_node()]
    }

    /// Number of members.
    pub(crate) fn size(&self) -> usize {
        self.node_of.len()
    }

    /// Number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The members of a node, in ascending order.
    pub(crate) fn members(&self, node: usize) -> &[u32] {
        &self.nodes[node]
    }

    /// The members of each other node.
    pub(crate) fn other_nodes(&self) -> impl Iterator<Item = &[u32]> {
        let others = self.nodes.iter().enumerate();
        let others = others.filter(|&(node, _)| node != self.this_node());
        others.map(|(_, members)| &members[..])
    }

    /// Whether some node has several members.
    pub(crate) fn shares_nodes(&self) -> bool {
        self.nodes.len() < self.node_of.len()
    }

    /// How many members the node with most of them has.
    pub(crate) fn most_members(&self) -> usize {
        self.most as usize
    }

    /// The number of a member's node, which is its place among the leaders.
    pub(crate) fn node_of(&self, member: usize) -> usize {
        self.node_of[member] as usize
    }

    /// This node's number.
    pub(crate) fn this_node(&self) -> usize {
        self.this_node as usize
    }

    /// The place of a member of this node in the group of its members.
    pub(crate) fn local_rank(&self, member: usize) -> u32 {
        let place = self.local_members().binary_search(&(member as u32));
        place.expect("the member lives here") as u32
    }

    /// Whether every node has consecutive members.
    pub(crate) fn is_in_order(&self) -> bool {
        self.is_in_order
    }
}

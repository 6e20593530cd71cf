//! What the members of a communicator share on a node, whether it spans nodes or not.

use super::hierarchy::Hierarchy;
use super::local::{LocalGroup, LocalShared};
use super::node_map::NodeMap;
use super::roster::Roster;
use crate::args::Label;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use cohort_base::Peer;
use cohort_base::lock::FutexLock;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_core::Owner;
use cohort_core::node::Node;
use cohort_core::rank::Rank;
use core::ops::Deref;
use core::ptr::NonNull;

/// What the members of a communicator share.
pub struct CommShared {
    node: &'static Node,
    context: u32,
    left: AtomicU32,
    roster: Roster,
    members: Members,
}

/// Where the members are, and what those on this node share. In two steps, so that one comparison tells the first
/// kind, which is the fastest, from all others.
enum Members {
    OneNode(LocalShared),
    Other(Others),
}

/// Members whose collectives do more.
enum Others {
    /// All on this node, and their arguments are compared.
    Compared(LocalShared),
    Nodes(Hierarchy),
}

/// One member's view of the communicator it calls a collective on.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// The witness of the call, and so the calling rank.
    pub owner: Owner<'a>,
    /// The communicator's collective context.
    pub context: u32,
    /// The caller's rank in the communicator.
    pub me: u32,
    /// The members, by rank in the communicator.
    pub world: &'a [Peer],
    /// What the members share.
    pub shared: &'a CommShared,
}

/// One member's view of a group that spans nodes, in a call that blocks.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) group: &'a Group<'a>,
    /// What its posts and messages bear.
    pub(crate) label: Label,
}

impl<'a> Caller<'a> {
    /// The group of the caller's node's members.
    pub(crate) fn local(&self, hierarchy: &'a Hierarchy) -> LocalGroup<'a> {
        hierarchy.local(self.group.owner, self.group.me, self.label)
    }
}

impl<'a> Deref for Caller<'a> {
    type Target = Group<'a>;

    fn deref(&self) -> &Group<'a> {
        self.group
    }
}

/// Where the members of a group are.
pub(crate) enum Extent<'a> {
    /// All on the caller's node.
    OneNode(LocalGroup<'a>),
    /// All on the caller's node, and their arguments are compared (`COHORT_CHECK=members`).
    Compared(LocalGroup<'a>),
    /// On several.
    Nodes(&'a Hierarchy),
}

impl<'a> Group<'a> {
    /// The calling rank.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> &'a Rank {
        self.owner.rank()
    }

    /// Number of members.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.world.len()
    }

    /// The caller's rank, as an index.
    #[inline]
    pub(crate) fn me(&self) -> usize {
        self.me as usize
    }

    /// Where the members are, for a call with this label.
    #[inline]
    pub(crate) fn extent(&self, label: Label) -> Extent<'a> {
        let local = |shared| LocalGroup { owner: self.owner, me: self.me, members: self.world, shared, label };
        match &self.shared.members {
            Members::OneNode(shared) => Extent::OneNode(local(shared)),
            Members::Other(Others::Compared(shared)) => Extent::Compared(local(shared)),
            Members::Other(Others::Nodes(hierarchy)) => Extent::Nodes(hierarchy),
        }
    }
}

impl CommShared {
    fn new(node: &'static Node, context: u32, roster: Roster, maps: &mut Maps) -> Self {
        let members = match maps.enter(node, &roster) {
            Some(map) => Members::Other(Others::Nodes(Hierarchy::new(map, roster.peers(), context, node.is_crowded()))),
            None => {
                let size = roster.peers().len() as u32;
                let local = LocalShared::new(size, context, node.is_crowded());
                match node.settings().check_members && size > 1 {
                    true => Members::Other(Others::Compared(local)),
                    false => Members::OneNode(local),
                }
            }
        };
        Self { node, context, left: AtomicU32::new(0), roster, members }
    }

    fn key(&self) -> Key {
        (self.context, self.roster.peers()[0], address_of(self.node))
    }

    /// The members: one list for all ranks of the node.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Ends one member's use, which must not touch it any more; the last of all members frees
    /// it.
    pub fn leave(&'static self, _: Owner<'_>) {
        TABLE.with(|table| {
            if self.left.fetch_add(1, Ordering::Relaxed) + 1 < self.size() {
                return;
            }
            if let Some(Entrant(last)) = table.shared.remove(&self.key()) {
                table.maps.leave(self.node, &self.roster);
                // SAFETY: leaked in `enter`; every member has left, and the list forgot it.
                drop(unsafe { Box::from_raw(last.as_ptr()) });
            }
        });
    }

    /// Number of members on this node.
    #[must_use]
    pub fn size(&self) -> u32 {
        match &self.members {
            Members::OneNode(shared) | Members::Other(Others::Compared(shared)) => shared.size(),
            Members::Other(Others::Nodes(hierarchy)) => hierarchy.local_size() as u32,
        }
    }

    /// [`CommShared::of_group`] of these members.
    #[must_use]
    pub fn of(owner: Owner<'_>, context: u32, members: &[Peer]) -> &'static Self {
        Self::of_group(owner, context, members[0], || Roster::new(members.into()))
    }

    /// The shared part of the communicator with this (collective) context number whose member 0 is `first`;
    /// groups without a common member may use the same number. The first member that asks makes it,
    /// from what `roster` gives. Each of the members on this node asks once and later calls
    /// [`CommShared::leave`] once.
    #[must_use]
    pub fn of_group(owner: Owner<'_>, context: u32, first: Peer, roster: impl FnOnce() -> Roster) -> &'static Self {
        let node = owner.rank().node();
        TABLE.with(|table| {
            let Table { shared, maps } = table;
            let entry = shared.entry((context, first, address_of(node)));
            let Entrant(shared) = entry.or_insert_with(|| {
                let shared = Box::new(Self::new(node, context, roster(), maps));
                debug_assert!(shared.roster.peers()[0] == first, "member 0 has its place");
                Entrant(NonNull::from(Box::leak(shared)))
            });
            // SAFETY: it outlives this member's `leave`.
            unsafe { shared.as_ref() }
        })
    }
}

/// The shared parts in use, of all nodes. Owner-only: it allocates.
static TABLE: FutexLock<Table> = FutexLock::new(Table { shared: BTreeMap::new(), maps: Maps(BTreeMap::new()) });

/// Context, member 0, and node.
type Key = (u32, Peer, usize);

/// What tells nodes apart in one process.
fn address_of(node: &Node) -> usize {
    core::ptr::from_ref(node).addr()
}

/// Found in a few steps, however many communicators there are.
struct Table {
    shared: BTreeMap<Key, Entrant>,
    maps: Maps,
}

/// Where the members of lists live that are not all on one node: one map for all communicators with the same list.
struct Maps(BTreeMap<(usize, usize), Known>);

/// A map of a list, which is kept so that no other list gets its address.
struct Known {
    _list: Arc<[Peer]>,
    map: Arc<NodeMap>,
    /// Communicators that use it.
    users: u32,
}

impl Maps {
    fn key(node: &Node, roster: &Roster) -> (usize, usize) {
        (roster.peers().as_ptr().addr(), address_of(node))
    }

    /// The map of these members for one communicator more; `None` if they are all on the node.
    fn enter(&mut self, node: &'static Node, roster: &Roster) -> Option<Arc<NodeMap>> {
        let key = Self::key(node, roster);
        if let Some(known) = self.0.get_mut(&key) {
            known.users += 1;
            return Some(known.map.clone());
        }
        let map = Arc::new(NodeMap::of(node, roster.peers())?);
        let known = Known { _list: roster.list(), map: map.clone(), users: 1 };
        self.0.insert(key, known);
        Some(map)
    }

    /// A communicator with these members is no more.
    fn leave(&mut self, node: &Node, roster: &Roster) {
        let key = Self::key(node, roster);
        let Some(known) = self.0.get_mut(&key) else {
            return;
        };
        known.users -= 1;
        if known.users == 0 {
            self.0.remove(&key);
        }
    }
}

/// A shared part that the table keeps.
struct Entrant(NonNull<CommShared>);

// SAFETY: shared parts are `Sync`.
unsafe impl Send for Entrant {}

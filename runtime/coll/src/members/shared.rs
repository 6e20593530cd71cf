//! What the members of a communicator share on a node, whether it spans nodes or not.

use super::hierarchy::Hierarchy;
use super::local::{LocalGroup, LocalShared};
use super::node_map::NodeMap;
use super::roster::Roster;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_base::lock::FutexLock;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_core::Owner;
use cohort_core::node::Node;
use cohort_core::rank::Rank;
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

    /// Where the members are.
    #[inline]
    pub(crate) fn extent(&self) -> Extent<'a> {
        let local = |shared| LocalGroup {
            owner: self.owner,
            me: self.me,
            members: self.world,
            shared,
        };
        match &self.shared.members {
            Members::OneNode(shared) => Extent::OneNode(local(shared)),
            Members::Other(Others::Compared(shared)) => Extent::Compared(local(shared)),
            Members::Other(Others::Nodes(hierarchy)) => Extent::Nodes(hierarchy),
        }
    }

    /// The group of the caller's node's members.
    pub(crate) fn local(&self, hierarchy: &'a Hierarchy) -> LocalGroup<'a> {
        hierarchy.local(self.owner, self.me)
    }
}

impl CommShared {
    /// `alike` are others, one of which may have the same members.
    fn new(node: &'static Node, context: u32, roster: Roster, alike: &[Entrant]) -> Self {
        // SAFETY: members of the list live until their last `leave` removes them.
        let mut alike = alike.iter().map(|entry| unsafe { entry.0.as_ref() });
        let known = alike
            .find(|other| core::ptr::eq(other.node, node) && other.roster.is_same_list(&roster));
        let map = match known {
            Some(known) => known.map(),
            None => NodeMap::of(node, roster.peers()).map(Arc::new),
        };
        let members = match map {
            Some(map) => {
                Members::Other(Others::Nodes(Hierarchy::new(map, roster.peers(), context)))
            }
            None => {
                let size = roster.peers().len() as u32;
                match node.settings().check_members && size > 1 {
                    true => Members::Other(Others::Compared(LocalShared::new(size, context))),
                    false => Members::OneNode(LocalShared::new(size, context)),
                }
            }
        };
        Self {
            node,
            context,
            left: AtomicU32::new(0),
            roster,
            members,
        }
    }

    /// Where the members live, if not all on this node.
    fn map(&self) -> Option<Arc<NodeMap>> {
        match &self.members {
            Members::OneNode(_) | Members::Other(Others::Compared(_)) => None,
            Members::Other(Others::Nodes(hierarchy)) => Some(hierarchy.map()),
        }
    }

    /// The members: one list for all ranks of the node.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Ends one member's use, which must not touch it any more; the last of all members frees
    /// it.
    pub fn leave(&'static self, _: Owner<'_>) {
        TABLE.with(|list| {
            if self.left.fetch_add(1, Ordering::Relaxed) + 1 < self.size() {
                return;
            }
            let is_this = |entry: &Entrant| entry.0 == NonNull::from(self);
            if let Some(index) = list.iter().position(is_this) {
                let Entrant(last) = list.swap_remove(index);
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
    pub fn of_group(
        owner: Owner<'_>,
        context: u32,
        first: Peer,
        roster: impl FnOnce() -> Roster,
    ) -> &'static Self {
        let node = owner.rank().node();
        TABLE.with(|list| {
            let found = list.iter().map(|entry| entry.0).find(|shared| {
                // SAFETY: members of the list live until their last `leave` removes them.
                let shared = unsafe { shared.as_ref() };
                shared.context == context
                    && core::ptr::eq(shared.node, node)
                    && shared.roster.peers()[0] == first
            });
            let shared = found.unwrap_or_else(|| {
                let shared = Box::new(Self::new(node, context, roster(), list));
                let shared = NonNull::from(Box::leak(shared));
                list.push(Entrant(shared));
                shared
            });
            // SAFETY: it outlives this member's `leave`.
            unsafe { shared.as_ref() }
        })
    }
}

/// The shared parts in use, of all nodes. Owner-only: it allocates.
static TABLE: FutexLock<Vec<Entrant>> = FutexLock::new(Vec::new());

/// A shared part that the table keeps.
struct Entrant(NonNull<CommShared>);

// SAFETY: shared parts are `Sync`.
unsafe impl Send for Entrant {}

//! What the members on one node share of a communicator that spans nodes.

use super::local::{LocalGroup, LocalShared};
use super::node_map::NodeMap;
use crate::args::Label;
use crate::meeting::{Link, release_cursor};
use crate::schedule::node_meeting::{self, NodeMeeting};
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use cohort_core::Owner;
use core::ops::Deref;
use core::ptr::null_mut;

/// Where the members live, and what those on this node share.
pub(crate) struct Hierarchy {
    map: Arc<NodeMap>,
    /// This node's members.
    members: Vec<Peer>,
    shared: LocalShared,
    /// Where their nonblocking collectives meet of which one of them has the schedule.
    meetings: Link<node_meeting::Part, node_meeting::Plan>,
    /// What each of them has begun.
    begun: Vec<Begun>,
}

/// How many operations a member has begun in one communicator.
#[derive(Debug, Default)]
pub struct Count {
    nonblocking: AtomicU32,
    persistent: AtomicU32,
}

impl Count {
    /// The number of the next nonblocking operation, the same at all members. Relaxed, as that of a persistent one: one
    /// thread of the member at a time is here, as MPI demands.
    pub(crate) fn next_nonblocking(&self) -> u32 {
        self.nonblocking.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of the next persistent operation, the same at all members.
    pub(crate) fn next_persistent(&self) -> u32 {
        self.persistent.fetch_add(1, Ordering::Relaxed)
    }
}

/// Operations that a member has begun.
struct Begun {
    count: Count,
    /// Its cursor in the chain of meetings.
    cursor: AtomicPtr<NodeMeeting>,
}

impl Hierarchy {
    /// Of the communicator of `members`, who live where the map says. Owner-only: it allocates.
    pub(crate) fn new(map: Arc<NodeMap>, members: &[Peer], context: u32, is_crowded: bool) -> Self {
        let local = map.local_members().iter();
        let local: Vec<Peer> = local.map(|&member| members[member as usize]).collect();
        let begun = local.iter().map(|_| Begun { count: Count::default(), cursor: AtomicPtr::new(null_mut()) });
        Self {
            begun: begun.collect(),
            map,
            shared: LocalShared::new(local.len() as u32, context, is_crowded),
            members: local,
            meetings: Link::new(),
        }
    }

    /// The number of a member's next nonblocking collective, the same at all members.
    pub(crate) fn next_number(&self, me: u32) -> u32 {
        self.begun(me).count.next_nonblocking()
    }

    /// The number of a member's next persistent collective, the same at all members.
    pub(crate) fn next_persistent(&self, me: u32) -> u32 {
        self.begun(me).count.next_persistent()
    }

    fn begun(&self, me: u32) -> &Begun {
        &self.begun[self.local_rank(me as usize) as usize]
    }

    /// A member's place in the chain of meetings.
    pub(crate) fn place(&self, me: u32) -> node_meeting::Place<'_> {
        node_meeting::Place {
            first: &self.meetings,
            cursor: &self.begun(me).cursor,
            me: self.local_rank(me as usize),
            size: self.members.len() as u32,
        }
    }

    /// Where the members live, for longer than the communicator may last.
    pub(crate) fn map(&self) -> Arc<NodeMap> {
        self.map.clone()
    }

    /// The group of this node's members, as member `me`, whose rank is `rank`, sees it.
    pub(crate) fn local<'a>(&'a self, owner: Owner<'a>, me: u32, label: Label) -> LocalGroup<'a> {
        LocalGroup { owner, me: self.local_rank(me as usize), members: &self.members, shared: &self.shared, label }
    }
}

impl Deref for Hierarchy {
    type Target = NodeMap;

    fn deref(&self) -> &NodeMap {
        &self.map
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        for begun in &self.begun {
            release_cursor(&begun.cursor);
        }
    }
}

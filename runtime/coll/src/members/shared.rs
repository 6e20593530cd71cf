//! What the members of a communicator share on a node, whether it spans nodes or not.

use super::hierarchy::Hierarchy;
use super::local::{LocalGroup, LocalShared};
use super::node_map::NodeMap;
use super::roster::Roster;
use crate::Coll;
use crate::args::Label;
use crate::schedule::rank_in_own_group;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use cohort_base::Peer;
use cohort_base::lock::FutexLock;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_core::Owner;
use cohort_core::Verdict;
use cohort_core::node::Node;
use cohort_core::rank::Rank;
use core::ops::Deref;
use core::ptr::NonNull;

/// What the members of a communicator share.
pub struct CommShared {
    node: &'static Node,
    context: u32,
    /// The rank that has it for itself, where ranks survive each other.
    own: Option<Peer>,
    left: AtomicU32,
    roster: Roster,
    members: Members,
    acknowledged: AtomicU32,
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

    /// The caller's rank among how many members.
    #[inline]
    #[must_use]
    pub fn place(&self) -> (u32, u32) {
        (self.me, self.world.len() as u32)
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
    fn new(rank: &Rank, context: u32, roster: Roster, maps: &mut Maps) -> Self {
        let node = rank.node();
        let members = match maps.enter(rank, &roster) {
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
        let own = node.survives().then(|| rank.peer());
        Self { node, context, own, left: AtomicU32::new(0), roster, members, acknowledged: AtomicU32::new(0) }
    }

    fn key(&self) -> Key {
        (self.context, self.own.unwrap_or(self.roster.peers()[0]), address_of(self.node))
    }

    /// Failures of the node that the program has acknowledged for this communicator: the first ones. Of a rank that
    /// survives others.
    #[must_use]
    pub fn acknowledged(&self) -> &AtomicU32 {
        &self.acknowledged
    }

    /// The members: one list for all ranks of the node.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Ends one member's use, which must not touch it any more; the last of all members frees
    /// it.
    pub fn leave(&'static self, owner: Owner<'_>) {
        table_of(owner.rank()).with(|table| {
            if self.left.fetch_add(1, Ordering::Relaxed) + 1 < self.size() {
                return;
            }
            if let Some(Entrant(last)) = table.shared.remove(&self.key()) {
                table.maps.leave((self.node, self.own), &self.roster);
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
        table_of(owner.rank()).with(|table| {
            let Table { shared, maps, .. } = table;
            let first_of_key = if node.survives() { owner.rank().peer() } else { first };
            let entry = shared.entry((context, first_of_key, address_of(node)));
            let Entrant(shared) = entry.or_insert_with(|| {
                let shared = Box::new(Self::new(owner.rank(), context, roster(), maps));
                debug_assert!(shared.roster.peers()[0] == first, "member 0 has its place");
                Entrant(NonNull::from(Box::leak(shared)))
            });
            // SAFETY: it outlives this member's `leave`.
            unsafe { shared.as_ref() }
        })
    }
}

/// The shared parts in use, of all nodes. Owner-only: it allocates.
static TABLE: FutexLock<Table> = FutexLock::new(Table::new());

/// The table of a rank's node; where ranks survive each other each has its own, which nobody else can die with.
fn table_of(rank: &Rank) -> &FutexLock<Table> {
    match rank.node().survives() {
        true => &rank.shared::<Coll>().table,
        false => &TABLE,
    }
}

/// Context, member 0, and node. Where ranks survive each other, each has its own part: then it is the rank.
type Key = (u32, Peer, usize);

/// What tells nodes apart in one process.
fn address_of(node: &Node) -> usize {
    core::ptr::from_ref(node).addr()
}

/// Found in a few steps, however many communicators there are.
#[derive(Debug)]
pub(crate) struct Table {
    shared: BTreeMap<Key, Entrant>,
    maps: Maps,
    /// Where ranks survive each other: whom messages of an intercommunicator come from, by its collective context.
    remote: BTreeMap<Key, (Roster, NonNull<CommShared>)>,
}

// SAFETY: what the pointers lead to is `Sync`.
unsafe impl Send for Table {}

impl Table {
    /// Without communicators.
    pub(crate) const fn new() -> Self {
        Self { shared: BTreeMap::new(), maps: Maps(BTreeMap::new()), remote: BTreeMap::new() }
    }

    /// The collective context between the groups of an intercommunicator whose own group shares this part.
    fn between(&self, part: NonNull<CommShared>) -> Option<u32> {
        self.remote.iter().find(|&(_, &(_, local))| local == part).map(|(&(context, ..), _)| context)
    }
}

/// Whom messages in the contexts of an intercommunicator come from, and what the own group shares; for [`judge`].
pub fn know_remote(owner: Owner<'_>, context: u32, remote: &Roster, local: &'static CommShared) {
    if owner.rank().node().survives() {
        let key = (context, owner.rank().peer(), address_of(owner.rank().node()));
        let _ = table_of(owner.rank()).lock().remote.insert(key, (remote.clone(), NonNull::from(local)));
    }
}

/// The end of that.
pub fn forget_remote(owner: Owner<'_>, context: u32) {
    if owner.rank().node().survives() {
        let key = (context, owner.rank().peer(), address_of(owner.rank().node()));
        let _ = table_of(owner.rank()).lock().remote.remove(&key);
    }
}

/// What becomes of a receive of a rank that survives others: see [`cohort_core::Judge`].
pub(crate) fn judge(rank: &Rank, context: u32, source: Option<i32>) -> Verdict {
    let node = rank.node();
    if node.is_closed(context) {
        return match node.is_closed(context & !1) {
            true => Verdict::Revoked,
            false => Verdict::Failed,
        };
    }
    let key = (context | 1, rank.peer(), address_of(node));
    let table = table_of(rank).lock();
    let found = match table.remote.get(&key) {
        Some((remote, local)) => Some((remote, *local)),
        // SAFETY: parts in the table are there.
        None => table.shared.get(&key).map(|Entrant(part)| (unsafe { &part.as_ref().roster }, *part)),
    };
    let Some((roster, part)) = found else {
        return Verdict::Fine;
    };
    // Steps within a group of an intercommunicator wait for its leader, who gives up when a message between the groups
    // fails: then its members do, too.
    let between = table.between(part).filter(|&between| between != context | 1 && node.is_closed(between));
    if let Some(between) = between {
        return match node.is_closed(between & !1) {
            true => Verdict::Revoked,
            false => Verdict::Failed,
        };
    }
    let place = |peer: &Peer| node.failure_of(*peer);
    match source {
        Some(source) => {
            let (roster, source) = match rank_in_own_group(source) {
                // SAFETY: parts in the table are there, and an intercommunicator ends before its own group's part.
                Some(own) => (unsafe { &part.as_ref().roster }, own),
                None => (roster, source),
            };
            match roster.peers().get(source as usize).and_then(place) {
                Some(_) => Verdict::Failed,
                None => Verdict::Fine,
            }
        }
        None => {
            // SAFETY: parts in the table are there, and an intercommunicator ends before its own group's part.
            let acknowledged = unsafe { part.as_ref() }.acknowledged.load(Ordering::Relaxed);
            match roster.peers().iter().filter_map(place).any(|number| number >= acknowledged) {
                true => Verdict::Pending,
                false => Verdict::Fine,
            }
        }
    }
}

/// See [`cohort_core::failures::Between`].
pub(crate) fn between(rank: &Rank, context: u32) -> Option<u32> {
    let table = table_of(rank).lock();
    let &Entrant(part) = table.shared.get(&(context, rank.peer(), address_of(rank.node())))?;
    table.between(part).filter(|&between| between != context)
}

/// Where the members of lists live that are not all on one node: one map for all communicators with the same list.
#[derive(Debug)]
struct Maps(BTreeMap<(usize, usize, Option<Peer>), Known>);

/// A map of a list, which is kept so that no other list gets its address.
#[derive(Debug)]
struct Known {
    _list: Arc<[Peer]>,
    map: Arc<NodeMap>,
    /// Communicators that use it.
    users: u32,
}

impl Maps {
    fn key((node, own): (&Node, Option<Peer>), roster: &Roster) -> (usize, usize, Option<Peer>) {
        (roster.peers().as_ptr().addr(), address_of(node), own)
    }

    /// The map of these members for one communicator more; `None` if they are all on the node.
    fn enter(&mut self, rank: &Rank, roster: &Roster) -> Option<Arc<NodeMap>> {
        let node = rank.node();
        let key = Self::key((node, node.survives().then(|| rank.peer())), roster);
        if let Some(known) = self.0.get_mut(&key) {
            known.users += 1;
            return Some(known.map.clone());
        }
        let map = Arc::new(NodeMap::of(node, roster.peers(), rank.peer())?);
        let known = Known { _list: roster.list(), map: map.clone(), users: 1 };
        self.0.insert(key, known);
        Some(map)
    }

    /// A communicator with these members is no more.
    fn leave(&mut self, of: (&Node, Option<Peer>), roster: &Roster) {
        let key = Self::key(of, roster);
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
#[derive(Debug)]
struct Entrant(NonNull<CommShared>);

// SAFETY: shared parts are `Sync`.
unsafe impl Send for Entrant {}

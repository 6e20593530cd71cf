//! What the members of a window on one node share.
//!
//! Each member of this node has a *home* here: its lock, the memory that it has attached, and for
//! every member of the window the counters that this one opens for it ([`crate::grants`]). What
//! only the owner counts is in its own part (`window.rs`). Arrivals at fences are counted for all
//! members together.

use crate::element::Turns;
use crate::error::RmaError;
use crate::grants::{Arrivals, GrantCounter, Pair};
use crate::lock::FairLock;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use cohort_alloc::Heap;
use cohort_base::Peer;
use cohort_base::heir::HeirLock;
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use cohort_core::node::Node;
use cohort_core::owner::Owner;
use core::ptr::NonNull;

/// One member's part of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// Address in its own process; 0 in dynamic windows.
    pub base: usize,
    /// Bytes.
    pub size: u64,
    /// Bytes of a displacement unit.
    pub unit: i64,
}

/// Memory that a member has attached.
#[derive(Clone, Copy, Debug)]
struct Region {
    from: u64,
    to: u64,
}

impl Region {
    /// Such a region overlaps none.
    fn is_empty(&self) -> bool {
        self.from == self.to
    }

    fn overlaps(&self, other: &Self) -> bool {
        !self.is_empty() && !other.is_empty() && self.from < other.to && other.from < self.to
    }
}

/// What a member of this node has in the shared part.
pub(super) struct MemberHome {
    pub(super) lock: FairLock,
    /// Accumulates at the member.
    pub(super) turns: Turns,
    pairs: Box<[Pair]>,
    /// Fences that all members have arrived at.
    pub(super) fences: GrantCounter,
    /// Times that others wanted somebody called for the owner.
    pub(super) calls: AtomicU64,
    /// Used under a claim of the rank that looks, which no signal handler of it can have too.
    regions: HeirLock<Vec<Region>>,
}

/// A block of a rank's heap that goes with the window.
#[derive(Clone, Copy)]
struct Block(NonNull<u8>);

// SAFETY: blocks may be freed from any task.
unsafe impl Send for Block {}

/// See the module page.
pub struct WinShared {
    node: &'static Node,
    number: u32,
    members: Box<[Peer]>,
    parts: Box<[Part]>,
    is_dynamic: bool,
    /// For each member its home, if it lives here.
    homes: Box<[Option<Box<MemberHome>>]>,
    /// Members of this node.
    here: u32,
    left: AtomicU32,
    blocks: HeirLock<Vec<Block>>,
    /// Arrivals of members of this node at fences.
    pub(super) arrivals: Arrivals,
    /// Arrivals of whole other nodes.
    pub(super) nodes_arrived: Arrivals,
    /// The first member of each other node with members.
    delegates: Box<[u32]>,
}

impl MemberHome {
    fn new(members: usize) -> Self {
        Self {
            lock: FairLock::new(members as u32),
            turns: Turns::default(),
            pairs: Pair::untouched(members),
            fences: GrantCounter::default(),
            calls: AtomicU64::new(0),
            regions: HeirLock::new(Vec::new()),
        }
    }

    /// What `member` tells the owner of this home.
    pub(super) fn from(&self, member: u32) -> &Pair {
        &self.pairs[member as usize]
    }

    /// Whether all of `from..to` is attached, maybe in several pieces. Under a claim of the caller's.
    pub(super) fn has_attached(&self, from: u64, to: u64) -> bool {
        self.regions.with(|regions| {
            let mut at = from;
            while at < to {
                let holds = |region: &&Region| region.from <= at && at < region.to;
                match regions.iter().find(holds) {
                    Some(region) => at = region.to,
                    None => return false,
                }
            }
            true
        })
    }

    /// `MPI_Win_attach`. Under the owner's claim.
    pub(super) fn attach(&self, _owner: Owner<'_>, from: u64, size: u64) -> Result<(), RmaError> {
        let region = Region { from, to: from.saturating_add(size) };
        self.regions.with(|regions| {
            if regions.iter().any(|other| region.overlaps(other)) {
                return Err(RmaError::Overlaps { from });
            }
            regions.push(region);
            Ok(())
        })
    }

    /// `MPI_Win_detach`. Under the owner's claim.
    pub(super) fn detach(&self, from: u64) -> Result<(), RmaError> {
        self.regions.with(|regions| {
            // Several may begin there, of which one has bytes.
            let found = regions.iter().enumerate().filter(|(_, region)| region.from == from);
            let place = found.min_by_key(|(_, region)| region.is_empty()).map(|(place, _)| place);
            let place = place.ok_or(RmaError::NotAttached { target: 0, from, to: from })?;
            regions.swap_remove(place);
            Ok(())
        })
    }
}

/// What a window is made of; the same at every member.
pub struct Plan<'a> {
    /// A number that no other window or communicator has.
    pub number: u32,
    /// The members.
    pub members: &'a [Peer],
    /// Makes the list of their parts; called for one member of each node.
    pub parts: &'a dyn Fn() -> Box<[Part]>,
    /// Whether memory is attached later (`MPI_Win_create_dynamic`).
    pub is_dynamic: bool,
}

impl WinShared {
    fn new(node: &'static Node, plan: &Plan<'_>) -> Self {
        let count = plan.members.len();
        let home = |&member: &Peer| node.local(member).map(|_| Box::new(MemberHome::new(count)));
        let homes: Box<[_]> = plan.members.iter().map(home).collect();
        let here = homes.iter().flatten().count() as u32;
        let mut is_known = vec![false; node.home_nodes() as usize];
        let mut delegates = Vec::new();
        for (member, &peer) in (0_u32..).zip(plan.members) {
            let is_known = &mut is_known[node.home_node(peer) as usize];
            if node.local(peer).is_none() && !*is_known {
                *is_known = true;
                delegates.push(member);
            }
        }
        Self {
            node,
            number: plan.number,
            members: plan.members.into(),
            parts: (plan.parts)(),
            is_dynamic: plan.is_dynamic,
            homes,
            here,
            left: AtomicU32::new(0),
            blocks: HeirLock::new(Vec::new()),
            arrivals: Arrivals::of(u64::from(here)),
            nodes_arrived: Arrivals::of(delegates.len() as u64),
            delegates: delegates.into(),
        }
    }

    /// A number that no other window or communicator of the job has.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The context of messages of the window's communicator, which is closed when the window is revoked.
    pub(super) fn context(&self) -> u32 {
        self.number * 2
    }

    /// The members.
    #[must_use]
    pub fn members(&self) -> &[Peer] {
        &self.members
    }

    /// One member's part. Panics when there is no such member.
    #[must_use]
    pub fn part(&self, member: u32) -> Part {
        self.parts[member as usize]
    }

    /// All members' parts.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether memory is attached later.
    #[inline]
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.is_dynamic
    }

    /// The home of a member of this node.
    #[inline]
    pub(super) fn home(&self, member: u32) -> Option<&MemberHome> {
        self.homes[member as usize].as_deref()
    }

    /// [`WinShared::home`] of any number.
    #[inline(always)]
    pub(super) fn home_of(&self, member: u32) -> Option<&MemberHome> {
        self.homes.get(member as usize)?.as_deref()
    }

    /// How often others wanted somebody called for a member of this node.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn calls(&self, member: u32) -> Option<u64> {
        let home = self.home(member)?;
        Some(home.calls.load(Ordering::Relaxed))
    }

    /// The first member of each other node.
    pub(super) fn delegates(&self) -> &[u32] {
        &self.delegates
    }

    /// Has a block of a rank's heap freed with the window.
    pub fn keep(&self, block: NonNull<u8>) {
        self.blocks.with(|blocks| blocks.push(Block(block)));
    }

    /// Whether members live on several nodes.
    pub(super) fn spans_nodes(&self) -> bool {
        !self.delegates.is_empty()
    }

    /// Whether everybody has arrived at a fence.
    pub(super) fn has_passed(&self, number: u64) -> bool {
        self.arrivals.have_passed(number) && self.nodes_arrived.have_passed(number)
    }

    /// The last fence at which everybody has arrived, for one whose arrival was the last of this
    /// node or of another one.
    pub(super) fn last_passed(&self) -> u64 {
        // Of the last arrival here and the last one elsewhere, one sees the other.
        fence(Ordering::SeqCst);
        let passed = self.nodes_arrived.last_passed();
        passed.min(self.arrivals.last_passed())
    }

    /// Ends one member's use; the last of this node frees it. Owner-only.
    pub(super) fn leave(&'static self, _owner: Owner<'_>) {
        let forgotten = TABLE.with(|table| {
            let is_last = self.left.fetch_add(1, Ordering::Relaxed) + 1 >= self.here;
            is_last.then(|| table.remove(&key_of(self.number, self.node))).flatten()
        });
        if let Some(Entrant(last)) = forgotten {
            // SAFETY: leaked in `window_shared`; every member has left, and the table forgot it.
            let last = unsafe { Box::from_raw(last.as_ptr()) };
            last.blocks.with(|blocks| {
                for Block(block) in blocks.drain(..) {
                    // SAFETY: it was kept for the window, which is no more.
                    unsafe { Heap::free(block) };
                }
            });
        }
    }
}

/// The shared part of a window; the first member that asks makes it. Each member of this node asks
/// once and later leaves once. Owner-only.
pub(super) fn window_shared(owner: Owner<'static>, plan: &Plan<'_>) -> &'static WinShared {
    let node = owner.rank().node();
    TABLE.with(|table| {
        let entry = table.entry(key_of(plan.number, node));
        let Entrant(shared) = entry.or_insert_with(|| {
            let shared = Box::new(WinShared::new(node, plan));
            Entrant(NonNull::from(Box::leak(shared)))
        });
        // SAFETY: it outlives this member's `leave`.
        unsafe { shared.as_ref() }
    })
}

/// The windows of all nodes. Owner-only: it allocates.
static TABLE: HeirLock<BTreeMap<(u32, usize), Entrant>> = HeirLock::new(BTreeMap::new());

/// A window is known by its number and its node, of which a process may have several.
fn key_of(number: u32, node: &Node) -> (u32, usize) {
    (number, core::ptr::from_ref(node).addr())
}

/// A shared part that the table keeps.
#[derive(Clone, Copy)]
struct Entrant(NonNull<WinShared>);

// SAFETY: shared parts are `Sync`.
unsafe impl Send for Entrant {}

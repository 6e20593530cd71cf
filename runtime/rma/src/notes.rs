//! What members of a window tell each other: notes to other nodes, what is in their packets, and words within the node.

use crate::shared::WinShared;
use cohort_base::sync::atomic::Ordering;
use cohort_core::claim::Claim;
use cohort_net::{Note, post_note};

/// Runs that a piece names.
pub(super) const RUNS_MAX: usize = 32;

/// What a note of a window says; `member` is the rank of its sender in the window's group unless
/// something else is said.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// An exposure epoch grants access.
    Grant = 1,
    /// An access epoch is over.
    Done,
    /// Asks for the receiver's lock; `value` is 1 for an exclusive one.
    Lock,
    /// The lock of `member` is granted.
    Locked,
    /// Gives the receiver's lock back; `value` as for `Lock`.
    Unlock,
    /// All members of the sender's node have arrived at the fence with the number `value`.
    Arrived,
    /// A piece of an operation.
    Piece,
    /// The answer, with what was fetched, if anything; `value` is the place in the stream, or [`REFUSED`].
    Answer,
}

/// The answer to a piece outside of what is attached.
pub(super) const REFUSED: u64 = u64::MAX;

impl Message {
    pub(super) fn of(kind: u8) -> Option<Self> {
        use Message::{Answer, Arrived, Done, Grant, Lock, Locked, Piece, Unlock};
        [Grant, Done, Lock, Locked, Unlock, Arrived, Piece, Answer].into_iter().find(|message| *message as u8 == kind)
    }
}

/// What a piece asks for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Put = 1,
    Get,
    Accumulate,
    FetchAccumulate,
    CompareAndSwap,
}

impl Verb {
    pub(super) fn of(number: u32) -> Option<Self> {
        use Verb::{Accumulate, CompareAndSwap, FetchAccumulate, Get, Put};
        [Put, Get, Accumulate, FetchAccumulate, CompareAndSwap].into_iter().find(|verb| *verb as u32 == number)
    }
}

/// The beginning of a piece's data; runs and operands follow.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) verb: u32,
    /// Handle of the operation, and a datatype of the elements' class.
    pub(super) op: u32,
    pub(super) class: u32,
    pub(super) runs: u32,
    /// Bytes of the target's elements.
    pub(super) length: u64,
}

/// Equal blocks at equal distances in the target's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    pub(super) address: u64,
    pub(super) block: u64,
    pub(super) stride: i64,
    pub(super) count: u64,
}

/// Says something to a member, on this node's behalf or on that of `about`.
pub(super) fn say(claim: &mut Claim<'_>, shared: &WinShared, to: u32, message: Message, about: u32, value: u64) {
    let note = Note { window: shared.number(), kind: message as u8, member: about, id: 0, value };
    post_note(claim, shared.members()[to as usize], note, 0);
}

/// Tells a member of this node that something it may wait for has changed. If it is late for that
/// and computes, somebody is called.
pub(super) fn tell(claim: &Claim<'_>, shared: &WinShared, member: u32, is_late: bool) {
    let node = claim.rank().node();
    let (Some(home), Some(local)) = (shared.home(member), node.local(shared.members()[member as usize])) else {
        return;
    };
    let rank = node.rank(local);
    if is_late {
        // Relaxed: a count, for the owner's check.
        home.calls.fetch_add(1, Ordering::Relaxed);
        rank.call(claim.rank());
    } else {
        rank.notify(claim.rank(), None);
    }
}

/// Tells all members of this node of arrivals at a fence.
pub(super) fn tell_all(claim: &Claim<'_>, shared: &WinShared) {
    let passed = shared.last_passed();
    for member in 0..shared.members().len() as u32 {
        if let Some(home) = shared.home(member) {
            tell(claim, shared, member, home.fences.open_to(passed));
        }
    }
}

/// The lock of `owner`, a member of this node, is granted to `requester`.
pub(super) fn tell_locked(claim: &mut Claim<'_>, shared: &WinShared, owner: u32, requester: u32) {
    match shared.home(requester) {
        Some(home) => {
            let is_late = home.from(owner).locked.open();
            tell(claim, shared, requester, is_late);
        }
        None => say(claim, shared, requester, Message::Locked, owner, 0),
    }
}

/// All members of this node have arrived at a fence: tells the members here and one of each other node.
pub(super) fn tell_arrived(claim: &mut Claim<'_>, shared: &WinShared, me: u32, fence: u64) {
    for &member in shared.delegates() {
        say(claim, shared, member, Message::Arrived, me, fence);
    }
    tell_all(claim, shared);
}

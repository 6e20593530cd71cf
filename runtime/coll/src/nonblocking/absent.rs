//! Members that are not at a row's meeting: how they are woken, and who comes to it for them.
//!
//! A sender of a small reduce or gather leaves when it has posted. If another member begins something larger in that
//! row, it waits at the row's meeting, and somebody comes there with nothing in the sender's place ([`crate::batch`]).
//!
//! Where blocks have any length, one member may give much and the others little. Then somebody comes to the meeting in
//! the place of each that has posted, with what it has posted and keeps: the operation goes on there, for all, though
//! nobody calls MPI any more. A member that stays finds that mark at its entry, and waits for the meeting's end.

use super::opening::{AT_ONCE_MAX, Helpers, is_brief};
use super::plan;
use super::role::Role;
use super::word::{agree, bytes_beside, bytes_in, is_larger, is_varying, kind_in, root_in};
use crate::args::small::MEMBERS_MAX;
use crate::args::{Blocks, Call, Kind, Reduction, Scan};
use crate::batch::SMALL;
use crate::fold::Runner;
use crate::meeting::release;
use crate::members::LocalGroup;
use crate::pool::{Kept, Membership, Operand, Part, Pool, PoolRef, Row, Weight, complete};
use cohort_base::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use cohort_core::claim::Claim;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::wait;
use cohort_datatype::Buffer;
use cohort_datatype::op::{Op, PredefinedOp};
use core::ptr::{NonNull, null_mut};

/// The arguments of who comes to a meeting for the sake of others alone.
fn nothing(kind: Kind, root: u32) -> Call<'static> {
    let buffer = Buffer::EMPTY;
    // SAFETY: blocks without data.
    let blocks = unsafe { Blocks::equal(buffer) };
    let reduction = Reduction { input: None, result: buffer, op: Op::Predefined(PredefinedOp::Sum) };
    match kind {
        Kind::Bcast => Call::Bcast { buffer, root },
        Kind::Gather => Call::Gather { send: Some(buffer), receive: Some(blocks), root, is_even: true },
        Kind::Scatter => Call::Scatter { send: Some(blocks), receive: Some(buffer), root, is_even: true },
        Kind::Allgather => Call::Allgather { send: Some(buffer), receive: blocks },
        Kind::Alltoall => Call::Alltoall { send: Some(blocks), receive: blocks },
        Kind::Reduce => Call::Reduce { reduction, root },
        Kind::Allreduce => Call::Allreduce { reduction },
        // Whose operands differ in length from this one have no step.
        Kind::ReduceScatter => Call::ReduceScatter { reduction, counts: &[0; MEMBERS_MAX as usize] },
        Kind::Scan => Call::Scan { reduction, kind: Scan::Inclusive },
        Kind::Exscan => Call::Scan { reduction, kind: Scan::Exclusive },
        Kind::Barrier | Kind::NeighborAllgather | Kind::NeighborAlltoall => Call::Barrier,
    }
}

/// Makes memory for a copy.
type Alloc<'a> = &'a mut dyn FnMut(usize) -> Option<NonNull<u8>>;

/// After a member has come to the row's meeting: wakes those that have taken the operation for a small one, and comes
/// for those that have left.
pub(super) fn tell_small(claim: &mut Claim<'_>, group: &LocalGroup<'_>, row: &Row) {
    // X2; and the last to come sees the posts of all who sleep, as in `crate::board`.
    fence(Ordering::SeqCst);
    if row.entries().all(|it| it.word() & SMALL == 0) {
        return;
    }
    wake_others(group);
    stand_in_for_all(claim, group, row);
}

/// A member gives much in an operation whose blocks have any length, and has marked its entry: comes to the row's
/// meeting for those that have posted, before its own part, so that it is the last to come if all others have posted.
#[cold]
pub(super) fn bring_small(claim: &mut Claim<'_>, group: &LocalGroup<'_>, row: &Row) {
    // X2.
    fence(Ordering::SeqCst);
    stand_in_for_all(claim, group, row);
}

/// X3.
fn stand_in_for_all(claim: &mut Claim<'_>, group: &LocalGroup<'_>, row: &Row) {
    let own = row.entry(group.me).word();
    for (member, peer) in group.members.iter().enumerate() {
        let rank = group.rank().node().rank(peer.index()).forever();
        stand_in(row, (member as u32, rank), own, &mut |bytes| claim.alloc(bytes));
    }
}

/// Comes to the row's meeting in the place of a member that has left, or is about to, or that goes on at the meeting
/// because of the word `larger` of another one; unless somebody else does. Nothing if the member stays, or there is no
/// meeting.
#[cold]
pub(super) fn stand_in(row: &Row, (member, rank): (u32, &'static Rank), larger: u64, alloc: Alloc<'_>) {
    let entry = row.entry(member);
    let word = entry.word();
    let (kind, ..) = Kind::ALL[kind_in(word) as usize];
    let role = Role::in_kind(kind, root_in(word) == member);
    let goes_on = is_larger(word, larger) && matches!(role, Role::Leaf | Role::Collector | Role::Peer);
    let may_come = word & SMALL != 0 && (role == Role::Sender || goes_on);
    if !may_come || row.meeting().existing().is_none() || !entry.stand_in() {
        return;
    }
    let brought = match role {
        _ if goes_on => Brought { call: *kept(row, member, word).call(), operand: Operand::NONE, is_empty: false },
        _ if is_varying(word) => copied(row, member, word, alloc),
        _ => Brought::nothing(kind, root_in(word)),
    };
    let pool = come(row, (member, rank), brought);
    // Who goes on at the meeting has its reference there.
    if let Some(pool) = pool.filter(|_| !goes_on) {
        // SAFETY: the member's reference, which nobody else gives back.
        unsafe { release(pool) };
    }
}

/// What a member with this word keeps in the row.
fn kept(row: &Row, member: u32, word: u64) -> &Kept {
    let is_root = root_in(word) == member;
    let (kind, ..) = Kind::ALL[kind_in(word) as usize];
    let beside = match Role::in_kind(kind, is_root) {
        Role::Leaf => 0,
        _ => bytes_beside(bytes_in(word)),
    };
    // SAFETY: the member keeps it there (`varying.rs`), as its word says, as long as the operation is under way.
    unsafe { &*row.entry(member).kept().add(beside as usize).cast() }
}

/// What a sender has posted in a gather of blocks of any length, in memory that stays when it has left the row.
fn copied(row: &Row, member: u32, word: u64, alloc: Alloc<'_>) -> Brought {
    let (root, bytes) = (root_in(word), bytes_in(word));
    let Some(block) = alloc(bytes.max(1) as usize) else {
        // Whoever waits for it hears that something is missing.
        return Brought::nothing(Kind::Gather, root);
    };
    // SAFETY: fresh, and so long; the sender has posted so many bytes.
    let send = unsafe {
        block
            .copy_from_nonoverlapping(NonNull::new_unchecked(row.entry(member).data(bytes).cast_mut()), bytes as usize);
        Buffer::of_bytes(block.as_ptr(), bytes)
    };
    let call = Call::Gather { send: Some(send), receive: None, root, is_even: false };
    Brought { call, operand: Operand { data: block.as_ptr(), block: block.as_ptr() }, is_empty: false }
}

/// A sender has posted its word, and leaves: wakes the root if that was the last post. Where members have begun
/// something else it wakes all, and returns which of them has.
///
/// Not inlined: the other operations have their registers for themselves.
#[inline(never)]
pub(super) fn leave(group: &LocalGroup<'_>, row: &Row, (root, word): (u32, u64)) -> Option<u32> {
    // S2, and P3.
    fence(Ordering::SeqCst);
    let mut have_all_posted = true;
    for (member, entry) in row.entries().enumerate() {
        match entry.word() {
            0 => have_all_posted = false,
            other if agree(word, other) => {}
            _ => {
                wake_others(group);
                return Some(member as u32);
            }
        }
    }
    if have_all_posted {
        let root = group.members[root as usize];
        wait::wake(group.rank().node().rank(root.index()));
    }
    None
}

/// Wakes all other members.
#[inline(always)]
pub(super) fn wake_others(group: &LocalGroup<'_>) {
    match group.members.len() {
        2 => wait::wake(group.rank().node().rank(group.members[1 - group.me()].index())),
        _ => wake_many(group),
    }
}

#[inline(never)]
fn wake_many(group: &LocalGroup<'_>) {
    let others = group.members.iter().enumerate();
    for (_, peer) in others.filter(|(it, _)| *it != group.me()) {
        wait::wake(group.rank().node().rank(peer.index()));
    }
}

/// What comes to a meeting for a member.
pub(super) struct Brought {
    call: Call<'static>,
    operand: Operand,
    is_empty: bool,
}

impl Brought {
    /// Arguments for the sake of others alone.
    pub(super) fn nothing(kind: Kind, root: u32) -> Self {
        Self { is_empty: true, ..Self::arguments(nothing(kind, root)) }
    }

    /// These arguments.
    pub(super) fn arguments(call: Call<'static>) -> Self {
        Self { call, operand: Operand::NONE, is_empty: false }
    }
}

/// Comes to the row's meeting for a member, without a request; the member's reference is the caller's to give back.
/// `None`: there is none yet.
pub(super) fn come(row: &Row, (member, rank): (u32, &'static Rank), brought: Brought) -> Option<RecordRef<Pool>> {
    let pool = row.meeting().existing()?;
    let Brought { call, operand, is_empty } = brought;
    let weight = match is_empty {
        true => Weight::default(),
        false => plan::weight_of(&call, member, row.size()),
    };
    let part = Part {
        call,
        operand,
        weight,
        request: null_mut(),
        is_empty,
        rank,
        truncated: AtomicBool::new(false),
        form: None,
        disagreement: AtomicU32::new(0),
    };
    // SAFETY: the member comes once, and the last one opens the meeting.
    unsafe {
        if pool.post(member, part) {
            open(Membership { pool, member });
        }
    }
    Some(pool)
}

/// All have come to the meeting: makes the plan, and does it, or finds somebody who does what is long. Members that
/// have requests have the pool in their lists.
///
/// # Safety
/// The caller was told that this member is the last to come.
unsafe fn open(membership: Membership) {
    let Membership { pool, member } = membership;
    // SAFETY: the caller's promise.
    unsafe {
        let parts = pool.all();
        let (plan, steps) = plan::make(parts);
        let bytes = plan.bytes;
        pool.open(plan, steps);
        if steps == 0 {
            return complete(parts);
        }
        // Thieves that are awake look at members with requests, unless these took the operation for a brief one, of
        // which the last to come is to tell them.
        let size = parts.len() as u32;
        let is_seen = |it: &&Part| !it.request.is_null() && !is_brief(&it.call, it.weight, size);
        match parts.iter().find(is_seen).filter(|_| bytes > AT_ONCE_MAX) {
            Some(listed) => Helpers::wanted(parts, (member, listed.rank), steps).call(),
            None => {
                PoolRef::new(membership, Runner::Owner).work(u32::MAX);
            }
        }
    }
}

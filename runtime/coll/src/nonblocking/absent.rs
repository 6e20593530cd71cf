//! Members that are not at a row's meeting: how they are woken, and who comes to it for them.
//!
//! A sender of a small reduce or gather leaves when it has posted. If another member begins something larger in that
//! row, it waits at the row's meeting, and somebody comes there with nothing in the sender's place ([`crate::batch`]).

use super::plan;
use super::role::Role;
use super::word::{agree, kind_in, root_in};
use crate::args::small::MEMBERS_MAX;
use crate::args::{Blocks, Call, Kind, Reduction, Scan};
use crate::batch::SMALL;
use crate::fold::Runner;
use crate::meeting::release;
use crate::members::LocalGroup;
use crate::pool::{Membership, Operand, Part, Pool, PoolRef, Row, Weight, complete};
use cohort_base::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::wait;
use cohort_datatype::Buffer;
use cohort_datatype::op::{Op, PredefinedOp};
use core::ptr::null_mut;

/// The arguments of who comes to a meeting for the sake of others alone.
pub(super) fn nothing(kind: Kind, root: u32) -> Call<'static> {
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

/// After a member has come to the row's meeting: wakes those that have taken the operation for a small one, and comes
/// for those that have left.
pub(super) fn tell_small(group: &LocalGroup<'_>, row: &Row) {
    // X2; and the last to come sees the posts of all who sleep, as in `crate::board`.
    fence(Ordering::SeqCst);
    if row.entries().all(|it| it.word() & SMALL == 0) {
        return;
    }
    wake_others(group);
    for (member, peer) in group.members.iter().enumerate() {
        let rank = group.rank().node().rank(peer.index()).forever();
        stand_in(row, member as u32, rank);
    }
}

/// Comes to the row's meeting in the place of a member that has left, or is about to, unless somebody else does.
/// Nothing if the member stays, or there is no meeting.
#[cold]
pub(super) fn stand_in(row: &Row, member: u32, rank: &'static Rank) {
    let word = row.entry(member).word();
    let (root, number) = (root_in(word), kind_in(word));
    let kind = [Kind::Reduce, Kind::Gather].into_iter().find(|&it| it as u8 == number);
    let Some(kind) = kind.filter(|_| word & SMALL != 0) else {
        return;
    };
    let leaves = Role::in_kind(kind, root == member) == Role::Sender;
    if !leaves || row.meeting().existing().is_none() || !row.entry(member).stand_in() {
        return;
    }
    if let Some(pool) = come(row, member, rank, nothing(kind, root)) {
        // SAFETY: the member's reference, which nobody else gives back.
        unsafe { release(pool) };
    }
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

/// Comes to the row's meeting for a member, without a request; the member's reference is the caller's to give back.
/// `None`: there is none yet.
pub(super) fn come(row: &Row, member: u32, rank: &'static Rank, call: Call<'static>) -> Option<RecordRef<Pool>> {
    let pool = row.meeting().existing()?;
    let part = Part {
        call,
        operand: Operand::NONE,
        weight: Weight::default(),
        request: null_mut(),
        rank,
        truncated: AtomicBool::new(false),
        form: None,
        disagreement: AtomicU32::new(0),
    };
    // SAFETY: the member comes once, and the last one opens the meeting.
    unsafe {
        if pool.post(member, part) {
            let (plan, steps) = plan::make(pool.all());
            pool.open(plan, steps);
            match steps {
                0 => complete(pool.all()),
                _ => {
                    let membership = Membership { pool, member };
                    PoolRef::new(membership, Runner::Owner).work(u32::MAX);
                }
            }
        }
    }
    Some(pool)
}

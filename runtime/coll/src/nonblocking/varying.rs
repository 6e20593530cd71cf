//! Small operations whose blocks have any length: what their members post and keep.
//!
//! Every member posts what it gives: its block, or a part for each member behind their ends (`args/parts.rs`). So no
//! member needs to know what others expect. One that gives much does not post; then all go on at the row's meeting
//! ([`super::absent`]).

use super::absent;
use super::role::Role;
use super::word::{agree, bytes_beside, is_larger, small_word};
use crate::args::Call;
use crate::args::small::{Agreed, give};
use crate::batch::SIDE_ALIGN;
use crate::members::LocalGroup;
use crate::pool::{Kept, Row, RowOperation};
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_core::EngineError;
use cohort_core::claim::Claim;
use cohort_core::wait;
use core::cell::Cell;
use core::ptr::NonNull;

/// Memory for what the member gives in a row.
#[inline(never)]
pub(super) fn side(
    group: &LocalGroup<'_>,
    row: &Row,
    bytes: u64,
    claim: Option<&mut Claim<'_>>,
) -> Result<NonNull<u8>, EngineError> {
    let side = match claim {
        Some(claim) => row.side(bytes, |bytes| claim.alloc_aligned(bytes, SIDE_ALIGN)),
        None => row.side(bytes, |bytes| group.rank().enter().alloc_aligned(bytes, SIDE_ALIGN)),
    };
    side.ok_or(EngineError::OutOfMemory)
}

/// What became of a post.
pub(super) enum Posted {
    /// Nothing: the member is the root, and another one has chosen that the operation is not small.
    Refused,
    /// It is there.
    There,
    /// The same of a sender, which has found that this member takes part in something else.
    Beside(u32),
}

/// Posts what the member gives, and keeps its arguments for others if it needs what they give.
///
/// # Safety
/// As for [`super::start`]; the row is the member's next one, and what it receives are runs of bytes.
///
/// # Errors
/// No memory; the member has not come to the row.
pub(super) unsafe fn post(
    group: &LocalGroup<'_>,
    row: Row,
    call: &Call<'_>,
    agreed: Agreed,
    claim: Option<&mut Claim<'_>>,
) -> Result<Posted, EngineError> {
    let (role, word, entry) = (Role::of(&agreed, group.me), small_word(&agreed), row.entry(group.me));
    let given = match role {
        Role::Leaf => 0,
        _ => agreed.bytes,
    };
    let keeps = matches!(role, Role::Leaf | Role::Collector | Role::Peer);
    let beside = bytes_beside(given);
    let bytes = beside + if keeps { Kept::bytes(row.size()) as u64 } else { 0 };
    let side = if bytes == 0 { None } else { Some(side(group, &row, bytes, claim)?) };
    let long = side.filter(|_| beside > 0);
    // SAFETY: the caller's promise.
    unsafe {
        let kept = side.filter(|_| keeps).map(|side| {
            let posted = long.map_or(entry.room(), NonNull::as_ptr);
            Kept::write(side.add(beside as usize), call, row.size(), (posted, given))
        });
        if let Some(side) = side {
            entry.keep(side);
        }
        let fill = |out: *mut u8| give(call, (group.me, row.size()), out);
        match role {
            Role::Root if !entry.post_unless_large(word, long, fill) => return Ok(Posted::Refused),
            Role::Root => {}
            Role::Leaf => entry.mark(word),
            Role::Sender | Role::Collector | Role::Peer => entry.post(word, long, fill),
        }
        let memory = agreed.memory(call, group.me);
        row.begin(RowOperation {
            agreed,
            memory,
            room: None,
            block: match call {
                Call::Scatter { receive, .. } => receive.map_or(0, |it| it.bytes()),
                _ => 0,
            },
            word,
            rank: group.rank().forever(),
            seen: Cell::new(0),
            kept,
            meeting: Cell::new(None),
            outcome: Cell::new(role.outcome()),
        });
    }
    Ok(look_around(group, &row, (role, agreed.root, word)))
}

/// What a member does behind its post: S2 and S3 of [`crate::batch`], and whom it wakes.
fn look_around(group: &LocalGroup<'_>, row: &Row, (role, root, word): (Role, u32, u64)) -> Posted {
    fence(Ordering::SeqCst);
    let (mut have_all_posted, mut larger, mut differs) = (true, 0, None);
    for (member, entry) in row.entries().enumerate() {
        match entry.word() {
            0 => have_all_posted = false,
            other if agree(word, other) => {}
            other if is_larger(word, other) => larger = other,
            _ => differs = Some(member as u32),
        }
    }
    if larger != 0 {
        let rank = group.rank().forever();
        absent::stand_in(row, (group.me, rank), larger, &mut |bytes| group.rank().enter().alloc(bytes));
    }
    match role {
        Role::Sender if have_all_posted && differs.is_none() => {
            let root = group.members[root as usize];
            wait::wake(group.rank().node().rank(root.index()));
        }
        Role::Root => absent::wake_others(group),
        Role::Peer if have_all_posted => absent::wake_others(group),
        _ if differs.is_some() => absent::wake_others(group),
        _ => {}
    }
    match differs {
        Some(member) if role == Role::Sender => Posted::Beside(member),
        _ => Posted::There,
    }
}

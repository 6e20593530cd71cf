//! Who is called when the last member of a pool has posted.

use crate::args::Call;
use crate::pool::{Part, Weight};
use cohort_core::rank::Rank;

/// Nonblocking operations that move at most this many bytes in total are done by the last member to post,
/// in its call.
pub(crate) const AT_ONCE_MAX: u64 = 16 << 10;

/// Operations that move at most this many bytes in total want one helper.
const BRIEF_MAX: u64 = 512 << 10;

/// Whether one helper is enough for the operation, as far as the member knows: then thieves look at the last member
/// alone, whose expectation says that there is something to do, and leave the lines of the others where they are.
pub(super) fn is_brief(call: &Call<'_>, weight: Weight, size: u32) -> bool {
    let bytes = match call {
        Call::Bcast { buffer, .. } => u64::from(size - 1).saturating_mul(buffer.bytes()),
        _ => u64::from(size).saturating_mul(weight.total),
    };
    // A member that neither gives nor knows the length has no weight.
    (1..=BRIEF_MAX).contains(&bytes)
}

/// Sleeping workers that an operation wants.
#[derive(Debug)]
pub struct Helpers {
    rank: &'static Rank,
    wanted: u64,
}

/// Wakes members that wait, up to so many; says how many. Each finds the pool in its own list, so it needs nobody's
/// claim but its own. Whoever has come without a request has it in no list: such a member may sleep for another reason,
/// or leave without a step.
fn wake_members(parts: &[Part], me: u32, wanted: u64) -> u64 {
    let part_of = |member: u32| &parts[member as usize];
    let own = part_of(me).rank;
    own.node().barriers().light();
    let size = parts.len() as u32;
    let (mut woken, mut member) = (0, me);
    // The caller's own rank comes last: it does not sleep, but its polling thread may.
    for _ in 0..size {
        member = if member + 1 < size { member + 1 } else { 0 };
        let part = part_of(member);
        if woken < wanted && !part.request.is_null() && part.rank.wake_after_barrier() {
            own.counters().count_wake();
            woken += 1;
        }
    }
    woken
}

impl Helpers {
    /// Those for so many steps of an open pool, beside members that wait, which are woken. The pool is in the list of
    /// `rank`; `me` is the member that has opened it.
    pub(super) fn wanted(parts: &[Part], (me, rank): (u32, &'static Rank), steps: u64) -> Self {
        let wanted = steps.min(u64::from(rank.node().boot().cpus.max(1)));
        let woken = wake_members(parts, me, wanted);
        Self { rank, wanted: wanted - woken }
    }

    /// Wakes sleeping workers, as many as the node has CPUs for besides the members that are awake. They look for the
    /// pool at the rank, whose claim is free by now: its end was the barrier behind the posts.
    pub(super) fn call(&self) {
        let node = self.rank.node();
        for _ in 0..self.wanted {
            if !node.wake_worker(self.rank.id()) {
                return;
            }
            self.rank.counters().count_wake();
        }
    }
}

//! Ends before the end: of the job (`MPI_Abort`), or of some of its ranks (`MPI_ERRORS_ABORT`).

use crate::arch;
use crate::ranks::Rank;
use cohort_base::boot::RankBoot;
use cohort_base::spawn::WorldBoot;
use cohort_base::sync::atomic::Ordering;
use cohort_base::text::say;
use cohort_base::{LocalRank, Peer};
use core::time::Duration;

/// How long a rank that ends waits for whoever acts for it.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Ends the calling rank, and with it the job, with this exit code (`MPI_Abort`); `text` goes to the report descriptor
/// when it is not empty. Of a spawned world that is connected with nobody any more it ends the ranks only, as
/// [`abort_members`], in a job of one node.
pub fn abort(rank: &Rank, code: i32, text: &str) -> ! {
    abort_with(rank, code, text, |_| ())
}

/// Takes back what a rank has offered to others that go on, such as its ports: by the task of the rank that ends it,
/// once it is told to end.
pub type Farewell = fn(&Rank);

/// As [`abort`], with what is to be done for each rank that ends while others go on.
pub fn abort_with(rank: &Rank, code: i32, text: &str, farewell: Farewell) -> ! {
    // Acquire: whoever has disconnected is done with what this world's ranks have.
    let is_apart = |world: &&WorldBoot| world.links.load(Ordering::Acquire) == 0 && rank.node().boot().nodes < 2;
    match rank.world().filter(is_apart) {
        Some(world) => leave_together(rank, world.first..world.first + world.size, (code, text), farewell),
        None => abort_job(rank, code, text),
    }
}

fn abort_job(rank: &Rank, code: i32, text: &str) -> ! {
    if !text.is_empty() {
        say(rank.node().boot().report_fd(), format_args!("{text}\n"));
    }
    // Before the launcher is told, which ends all other ranks.
    rank.boot().last_words.call();
    let word = RankBoot::encode_abort(code);
    rank.boot().abort.store(word, Ordering::Release);
    if let Some(tell) = rank.boot().on_aborted {
        tell(code);
    }
    arch::exit_group(code)
}

/// Ends the calling rank and `members` of its node with this exit code, and nobody else (`MPI_ERRORS_ABORT`,
/// MPI-4.1 9.3); `text` goes to the report descriptor.
///
/// Another rank is never ended in the middle of what it does, because it may hold the claim of a
/// rank that goes on: it is told, and ends itself when it waits in MPI or calls `MPI_Test` and its
/// like in vain. Another thread of the calling rank that helps a rank which goes on is cut off in
/// the middle, as in `MPI_Abort`. Between nodes, and when nobody would be left, the whole job ends.
pub fn abort_members(rank: &Rank, members: &[Peer], code: i32, text: &str, farewell: Farewell) -> ! {
    let node = rank.node();
    // Members may be of other jobs, too.
    let here = || members.iter().filter_map(|&peer| node.local(peer));
    if node.boot().nodes > 1 || here().count() >= node.size() as usize {
        abort_job(rank, code, text);
    }
    leave_together(rank, here(), (code, text), farewell)
}

/// Ends the calling rank, and tells the other `members` to end.
fn leave_together(
    rank: &Rank,
    members: impl Iterator<Item = LocalRank>,
    (code, text): (i32, &str),
    farewell: Farewell,
) -> ! {
    let node = rank.node();
    if !text.is_empty() {
        say(node.boot().report_fd(), format_args!("{text}\n"));
    }
    let word = RankBoot::encode_departure(code);
    for other in members.filter(|&other| other != rank.id()) {
        let other = node.rank(other);
        // A rank that aborts the job, or was told before, keeps its word. Release: pairs with the
        // acquire of the loader and of `leave_if_told`.
        let told = &other.boot().abort;
        let _ = told.compare_exchange(0, word, Ordering::Release, Ordering::Relaxed);
        farewell(other);
        other.wake();
    }
    rank.boot().abort.store(word, Ordering::Release);
    farewell(rank);
    depart(rank, code)
}

/// Whether another member of one of the rank's communicators, or the rank itself, has ended it.
#[inline]
#[must_use]
pub fn must_leave(rank: &Rank) -> bool {
    rank.boot().abort.load(Ordering::Relaxed) != 0
}

/// Ends the calling rank if another member of one of its communicators asked for it. The caller holds
/// no claim.
#[inline]
pub(crate) fn leave_if_told(rank: &Rank) {
    let word = rank.boot().abort.load(Ordering::Acquire);
    if word != 0
        && let Some(code) = RankBoot::decode_departure(word)
    {
        depart(rank, code);
    }
}

#[cold]
fn depart(rank: &Rank, code: i32) -> ! {
    // Thieves find the claim taken for ever: nothing of this rank is to be moved on. Whoever ends a rank for want of
    // memory may hold the claim already.
    rank.retire_claim(LAST_WAIT);
    rank.mark_done();
    rank.boot().last_words.call();
    arch::exit_group(code)
}

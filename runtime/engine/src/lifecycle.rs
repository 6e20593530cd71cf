//! The beginning and the end of a rank.

use crate::arch;
use crate::net;
use crate::poller;
use crate::rank::Rank;
use cohort_base::boot::RankBoot;
use cohort_base::settings::Progress;
use cohort_base::sync::atomic::Ordering;
use cohort_base::text::say;

/// Starts what the policy gives every rank (a polling thread under `COHORT_PROGRESS=thread`). By
/// the rank's own task, at initialisation, once. Without memory or threads for it the rank
/// simply progresses inside its own calls.
pub fn begin(rank: &'static Rank) {
    net::open(rank);
    let progress = rank.node().settings().progress;
    rank.take_policy(progress);
    start_policy(rank);
}

/// Gives the rank another policy, from now on (`MPIX_Progress_set`). By the rank's own tasks, one at a time. Receives
/// that are left behind already are not watched anew; the next one that is, and the next wait, begin
/// to use the policy.
pub fn set_policy(rank: &'static Rank, progress: Progress) {
    stop_policy(rank);
    rank.take_policy(progress);
    start_policy(rank);
}

/// Starts what the rank's policy gives it: a thread, a signal, a dedicated worker.
fn start_policy(rank: &'static Rank) {
    poller::start(rank);
    if let Some(worker) = rank.crew_worker() {
        worker.ensure(rank);
    }
    if rank.policy().interrupts_receiver() {
        rank.parasite().install();
    }
}

/// Stops what [`start_policy`] started.
fn stop_policy(rank: &'static Rank) {
    poller::stop(rank);
    if let Some(worker) = rank.crew_worker() {
        worker.leave(rank);
    }
    rank.parasite().remove();
    // Posts that the dedicated worker did not come to are done here.
    drop(rank.enter());
}

/// Ends the rank's use of the network, once all it has sent has left, and stops what [`begin`] started. By the
/// rank's own task, at finalisation.
pub fn end(rank: &'static Rank) {
    net::close(rank);
    stop_policy(rank);
}

/// Ends the calling rank, and with it the job, with this exit code (`MPI_Abort`); `text` goes
/// to the report descriptor when it is not empty.
pub fn abort(rank: &Rank, code: i32, text: &str) -> ! {
    if !text.is_empty() {
        say(rank.node().boot().report_fd, format_args!("{text}\n"));
    }
    let word = RankBoot::encode_abort(code);
    rank.boot().abort.store(word, Ordering::Release);
    arch::exit_group(code)
}

//! The end of a rank.

use crate::arch;
use crate::rank::Rank;
use cohort_base::boot::RankBoot;
use cohort_base::sync::atomic::Ordering;
use cohort_base::text::say;

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

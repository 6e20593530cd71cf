//! The end of a job whose members have called different collectives at the same time.

use crate::args::Label;
use cohort_base::WorldRank;
use cohort_base::text::FixedText;
use cohort_core::rank::Rank;

/// Ends the job: this rank has called one collective, and the other one another. Data may have been exchanged already,
/// and others may wait for it, so there is no way on.
#[cold]
pub(super) fn end(rank: &Rank, mine: Label, (other, theirs): (WorldRank, Label)) -> ! {
    let text = FixedText::<320>::of(format_args!(
        "cohort: collectives of a communicator are not called in the same order: rank {} calls {mine}, and \
         rank {other} {theirs}",
        rank.world_rank(),
    ));
    // Ranks of tests are threads of one process.
    #[cfg(any(test, feature = "testing"))]
    panic!("{}", text.as_str());
    #[cfg(not(any(test, feature = "testing")))]
    cohort_core::lifecycle::abort(rank, 1, text.as_str())
}

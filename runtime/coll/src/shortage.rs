//! The end of a job whose member has no memory for its part in a collective.

use cohort_base::text::FixedText;
use cohort_core::EngineError;
use cohort_core::rank::Rank;
use cohort_core::reserve::why;

/// What a member's failure to take part in a collective of so many is: without memory it has not told the others what
/// they wait for, and cannot do so. So the job ends, unless the member is alone.
#[cold]
#[must_use]
pub fn left_out(rank: &Rank, members: usize, error: EngineError) -> EngineError {
    if error == EngineError::OutOfMemory && members > 1 {
        end(rank);
    }
    error
}

/// As [`left_out`], of a message of a collective.
#[cold]
pub(crate) fn end(rank: &Rank) {
    let text = FixedText::<320>::of(format_args!(
        "cohort: {} is out of memory (MPI_ERR_NO_MEM) in a collective, in which others wait for it: {}",
        rank.name(),
        why(),
    ));
    // Ranks of tests are threads of one process.
    #[cfg(any(test, feature = "testing"))]
    panic!("{}", text.as_str());
    #[cfg(not(any(test, feature = "testing")))]
    cohort_core::lifecycle::abort(rank, 1, text.as_str())
}

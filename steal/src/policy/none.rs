//! `none`: a rank's messages move only inside its own calls. The baseline of comparisons.

use super::ProgressPolicy;

/// `COHORT_PROGRESS=none`.
#[derive(Debug)]
pub(super) struct None;

impl ProgressPolicy for None {
    fn name(&self) -> &'static str {
        "none"
    }
}

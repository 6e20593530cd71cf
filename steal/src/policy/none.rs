//! `none`: a rank's messages move only inside its own calls. The baseline of comparisons.

use super::{Means, Policy};

/// `COHORT_PROGRESS=none`.
pub(super) const POLICY: Policy = Policy::of(Means::NONE);

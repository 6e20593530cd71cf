//! `none`: a rank's messages move only inside its own calls. The baseline of comparisons.

use super::{Capabilities, Policy};

/// `COHORT_PROGRESS=none`.
pub(super) const POLICY: Policy = Policy::of(Capabilities::NONE);

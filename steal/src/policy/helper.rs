//! `helper`: dedicated workers match long messages with the receives that wait for them, and wake
//! the rank's sleeping progress thread for a pair (SmartInterrupts, section 4.1). The threads and the
//! matching are the engine's.

use super::{Capabilities, Policy};

/// `COHORT_PROGRESS=helper`.
pub(super) const POLICY: Policy = Policy::of(Capabilities::HELPER);

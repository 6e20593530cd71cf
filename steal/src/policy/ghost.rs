//! `ghost`: dedicated workers progress the ranks of the node (CasperII). The threads are the
//! engine's.

use super::{Means, Policy};

/// `COHORT_PROGRESS=ghost`.
pub(super) const POLICY: Policy =
    Policy::of(Means::GHOSTS.and(Means::OFFLOADS).and(Means::WAKES_WORKER));

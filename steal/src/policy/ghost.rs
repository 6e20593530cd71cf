//! `ghost`: dedicated workers progress the ranks of the node (CasperII). The threads are the
//! engine's.

use super::{Capabilities, Policy};

/// `COHORT_PROGRESS=ghost`.
pub(super) const POLICY: Policy =
    Policy::of(Capabilities::GHOSTS.and(Capabilities::OFFLOADS).and(Capabilities::WAKES_WORKER));

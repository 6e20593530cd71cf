//! What happens when a rank fails.

use super::{Row, choose};

/// Name of the variable.
pub const ON_FAILURE: &str = "COHORT_ON_FAILURE";

/// What the other ranks do when one fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// They are ended.
    End,
    /// They go on, and are told.
    Continue,
}

impl OnFailure {
    /// By name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        choose(name, &[("end", Self::End), ("continue", Self::Continue)])
    }
}

pub(super) const ROW: Row = Row {
    name: ON_FAILURE,
    values: "end, continue",
    default: "end",
    help: "what happens when a rank fails: the job ends, or the others go on and MPI tells them",
    set: |s, v| OnFailure::named(v).map(|x| s.survives = x == OnFailure::Continue),
};

//! How many handles of a kind a rank may have.

use super::{Row, number};

/// As many as there are numbers in a handle, but for the last one.
pub(super) const MOST: u32 = (1 << 26) - 2;

pub(super) const ROW: Row = Row {
    name: "COHORT_HANDLES_MAX",
    values: "a count, 1 to 67108862",
    default: "67108862",
    help: "communicators, and windows, that a rank may have at a time: fewer show who forgets to free them",
    set: |s, v| number(v, 1, MOST).map(|n| s.handles_max = n),
};

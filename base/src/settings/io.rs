//! Who does operations on files that are under way.

use super::{Row, choose};

pub(super) const ROW: Row = Row {
    name: "COHORT_IO",
    values: "auto, plain",
    default: "auto",
    help: "who does nonblocking and split operations on files: threads of the rank, or the calls that start them",
    set: |s, v| choose(v, &[("auto", false), ("plain", true)]).map(|plain| s.plain_io = plain),
};

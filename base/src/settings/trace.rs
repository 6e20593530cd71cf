//! The timeline of a job: which file it is written to, and how much of each rank is kept.

use super::{Row, number};

/// Name of the variable that names the file.
pub const TRACE: &str = "COHORT_TRACE";

/// Name of the variable that says how many events are kept.
pub const TRACE_EVENTS: &str = "COHORT_TRACE_EVENTS";

/// [`TRACE_EVENTS`] of an empty environment.
pub const TRACE_EVENTS_DEFAULT: u32 = 16384;

pub(super) const FILE: Row = Row {
    name: TRACE,
    values: "a file; in a job of several nodes %n in its name is the node's number",
    default: "none",
    help: "write a timeline of the job, for pip-exec --draw and ui.perfetto.dev",
    set: |s, v| (!v.is_empty()).then(|| s.trace = v != "none"),
};

pub(super) const EVENTS: Row = Row {
    name: TRACE_EVENTS,
    values: "a count, 16 to 16777216",
    default: "16384",
    help: "events of each rank that a timeline keeps: the newest; 64 bytes each",
    set: |_, v| trace_events(v).map(drop),
};

/// What a value of [`TRACE_EVENTS`] says.
#[must_use]
pub fn trace_events(value: &str) -> Option<u32> {
    number(value, 16, 1 << 24)
}

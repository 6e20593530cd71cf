//! What a job says of itself when it has ended.

use super::Row;

/// Name of the variable.
pub const STATS: &str = "COHORT_STATS";

/// What is counted (`COHORT_STATS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stats {
    /// Nothing is said.
    Off,
    /// What the policies count in any case.
    Counters,
    /// Every call of MPI, for a report.
    Calls,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportForm {
    /// Text on standard error.
    Text,
    /// A file for programs.
    Json,
    /// A page.
    Html,
}

pub(super) const ROW: Row = Row {
    name: STATS,
    values: "0, 1, counters, json:FILE, html:FILE",
    default: "0",
    help: "what a job says when it ends: a report, as text or in a file; or the counters of the policies",
    set: |s, v| {
        s.stats = match v {
            "0" => Stats::Off,
            "counters" => Stats::Counters,
            _ => report(v).map(|_| Stats::Calls)?,
        };
        Some(())
    },
};

/// The report that a value asks for, and its file.
#[must_use]
pub fn report(value: &str) -> Option<(ReportForm, &str)> {
    let (form, file) = match value.split_once(':') {
        None if value == "1" => return Some((ReportForm::Text, "")),
        Some(("json", file)) => (ReportForm::Json, file),
        Some(("html", file)) => (ReportForm::Html, file),
        _ => return None,
    };
    (!file.is_empty()).then_some((form, file))
}

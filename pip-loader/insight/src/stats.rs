//! The report of `COHORT_STATS`: the node image counts, and says what it has counted as JSON when all ranks have ended.
//! From that come the text, the file for programs and the page.

mod advice;
mod data;
mod page;
mod text;
mod units;

use cohort_base::settings::{ReportForm, STATS, report};
use data::NodeStatistics;
use pip_ground::caption::Caption;
use pip_ground::{Refusal, say, voice};
use pip_load::boot::Node;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A report that the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    form: ReportForm,
    /// For all forms but text.
    file: PathBuf,
}

impl Wanted {
    /// What a value of `COHORT_STATS` asks for on this node, of `nodes`. A file is made, so that nobody waits for a
    /// report that cannot be written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn read(value: Option<&OsStr>, node: u32, nodes: u32) -> Result<Option<Self>, Refusal> {
        let Some((form, name)) = value.and_then(OsStr::to_str).and_then(report) else {
            return Ok(None);
        };
        let mut file = PathBuf::new();
        if form != ReportForm::Text {
            let place = std::path::absolute(of_node(Path::new(name), node, nodes));
            let made = place.and_then(|place| {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(true).open(&place)?;
                Ok(place)
            });
            file = made.map_err(|error| Refusal::new(format!("{STATS}: cannot write to {name}: {error}")))?;
        }
        Ok(Some(Self { form, file }))
    }

    /// The file that is empty until the job has ended, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        (self.form != ReportForm::Text).then_some(&*self.file)
    }

    /// Makes the report when all ranks of the node have ended; `caption` is what the job was. Whether it is lost, which
    /// is said.
    pub fn make(&self, node: &Node, caption: &Caption) -> bool {
        let Some(json) = node.statistics() else {
            return false;
        };
        let job = match NodeStatistics::read(&json) {
            Ok(job) => job,
            Err(reason) => {
                say(format_args!("{STATS}: no report: {reason}"));
                return true;
            }
        };
        let written = match self.form {
            ReportForm::Text => voice::report(&text::report(&job)),
            ReportForm::Json => fs::write(&self.file, with_job(&json, &job, caption)),
            ReportForm::Html => fs::write(&self.file, page::page(&with_job(&json, &job, caption))),
        };
        match written {
            Ok(()) => false,
            Err(error) => {
                say(format_args!("{STATS}: the report is lost: {error}"));
                // A reader of the text that went away has read enough.
                error.kind() != io::ErrorKind::BrokenPipe
            }
        }
    }
}

/// The name of one node's file: with several nodes, `name.json` is `name.node1.json` on node 1.
fn of_node(name: &Path, node: u32, nodes: u32) -> PathBuf {
    if nodes <= 1 {
        return name.to_owned();
    }
    match name.extension().and_then(OsStr::to_str) {
        Some(extension) => name.with_extension(format!("node{node}.{extension}")),
        None => name.with_extension(format!("node{node}")),
    }
}

/// What the node image said, what the job was, and the advice that follows.
fn with_job(json: &str, job: &NodeStatistics, caption: &Caption) -> String {
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(json) else {
        return json.to_owned();
    };
    value["advice"] = advice::advice(job).into();
    value["job"] = serde_json::to_value(caption).unwrap_or_default();
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_of_several_has_a_file_of_its_own() {
        let of = |name: &str, nodes| of_node(Path::new(name), 1, nodes);
        assert_eq!(of("a/b.json", 1), Path::new("a/b.json"));
        assert_eq!(of("a/b.json", 2), Path::new("a/b.node1.json"));
        assert_eq!(of("a/b", 2), Path::new("a/b.node1"));
    }

    #[test]
    fn values_without_a_report_want_none() {
        for value in ["0", "counters", "json:", "xml:a"] {
            assert_eq!(Wanted::read(Some(OsStr::new(value)), 0, 1).ok(), Some(None));
        }
        assert_eq!(Wanted::read(None, 0, 1).ok(), Some(None));
        let text = Wanted::read(Some(OsStr::new("1")), 0, 1).ok().flatten();
        assert_eq!(text.expect("one").form, ReportForm::Text);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let value = OsStr::new("json:/no/such/folder/stats.json");
        let refusal = Wanted::read(Some(value), 0, 1).expect_err("no folder").to_string();
        assert!(refusal.contains("/no/such/folder/stats.json"), "{refusal}");
    }
}

//! The report for programs, in JSON of our own.

use super::{Finding, Report};
use serde_json::{Value, json};

impl Report {
    /// An object with the findings, the notes and the numbers of errors and hints.
    pub fn json(&self) -> String {
        let errors = self.errors();
        let findings: Vec<Value> = self.findings.iter().map(Finding::json).collect();
        let hints = self.findings.len() - errors;
        let value = json!({
            "errors": errors,
            "hints": hints,
            "suppressed": self.suppressed,
            "notes": self.notes,
            "findings": findings,
        });
        format!("{value}\n")
    }
}

impl Finding {
    fn json(&self) -> Value {
        let about = self.about;
        let place = |place: &super::Place| {
            json!({
                "ranks": place.ranks,
                "call": place.function,
                "did": place.did,
                "function": place.code.function(),
                "file": place.code.file(),
                "line": place.code.line,
            })
        };
        let places: Vec<Value> = self.places.iter().map(place).collect();
        json!({
            "kind": about.name,
            "severity": if about.is_error { "error" } else { "hint" },
            "title": about.title,
            "values": self.values,
            "count": self.count,
            "standard": about.section,
            "help": about.help,
            "places": places,
        })
    }
}

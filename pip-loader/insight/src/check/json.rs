//! The report for programs.

use super::{Finding, Report};
use std::fmt::Write;

impl Report {
    /// An object with the findings, the notes and the numbers of errors and hints.
    pub fn json(&self) -> String {
        let findings: Vec<String> = self.findings.iter().map(Finding::json).collect();
        let notes: Vec<String> = self.notes.iter().map(|note| quoted(note)).collect();
        let errors = self.errors();
        format!(
            "{{\"errors\":{errors},\"hints\":{},\"notes\":[{}],\"findings\":[{}]}}\n",
            self.findings.len() - errors,
            notes.join(","),
            findings.join(",")
        )
    }
}

impl Finding {
    fn json(&self) -> String {
        let about = self.about;
        let places = self.places.iter().map(|place| {
            let (function, file) = place.code.rsplit_once(" at ").unwrap_or((&place.code, ""));
            let (file, line) = file.rsplit_once(':').unwrap_or((file, "0"));
            let ranks: Vec<String> = place.ranks.iter().map(u32::to_string).collect();
            format!(
                "{{\"ranks\":[{}],\"call\":{},\"did\":{},\"function\":{},\"file\":{},\"line\":{line}}}",
                ranks.join(","),
                quoted(&place.function),
                quoted(&place.did),
                quoted(function),
                quoted(file)
            )
        });
        let places: Vec<String> = places.collect();
        format!(
            "{{\"kind\":{},\"severity\":\"{}\",\"title\":{},\"values\":{},\"count\":{},\"standard\":{},\"help\":{},\
             \"places\":[{}]}}",
            quoted(about.name),
            if about.is_error { "error" } else { "hint" },
            quoted(about.title),
            quoted(&self.values),
            self.count,
            quoted(about.section),
            quoted(about.help),
            places.join(",")
        )
    }
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            control if control < ' ' => {
                // A string takes everything.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

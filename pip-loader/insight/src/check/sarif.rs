//! The report as SARIF 2.1.0, the format that shows in pull requests.

use super::text::ranks;
use super::{Finding, Place, Report};
use cohort_base::check::MISTAKES;
use serde_json::{Value, json};
use std::path::Path;

impl Report {
    /// The log of one run. Files below this folder are named from there.
    pub fn sarif(&self, folder: &Path) -> String {
        let rules: Vec<Value> = MISTAKES
            .iter()
            .map(|about| {
                json!({
                    "id": about.name,
                    "shortDescription": { "text": about.title },
                    "help": { "text": format!("{} ({})", about.help, about.section) },
                    "defaultConfiguration": { "level": level(about.is_error) },
                })
            })
            .collect();
        let results: Vec<Value> = self.findings.iter().map(|finding| finding.sarif(folder)).collect();
        let notes: Vec<Value> =
            self.notes.iter().map(|note| json!({ "level": "note", "message": { "text": note } })).collect();
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "pip-exec --check",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                } },
                "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": notes }],
                "columnKind": "utf16CodeUnits",
                "results": results,
            }],
        });
        format!("{log:#}\n")
    }
}

const fn level(is_error: bool) -> &'static str {
    if is_error { "error" } else { "note" }
}

impl Finding {
    fn sarif(&self, folder: &Path) -> Value {
        let about = self.about;
        let told: Vec<String> = self.places.iter().map(Place::told).collect();
        let values = if self.values.is_empty() { String::new() } else { format!(": {}", self.values) };
        let related: Vec<Value> = self.places.iter().skip(1).map(|place| place.sarif(folder)).collect();
        // What stays the same when lines are added above.
        let parts: Vec<String> =
            self.places.iter().map(|it| format!("{}/{}", it.function, it.code.function())).collect();
        json!({
            "ruleId": about.name,
            "ruleIndex": about.mistake as usize,
            "level": level(about.is_error),
            "message": { "text": format!("{}{values}\n{}", about.title, told.join("\n")) },
            "locations": self.places.first().map(|place| place.sarif(folder)).as_slice(),
            "relatedLocations": related,
            "occurrenceCount": self.count,
            "partialFingerprints": { "calls/v1": format!("{}:{}", about.name, parts.join(":")) },
        })
    }
}

impl Place {
    /// In words.
    fn told(&self) -> String {
        format!("{}: {} in {} ({})", ranks(&self.ranks), self.function, self.code.text, self.did)
    }

    fn sarif(&self, folder: &Path) -> Value {
        let code = &self.code;
        let path = Path::new(&code.path);
        let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
        let uri = if name.starts_with('/') { format!("file://{}", escaped(&name)) } else { escaped(&name) };
        let artifact = json!({ "uri": if code.path.is_empty() { escaped(code.file()) } else { uri } });
        let mut physical = json!({ "artifactLocation": artifact });
        if code.line > 0 {
            physical["region"] = json!({ "startLine": code.line });
        }
        json!({
            "physicalLocation": physical,
            "logicalLocations": [{ "name": code.function(), "kind": "function" }],
            "message": { "text": self.told() },
        })
    }
}

/// A path as part of a URI.
fn escaped(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

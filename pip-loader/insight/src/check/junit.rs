//! The report as JUnit has the outcomes of tests: each error is a test that failed, each hint one that says something,
//! and each kind of which nothing was found one that passed.

use super::{Finding, Report};
use cohort_base::check::{Kinds, MISTAKES};

impl Report {
    /// One suite. Kinds that were not looked for are none of it.
    pub fn junit(&self, kinds: Kinds) -> String {
        let silent = |about: &&cohort_base::check::About| {
            kinds.has(about.mistake) && self.findings.iter().all(|it| it.about.mistake != about.mistake)
        };
        let passed: Vec<String> = MISTAKES
            .iter()
            .filter(silent)
            .map(|about| {
                format!("  <testcase classname=\"check.{}\" name=\"{}\"/>\n", about.name, escaped(about.title))
            })
            .collect();
        let found: Vec<String> = self.findings.iter().map(Finding::junit).collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite name=\"pip-exec --check\" \
             tests=\"{}\" failures=\"{}\" errors=\"0\">\n{}{} </testsuite>\n</testsuites>\n",
            passed.len() + found.len(),
            self.errors(),
            found.concat(),
            passed.concat()
        )
    }
}

impl Finding {
    fn junit(&self) -> String {
        let about = self.about;
        let first = self.places.first();
        let name = first.map_or_else(String::new, |it| format!("{} in {}", it.function, it.code.text));
        let (class, name, text) = (about.name, escaped(&name), escaped(&self.block()));
        let title = escaped(about.title);
        let said = match about.is_error {
            true => format!("<failure type=\"{class}\" message=\"{title}\">{text}</failure>"),
            false => format!("<system-out>{text}</system-out>"),
        };
        format!("  <testcase classname=\"check.{class}\" name=\"{name}\">\n   {said}\n  </testcase>\n")
    }
}

/// A text as XML has it; what XML cannot have is a question mark.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            control if control < ' ' && control != '\n' => out.push('?'),
            other => out.push(other),
        }
    }
    out
}

//! The report as text.

use super::{Finding, Place, Report};
use cohort_base::check::MISTAKES;
use std::fmt::Write;

impl Report {
    /// The blocks and the summary; what is said when nothing was found is one line.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for finding in &self.findings {
            out.push_str(&finding.block());
        }
        for note in &self.notes {
            let _ = writeln!(out, "check: {note}");
        }
        let errors = self.errors();
        let hints = self.findings.len() - errors;
        // Whoever reads this line alone is not to take it for a job without errors.
        let besides = if self.has_failed { " besides what has ended the job" } else { "" };
        let _ = writeln!(out, "check: {}, {}{besides}", several(errors, "error"), several(hints, "hint"));
        if self.suppressed > 0 {
            out.insert_str(out.len() - 1, &format!(", {} suppressed", self.suppressed));
        }
        out
    }
}

/// A number of things.
fn several(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

impl Finding {
    /// As a compiler tells it.
    pub fn block(&self) -> String {
        let mut out = String::new();
        // A string takes everything.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let about = self.about;
        let severity = if about.is_error { "error" } else { "hint" };
        writeln!(out, "{severity}[{}]: {}", about.name, about.title)?;
        for place in &self.places {
            let Place { did, function, code, .. } = place;
            writeln!(out, "  --> {}: {function} in {} ({did})", ranks(&place.ranks), code.text)?;
        }
        if !self.values.is_empty() {
            writeln!(out, "   | {}", self.values)?;
        }
        // One of each rank is told by the ranks.
        let ranks = self.places.first().map_or(1, |place| place.ranks.len());
        if self.count > ranks as u64 {
            writeln!(out, "   | found {} times", self.count)?;
        }
        writeln!(out, "   = standard: {}", about.section)?;
        writeln!(out, "   = help: {}\n", about.help)
    }
}

/// Ranks in words: `rank 1`, `ranks 0-3, 7`.
pub fn ranks(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let runs: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, runs.join(", "))
}

/// What `--check=list` prints.
pub fn list() -> String {
    let mut out = String::new();
    for about in &MISTAKES {
        let severity = if about.is_error { "error" } else { "hint" };
        let _ = writeln!(out, "{:<11} {severity:<6} {} ({})", about.name, about.title, about.section);
    }
    out.push_str(
        "\n--check=no-KIND leaves one out, warn leaves the status alone; json:FILE, sarif:FILE and\njunit:FILE write a \
                  file too, suppress:FILE has patterns of what is not told;\n",
    );
    out.push_str("several words stand behind commas: --check=no-leaks,warn\n");
    out
}

//! Cheap checks of source text. Clippy's and rustfmt's come with `make lint`.

use super::exceptions::Exceptions;
use super::outcome;
use crate::{Outcome, place};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longest line, in characters. Tables cannot be wrapped.
const WIDTH_MAX: usize = 120;

/// Longest source file, in lines.
const LINES_MAX: usize = 600;

/// How far above an unsafe block its reason may stand, in lines.
const REASON_WITHIN: usize = 12;

/// Files that git knows or would take.
pub fn files() -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(place::root())
        .output()
        .map_err(|error| error.to_string())?;
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(listing.lines().map(|name| place::root().join(name)).filter(|path| path.is_file()).collect())
}

/// Path and text of every file with one of the extensions.
pub fn sources(extensions: &[&str]) -> Result<Vec<(PathBuf, String)>, String> {
    let wanted = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        extensions.contains(&extension.as_ref())
    };
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((path, text))
    };
    files()?.into_iter().filter(wanted).map(read).collect()
}

/// The path within the tree.
pub fn relative(path: &Path) -> &Path {
    path.strip_prefix(place::root()).unwrap_or(path)
}

/// A line, counted from zero, as editors and people look for it.
pub fn place_of(path: &Path, line: usize) -> String {
    format!("{}:{}", relative(path).display(), line + 1)
}

/// No source file is longer than [`LINES_MAX`].
pub fn short_files() -> Outcome {
    let long = |(path, text): (PathBuf, String)| {
        let lines = text.lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", path.display()))
    };
    outcome(sources(&["rs", "c", "py", "sh"])?.into_iter().filter_map(long).collect())
}

/// The clock of the day may be set at any time, so nothing is measured with it. A job's guardian has a name of it,
/// lines of the output have its time in front, timelines of several nodes are laid over each other by it, and waits of
/// the program's own go on with the clock they began with.
pub fn no_clock_of_the_day() -> Outcome {
    const USERS: [&str; 5] = [
        "pip-loader/insight/src/trace.rs",
        "pip-loader/src/launch/guardian.rs",
        // Since when a job runs, for people.
        "pip-loader/src/launch/job.rs",
        "pip-loader/src/launch/prefix.rs",
        "runtime/progress/src/signal/resume/call.rs",
    ];
    const NAMES: [&str; 5] = ["SystemTime", "REALTIME", "Realtime", "gettimeofday", "libc::time("];
    let is_ours = |path: &Path| {
        let own = relative(path);
        !own.starts_with("tests") && !USERS.iter().any(|user| own == Path::new(user))
    };
    let mut found = Vec::new();
    for (path, text) in sources(&["rs"])?.into_iter().filter(|it| is_ours(&it.0)) {
        let lines = text.lines().enumerate();
        let named = lines.filter(|(_, line)| NAMES.iter().any(|name| line.contains(name)));
        found.extend(named.map(|(number, line)| format!("{}: {line}", place_of(&path, number))));
    }
    outcome(found)
}

/// No line is wider than [`WIDTH_MAX`], but as many as the exceptions allow.
pub fn narrow_lines() -> Outcome {
    let mut wide = Vec::new();
    for (path, text) in sources(&["rs", "c", "h", "py", "sh", "toml", "md", ""])? {
        for (number, line) in text.lines().enumerate() {
            let is_table = line.trim_start_matches([' ', '/', '!']).starts_with('|');
            let width = line.chars().count();
            if width > WIDTH_MAX && !is_table {
                wide.push(format!("{}: {width} characters", place_of(&path, number)));
            }
        }
    }
    let allowed = Exceptions::read()?.wide_lines;
    println!("lines wider than {WIDTH_MAX}: {} of {allowed} allowed", wide.len());
    outcome(if wide.len() > allowed { wide } else { Vec::new() })
}

/// Every `unsafe` block and implementation has a `SAFETY:` comment above it.
pub fn unsafe_is_explained() -> Outcome {
    let mut complaints = Vec::new();
    for (path, text) in sources(&["rs"])? {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if !(code.contains("unsafe {") || code.contains("unsafe impl")) || code.contains('"') {
                continue;
            }
            let above = &lines[number.saturating_sub(REASON_WITHIN)..=number];
            if !above.iter().any(|line| line.contains("SAFETY:")) {
                complaints.push(place_of(&path, number));
            }
        }
    }
    outcome(complaints)
}

/// No marks of unfinished work, and no path of somebody's machine.
pub fn no_unfinished_words() -> Outcome {
    // Written in halves, so that this file does not find itself.
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("HA", "CK:"), concat!("/ro", "ot/")];
    let mut complaints = Vec::new();
    for (path, text) in sources(&["rs", "c", "h", "py", "sh", "md", "toml"])? {
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                complaints.push(format!("{}: {word}", place_of(&path, number)));
            }
        }
    }
    outcome(complaints)
}

/// bash accepts every script.
pub fn scripts_parse() -> Outcome {
    let mut complaints = Vec::new();
    let scripts = sources(&["sh"])?.into_iter().map(|(path, _)| path);
    for path in scripts.chain([place::root().join(".ci/run")]) {
        let output = Command::new("bash").arg("-n").arg(&path).output();
        let output = output.map_err(|error| error.to_string())?;
        if !output.status.success() {
            complaints.push(String::from_utf8_lossy(&output.stderr).into_owned());
        }
    }
    outcome(complaints)
}

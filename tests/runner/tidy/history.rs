//! Commits say what they do in one short line.

use super::outcome;
use crate::{Outcome, place};
use std::process::Command;

/// Longest subject, in characters: they stay under 72.
const SUBJECT_MAX: usize = 71;

/// When the rule began to be checked: older subjects stay as they are.
const SINCE: &str = "--since=2026-11-22T05:18:34Z";

/// Subjects are short. A clone without the whole history shows what it has; a tree without git, nothing.
pub fn subjects_are_short() -> Outcome {
    let output =
        Command::new("git").args(["log", "--no-merges", "--format=%h %s", SINCE]).current_dir(place::root()).output();
    let lines = match output {
        Ok(output) if output.status.success() => output.stdout,
        _ => return Ok(()),
    };
    let long = |line: &&str| {
        let subject = line.split_once(' ').map_or("", |(_, subject)| subject);
        subject.chars().count() > SUBJECT_MAX
    };
    let lines = String::from_utf8_lossy(&lines);
    outcome(lines.lines().filter(long).map(str::to_owned).collect())
}

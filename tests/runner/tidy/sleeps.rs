//! Trials wait for events, not for time: only `event.rs` sleeps.

use super::text;
use crate::trials::Outcome;

/// Lines of the runner that call a function that sleeps.
pub fn check() -> Outcome {
    let mut complaints = Vec::new();
    let mut seen = 0;
    for (path, source) in text::sources(&["rs"])? {
        let relative = text::relative(&path);
        if !relative.starts_with("tests/runner") || relative.ends_with("tidy/sleeps.rs") {
            continue;
        }
        let sleeps = source
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains("sleep(Duration") || line.contains("sleep(pause"));
        for (number, _) in sleeps {
            seen += 1;
            if !relative.ends_with("event.rs") {
                complaints.push(format!("{}:{}", relative.display(), number + 1));
            }
        }
    }
    match complaints.is_empty() && seen > 0 {
        true => Ok(()),
        false => Err(format!(
            "trials sleep at {complaints:?}: wait for an event (event.rs), or let event::pass say that \
             time is the subject"
        )),
    }
}

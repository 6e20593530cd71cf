//! Waiting for something to happen, which is what trials do in place of sleeping. This is the only module that sleeps
//! (`tidy/sleeps`).

use crate::trials;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// For how long a trial waits for something that will happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again until there is something.
///
/// # Errors
/// What `look` says, or that nothing came in time, which makes the trial late.
pub fn found<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>, String>) -> Result<T, String> {
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(trials::late(format!("waited {PATIENCE:?} for {what}")));
        }
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Waits until a condition holds.
///
/// # Errors
/// It did not hold in time, which makes the trial late.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) -> Result<(), String> {
    found(what, || Ok(condition().then_some(())))
}

/// Asks until the answer has all of these.
///
/// # Errors
/// It did not come in time, which makes the trial late; with the last answer.
pub fn says(parts: &[&str], ask: impl Fn() -> Result<String, String>) -> Result<(), String> {
    let mut last = String::new();
    let came = until("the answer", || {
        last = ask().unwrap_or_else(|error| error);
        parts.iter().all(|part| last.contains(part))
    });
    came.map_err(|late| format!("{late}: expected {parts:?}, this is the last:\n{last}"))
}

/// Waits for a file that says that a job is under way.
///
/// # Errors
/// It did not come in time, which makes the trial late.
pub fn under_way(sign: &Path) -> Result<(), String> {
    until("the job to be under way", || sign.exists())
}

/// Lets time pass, where time is the trial's subject: for how long something is stopped, how far signals are apart.
pub fn pass(time: Duration) {
    sleep(time);
}

//! What all parts of `pip-exec` stand on: why a job does not start, with which status one ends, and how
//! `pip-exec` speaks.

pub mod caption;
pub mod voice;

pub use voice::say;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Exit status for a command line or a program that was refused.
pub const REFUSED: i32 = 2;

/// Exit status of a job that ran out of time, as `timeout(1)` has it.
pub const TIMED_OUT: i32 = 124;

/// Exit status of a job that could not go on and was ended for that, the number of `EDEADLK`.
pub const DEADLOCKED: i32 = 35;

/// Variables and their values.
pub type Environment = BTreeMap<OsString, OsString>;

/// Why a job did not start; `Display` is the message for the user.
#[derive(Debug)]
pub struct Refusal(String);

impl Refusal {
    /// With this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// For a program's file that cannot be run.
    #[must_use]
    pub fn to_run(file: &Path, reason: &dyn fmt::Display) -> Self {
        Self(format!("cannot run {}: {reason}", file.display()))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// A time in words: "1 second", "0.5 seconds".
#[must_use]
pub fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    // The only number that has no plural.
    let plural = if time == Duration::from_secs(1) { "" } else { "s" };
    format!("{seconds} second{plural}")
}

/// Prints what an option asks for instead of a job, and returns the exit status.
#[must_use]
pub fn show(page: Result<String, Refusal>) -> i32 {
    match page {
        Ok(page) => print(&page).map_or_else(|refusal| refuse(&refusal), |_| 0),
        Err(refusal) => refuse(&refusal),
    }
}

/// Writes to standard output; whether somebody reads on.
///
/// # Errors
/// It cannot be written to.
pub fn print(text: &str) -> Result<bool, Refusal> {
    let mut output = std::io::stdout();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    match written {
        Ok(()) => Ok(true),
        // A reader that went away has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Refusal::new(format!("cannot write to standard output: {error}"))),
    }
}

/// Says why there is no job, and returns the exit status for that.
#[must_use]
pub fn refuse(refusal: &Refusal) -> i32 {
    say(format_args!("{refusal}"));
    REFUSED
}

#[cfg(test)]
mod tests {
    use super::seconds;
    use std::time::Duration;

    #[test]
    fn one_second_has_no_plural() {
        let words = [0.5, 1.0, 1.5, 2.0].map(|time| seconds(Duration::from_secs_f64(time)));
        assert_eq!(words, ["0.5 seconds", "1 second", "1.5 seconds", "2 seconds"]);
    }
}

//! How long each trial takes, coarsely: `tests/suites/costs.txt`. The queue begins with the longest, and runs those
//! that wait beside those that compute. Nothing fails when a cost is wrong: the closing lines name what is off by a
//! factor of three, and `make test-costs` writes the file anew.

use crate::place;
use crate::trials::{Outcome, Trial};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Classes of duration, in seconds; what takes less than the first has no row.
const CLASSES: [u64; 5] = [2, 6, 18, 54, 162];

/// A row of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// One of [`CLASSES`], or 0.
    pub seconds: u64,
    /// Whether it mostly waits, so that it may run beside trials that compute.
    pub waits: bool,
}

/// A trial of this run with what it took.
pub struct Took {
    /// The trial's name.
    pub name: String,
    /// From its start to its end.
    pub elapsed: Duration,
    /// What its commands computed.
    pub cpu: Duration,
}

impl Took {
    fn cost(&self) -> Cost {
        let class = CLASSES.iter().rev();
        let seconds = class.copied().find(|&class| self.elapsed.as_secs() >= class);
        Cost { seconds: seconds.unwrap_or(0), waits: self.cpu * 3 < self.elapsed }
    }

    /// Whether the file says something else by a factor of three.
    fn is_off(&self, said: Cost) -> bool {
        let elapsed = self.elapsed.as_secs();
        elapsed >= 3 * said.seconds.max(CLASSES[1]) || elapsed * 3 < said.seconds
    }
}

fn path() -> PathBuf {
    place::root().join("tests/suites/costs.txt")
}

/// The costs by the names of trials.
#[derive(Default)]
pub struct Costs(HashMap<String, Cost>);

impl Costs {
    /// Reads the file.
    ///
    /// # Errors
    /// When it cannot be read, or a row is not `SECONDS cpu|waits NAME`.
    pub fn read() -> Result<Self, String> {
        let text = std::fs::read_to_string(path()).map_err(|error| format!("{}: {error}", path().display()))?;
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        let read = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (seconds, kind, name) = (words.next()?, words.next()?, words.next()?);
            let waits = match kind {
                "waits" => true,
                "cpu" => false,
                _ => return None,
            };
            let seconds = seconds.parse().ok()?;
            Some((name.to_owned(), Cost { seconds, waits }))
        };
        let rows = rows.map(|line| read(line).ok_or(format!("{}: {line:?}", path().display())));
        rows.collect::<Result<_, _>>().map(Self)
    }

    /// What a trial costs.
    pub fn of(&self, name: &str) -> Cost {
        let none = Cost { seconds: 0, waits: false };
        self.0.get(name).copied().unwrap_or(none)
    }

    /// Lines for trials whose cost is off.
    pub fn corrections(&self, took: &[Took]) -> Vec<String> {
        let off = took.iter().filter(|took| took.is_off(self.of(&took.name)));
        let line = |took: &Took| {
            let (name, elapsed, said) = (&took.name, took.elapsed.as_secs(), self.of(&took.name));
            format!("cost: {name} took {elapsed} s, the file says {}", said.seconds)
        };
        off.map(line).collect()
    }

    /// Writes the file with the rows of this run's trials anew.
    ///
    /// # Errors
    /// What the system refused.
    pub fn write(mut self, took: &[Took]) -> Outcome {
        for took in took {
            match took.cost() {
                Cost { seconds: 0, .. } => self.0.remove(&took.name),
                cost => self.0.insert(took.name.clone(), cost),
            };
        }
        let mut rows: Vec<_> = self.0.into_iter().collect();
        rows.sort();
        let mut text = String::from(
            "# Seconds (the class), whether it computes or waits, and the trial. `make test-costs` writes this file.\n",
        );
        for (name, Cost { seconds, waits }) in rows {
            let kind = if waits { "waits" } else { "cpu" };
            let _ = writeln!(text, "{seconds} {kind} {name}");
        }
        std::fs::write(path(), text).map_err(|error| error.to_string())
    }

    /// Every row is that of a trial. With one policy for all (`TEST_COHORT_PROGRESS`) those of other policies are no
    /// trials, so nothing can be said.
    ///
    /// # Errors
    /// Names of rows that are not.
    pub fn check(&self, trials: &[Trial]) -> Outcome {
        let names: HashSet<&str> = trials.iter().map(|trial| trial.name.as_str()).collect();
        let stale = self.0.keys().filter(|name| !names.contains(name.as_str()));
        let stale: Vec<_> = stale.collect();
        match stale.is_empty() || place::progress().is_some() {
            true => Ok(()),
            false => Err(format!("{} has rows of no trial: {stale:?}", path().display())),
        }
    }
}

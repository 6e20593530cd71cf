//! What happens when a job cannot go on: for the loader, which ranks do not ask.

use super::{Row, choose};
use core::time::Duration;

/// Name of the variable that says what happens.
pub const DEADLOCK: &str = "COHORT_DEADLOCK";

/// Name of the variable that says after how long.
pub const DEADLOCK_AFTER: &str = "COHORT_DEADLOCK_AFTER";

/// What happens when a job cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlock {
    /// It is said why.
    Report,
    /// The job ends besides.
    End,
    /// Nobody looks.
    Off,
}

impl Deadlock {
    /// By name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let choices = [("report", Self::Report), ("end", Self::End), ("off", Self::Off)];
        choose(name, &choices)
    }

    /// For how long nobody may have moved: seconds, with a part of one.
    #[must_use]
    pub fn time(value: &str) -> Option<Duration> {
        let (whole, part) = value.split_once('.').unwrap_or((value, "0"));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if part.len() > 1 || !is_number(whole) || !is_number(part) {
            return None;
        }
        let tenths = whole.parse::<u64>().ok()?.checked_mul(10)? + part.parse::<u64>().ok()?;
        (1..=864_000).contains(&tenths).then(|| Duration::from_millis(tenths * 100))
    }
}

pub(super) const ROW: Row = Row {
    name: DEADLOCK,
    values: "report, end, off",
    default: "report",
    help: "what happens when every rank of the job waits for another one: it is said why, the job ends (the default \
           with --check), or nothing",
    set: |_, v| Deadlock::named(v).map(|_| ()),
};

pub(super) const AFTER_ROW: Row = Row {
    name: DEADLOCK_AFTER,
    values: "seconds, 0.1 to 86400",
    default: "5",
    help: "for how long every rank has waited then",
    set: |_, v| Deadlock::time(v).map(|_| ()),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_tenths() {
        assert_eq!(Deadlock::time("0.3"), Some(Duration::from_millis(300)));
        assert_eq!(Deadlock::time("86400"), Some(Duration::from_secs(86400)));
        for bad in ["0", "0.0", "86401", "1.25", "-1", "x", "", "1.", ".5"] {
            assert_eq!(Deadlock::time(bad), None, "{bad}");
        }
    }
}

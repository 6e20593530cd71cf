//! How long ranks may take to end when somebody ends the job: for the loader, which ranks do not ask.

use super::Row;
use core::time::Duration;

/// Name of the variable.
pub const GRACE: &str = "COHORT_GRACE";

/// Seconds after SIGTERM, unless the user says otherwise: what batch systems give.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(30);

/// The time that this value means: seconds, with a part of one, and 0 for none.
#[must_use]
pub fn grace(value: &str) -> Option<Duration> {
    let (whole, part) = value.split_once('.').unwrap_or((value, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() > 1 || !is_number(whole) || !is_number(part) {
        return None;
    }
    let tenths = whole.parse::<u64>().ok()?.checked_mul(10)? + part.parse::<u64>().ok()?;
    (tenths <= 864_000).then(|| Duration::from_millis(tenths * 100))
}

pub(super) const ROW: Row = Row {
    name: GRACE,
    values: "seconds, 0 to 86400",
    default: "30",
    help: "how long ranks may take to end when pip-exec gets SIGTERM or SIGHUP, before they are killed",
    set: |_, v| grace(v).map(|_| ()),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_a_time() {
        assert_eq!(grace("0"), Some(Duration::ZERO));
        assert_eq!(grace("1.5"), Some(Duration::from_millis(1500)));
        for bad in ["86401", "1.25", "-1", "x", "", "1.", ".5"] {
            assert_eq!(grace(bad), None, "{bad}");
        }
    }
}

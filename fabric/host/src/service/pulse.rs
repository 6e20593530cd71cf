//! What is known of another node's life: when to look at it next, and when it is dead.

use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Longest time between two looks at a node.
const PERIOD_MAX: Duration = Duration::from_secs(5);

/// Looks within the time that a node may be silent.
const LOOKS: u32 = 6;

/// Time between two looks of all nodes at one.
const SHARE: Duration = Duration::from_millis(2);

/// How soon to look again after the end of a connection.
const AGAIN: Duration = Duration::from_millis(300);

/// Refusals in a row of a node that was connected until its system refuses for good.
const REFUSALS_MAX: u32 = 3;

/// How patient this node is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A node that says nothing for so long is dead.
    pub timeout: Duration,
    /// Time between two looks at the same node.
    pub period: Duration,
}

impl Patience {
    /// For nodes that may be silent for this long.
    pub fn of(timeout: Duration) -> Self {
        Self { timeout, period: (timeout / LOOKS).min(PERIOD_MAX) }
    }

    /// The same for a node whose death others should report first.
    pub fn later(self) -> Self {
        Self { timeout: self.timeout + self.period, ..self }
    }

    /// The same with fewer looks, of which so many nodes each make one at a time.
    pub fn shared_by(self, nodes: u32) -> Self {
        let period = (nodes * SHARE).clamp(self.period, self.timeout / 2);
        Self { period, ..self }
    }
}

/// Why a node is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The system's number.
    pub code: i32,
    /// For how long it has been silent.
    pub silent: Duration,
}

/// The pulse of a node.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// When it gave an answer, or it was asked for the first time.
    heard: Instant,
    /// When to look next.
    next: Instant,
    /// It has answered.
    is_met: bool,
    /// Refusals since its last answer.
    refusals: u32,
    /// No way led to it when it was asked last.
    is_unreachable: bool,
    /// What the last failure was.
    code: i32,
}

impl Pulse {
    /// A node that is looked at from now on.
    pub fn begin(now: Instant) -> Self {
        Self { heard: now, next: now, is_met: false, refusals: 0, is_unreachable: false, code: libc::ETIMEDOUT }
    }

    /// When to look next.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// It is looked at now; the next look comes a period later.
    pub fn look(&mut self, now: Instant, patience: Patience) {
        self.next = now + patience.period;
    }

    /// It has answered.
    pub fn answer(&mut self, now: Instant) {
        (self.heard, self.is_met, self.refusals) = (now, true, 0);
        (self.is_unreachable, self.code) = (false, libc::ETIMEDOUT);
    }

    /// Its connection has ended, or none could be made.
    pub fn fail(&mut self, now: Instant, error: Errno) {
        if is_own(error) {
            // This node's own shortage says nothing about the other.
            self.heard = now;
            return;
        }
        match error {
            Errno::CONNREFUSED => self.refusals += 1,
            _ => self.refusals = 0,
        }
        if matches!(error, Errno::CONNREFUSED | Errno::CONNRESET) {
            self.next = self.next.min(now + AGAIN);
        }
        self.is_unreachable = matches!(error, Errno::HOSTUNREACH | Errno::NETUNREACH);
        self.code = error.raw_os_error();
    }

    /// Whether no way led to it when it was asked last.
    pub fn is_unreachable(&self) -> bool {
        self.is_unreachable
    }

    /// It is looked at again after others had their turn. Its silence goes on, but the failures until then are no
    /// verdict: it has half a period to answer.
    pub fn resume(&mut self, now: Instant, patience: Patience) {
        let longest = patience.timeout + patience.period / 2;
        self.heard = now.checked_sub(longest).map_or(self.heard, |earliest| self.heard.max(earliest));
        self.next = now;
    }

    /// Whether it has answered once.
    pub fn is_met(&self) -> bool {
        self.is_met
    }

    /// How often it has refused a connection since its last answer.
    pub fn refusals(&self) -> u32 {
        self.refusals
    }

    /// Whether it is dead now: silent for too long, or its process is gone after it has answered.
    pub fn verdict(&self, now: Instant, patience: Patience) -> Option<Verdict> {
        let silent = now.saturating_duration_since(self.heard);
        let is_gone = self.is_met && self.refusals >= REFUSALS_MAX;
        let is_silent = silent >= patience.timeout && self.refusals == 0;
        (is_gone || is_silent).then_some(Verdict { code: self.code, silent })
    }

    /// When it would be dead if nothing came until then.
    pub fn deadline(&self, patience: Patience) -> Instant {
        self.heard + patience.timeout
    }

    /// This node has not run for a while, in which it could not hear.
    pub fn forgive(&mut self, pause: Duration) {
        self.heard += pause;
        self.next += pause;
    }
}

/// Whether an error is this node's own shortage.
fn is_own(error: Errno) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL].contains(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_is_measured_from_the_last_answer() {
        let patience = Patience::of(30 * SECOND);
        let start = Instant::now();
        let mut pulse = Pulse::begin(start);
        pulse.look(start, patience);
        assert_eq!(pulse.next(), start + 5 * SECOND);
        pulse.answer(start + 10 * SECOND);
        assert_eq!(pulse.verdict(start + 39 * SECOND, patience), None);
        let expected = Verdict { code: libc::ETIMEDOUT, silent: 30 * SECOND };
        let end = start + 40 * SECOND;
        assert_eq!(pulse.deadline(patience), end);
        assert_eq!(pulse.verdict(end, patience), Some(expected));
    }

    #[test]
    fn silence_adds_up_over_turns() {
        let patience = Patience::of(30 * SECOND).shared_by(100);
        let start = Instant::now();
        let mut pulse = Pulse::begin(start);
        pulse.answer(start);
        assert!(!pulse.is_unreachable());
        for turn in 0..9 {
            let now = start + 10 * turn * SECOND;
            pulse.resume(now, patience);
            assert_eq!(pulse.verdict(now, patience.later()), None, "it is asked first");
            let half = now + patience.period / 2;
            assert_eq!(pulse.verdict(half, patience.later()).is_some(), turn >= 4, "turn {turn}");
            pulse.fail(now, Errno::HOSTUNREACH);
            assert!(pulse.is_unreachable());
        }
        pulse.answer(start + 90 * SECOND);
        assert!(!pulse.is_unreachable());
    }

    #[test]
    fn what_this_node_lacks_or_misses_is_forgiven() {
        let patience = Patience::of(3 * SECOND);
        let start = Instant::now();
        let mut pulse = Pulse::begin(start);
        pulse.fail(start + 2 * SECOND, Errno::MFILE);
        assert_eq!(pulse.verdict(start + 4 * SECOND, patience), None);
        pulse.forgive(100 * SECOND);
        assert_eq!(pulse.verdict(start + 104 * SECOND, patience), None);
        assert!(pulse.verdict(start + 105 * SECOND, patience).is_some());
    }

    #[test]
    fn a_process_that_was_there_and_refuses_is_gone() {
        let patience = Patience::of(30 * SECOND);
        let start = Instant::now();
        let mut never = Pulse::begin(start);
        let mut met = Pulse::begin(start);
        met.answer(start);
        for _ in 0..REFUSALS_MAX {
            assert_eq!(met.verdict(start, patience), None);
            never.fail(start, Errno::CONNREFUSED);
            met.fail(start, Errno::CONNREFUSED);
        }
        assert_eq!(never.verdict(start + 60 * SECOND, patience), None);
        let verdict = met.verdict(start, patience).unwrap();
        assert_eq!(verdict.code, libc::ECONNREFUSED);
        met.answer(start);
        assert_eq!(met.verdict(start, patience), None);
    }

    #[test]
    fn an_unreachable_node_is_dead_when_the_time_is_over() {
        let patience = Patience::of(3 * SECOND);
        let start = Instant::now();
        let mut pulse = Pulse::begin(start);
        pulse.fail(start + SECOND, Errno::HOSTUNREACH);
        assert_eq!(pulse.verdict(start + 2 * SECOND, patience), None);
        let verdict = pulse.verdict(start + 3 * SECOND, patience).unwrap();
        assert_eq!(verdict.code, libc::EHOSTUNREACH);
    }
}

//! What is said of nodes that cannot be reached: soon, and when the time is over.

use super::{Attempt, Meetings, Way};
use std::io::Error;
use std::time::{Duration, Instant};

/// How long an attempt may last until it is said that nothing has come of it.
const COMPLAINT_TIME: Duration = Duration::from_millis(2500);

impl Meetings {
    /// When to say next that a node cannot be reached.
    pub(super) fn complains_at(&self) -> Option<Instant> {
        let untold = self.attempts.values().filter(|attempt| !attempt.is_told);
        untold.map(|attempt| attempt.since + COMPLAINT_TIME).min()
    }

    /// Says which nodes could not be reached up to now. They are tried further.
    pub(super) fn complain_in_time(&mut self, now: Instant) {
        let is_due =
            |attempt: &Attempt| !attempt.is_told && now.saturating_duration_since(attempt.since) >= COMPLAINT_TIME;
        let due = self.attempts.iter().filter(|(_, attempt)| is_due(attempt));
        let due: Vec<Way> = due.map(|(&way, _)| way).collect();
        // One stands for all that cannot be reached for the same reason.
        if let Some(&way) = due.first() {
            self.say(way, "still no connection", "; it goes on trying");
        }
        for way in due {
            if let Some(attempt) = self.attempts.get_mut(&way) {
                attempt.is_told = true;
            }
        }
    }

    /// Says that a node could not be reached in all of the time that there is.
    pub(super) fn give_up(&self, way: Way) {
        let seconds = self.shared.node.job.timeout.as_secs();
        self.say(way, &format!("no connection in {seconds} s"), "");
    }

    #[cold]
    fn say(&self, way: Way, what: &str, then: &str) {
        let Some(attempt) = self.attempts.get(&way) else {
            return;
        };
        let Some((from, to)) = self.pair(way, attempt.count) else {
            return;
        };
        let from = from.or_else(|| self.own.first().map(|place| place.address));
        let from = from.map_or_else(|| "?".to_owned(), |from| from.to_string());
        let error = Error::from_raw_os_error(attempt.code);
        eprintln!(
            "cohort: node {}: {what} from {from} to {to} of node {} ({error}), and none from there{then}. Is that the \
             right network, and does a firewall between them let connections through? COHORT_NET_INTERFACE chooses the \
             network, COHORT_NET_PORTS the ports",
            self.shared.node.job.node, way.1
        );
    }

    /// Says once that a pair of addresses does not join two nodes, if there is another.
    #[cold]
    pub(super) fn complain(&mut self, way: Way, count: u32, code: i32) {
        let (failed, next) = (self.pair(way, count), self.pair(way, count + 1));
        let (Some((Some(from), to)), false) = (failed, self.has_complained || failed == next) else {
            return;
        };
        self.has_complained = true;
        let error = Error::from_raw_os_error(code);
        eprintln!(
            "cohort: node {}: no connection from {from} to {} of node {} ({error}); rails take others, and \
             COHORT_NET_INTERFACE chooses one",
            self.shared.node.job.node,
            to.ip(),
            way.1
        );
    }
}

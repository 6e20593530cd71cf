//! What is said of nodes that cannot be reached: soon, and when the time is over.

use super::{Attempt, Meetings, Way};
use std::io::Error;
use std::time::{Duration, Instant};

/// How long an attempt may last until it is said that nothing has come of it.
const COMPLAINT_TIME: Duration = Duration::from_millis(2500);

/// What to do where descriptors are short.
const RAISE: &str = "Raise the limit of open files on its host (ulimit -Hn and -n)";

/// Whether an error says that no more files can be opened.
fn is_shortage(code: i32) -> bool {
    matches!(code, libc::EMFILE | libc::ENFILE)
}

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
        let is_unknown = |way: &&Way| self.attempts.get(way).is_some_and(|attempt| !is_shortage(attempt.code));
        if let Some(&way) = due.iter().find(is_unknown) {
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
        if is_shortage(attempt.code) {
            let own = self.shared.node.job.node;
            cohort_base::complain!("cohort: node {own}: {what} to {to} of node {} ({error}){then}. {RAISE}", way.1);
            return;
        }
        cohort_base::complain!(
            "cohort: node {}: {what} from {from} to {to} of node {} ({error}), and none from there{then}. Is that the \
             right network, and does a firewall between them let connections through? COHORT_NET_INTERFACE chooses the \
             network, COHORT_NET_PORTS the ports",
            self.shared.node.job.node,
            way.1
        );
    }

    /// Says once that a connection waits for a descriptor, if that is what `code` says.
    pub(super) fn tell_shortage(&mut self, code: i32) {
        if !is_shortage(code) || std::mem::replace(&mut self.has_told_shortage, true) {
            return;
        }
        cohort_base::complain!(
            "cohort: node {}: no descriptor is left for a connection with a node ({}); it goes on trying. {RAISE}",
            self.shared.node.job.node,
            Error::from_raw_os_error(code)
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
        cohort_base::complain!(
            "cohort: node {}: no connection from {from} to {} of node {} ({error}); rails take others, and \
             COHORT_NET_INTERFACE chooses one",
            self.shared.node.job.node,
            to.ip(),
            way.1
        );
    }
}

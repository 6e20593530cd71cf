//! Notices that a job cannot go on: that each rank sleeps in MPI until another one wakes it.
//!
//! `docs/insight.md` argues why this is no false alarm. Looks are rare and end at the first rank that is awake, so they
//! cost nothing while anybody computes.

#[cfg(test)]
mod model;
pub mod proof;

use super::state::{RankState, Wait};
use cohort_base::boot::Rest;
use cohort_base::check;
use cohort_base::picture::Told;
use cohort_base::settings::{CHECK, DEADLOCK, DEADLOCK_AFTER, Deadlock};
use cohort_base::spawn::OURS;
use proof::Rests;
use std::ffi::CString;
use std::time::{Duration, Instant};

/// Looks in the time after which somebody is told.
const LOOKS: u32 = 4;

/// Notices when nobody moves any more.
#[derive(Debug)]
pub struct Watch {
    /// What happens then.
    pub action: Deadlock,
    after: Duration,
    next: Instant,
    /// The sleeps of all ranks, and since when they are known.
    sleeps: Option<(Instant, Rests)>,
    /// It was said that these sleeps have no end.
    was_told: bool,
}

impl Watch {
    /// With the settings of a job's environment; `None` if nobody is to look. Whoever looks for mistakes wants to be
    /// told of this one, and not to wait: the job ends then, unless a setting says what happens.
    #[must_use]
    pub fn of(environment: &[CString]) -> Option<Self> {
        let value = |name: &str| {
            let mut entries = environment.iter().rev().filter_map(|entry| entry.to_str().ok());
            entries.find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
        };
        let action = value(DEADLOCK).and_then(Deadlock::named);
        let after = value(DEADLOCK_AFTER).and_then(Deadlock::time);
        let after = after.unwrap_or(Duration::from_secs(5));
        let is_checked = value(CHECK).is_some_and(|words| check::asked(words).is_some());
        let action = action.unwrap_or(if is_checked { Deadlock::End } else { Deadlock::Report });
        (action != Deadlock::Off).then(|| Self {
            action,
            after,
            next: Instant::now() + after / LOOKS,
            sleeps: None,
            was_told: false,
        })
    }

    /// When to look next.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Whether it is time for a look at the sleeps of all ranks; the time of the next one begins.
    pub fn is_time(&mut self, now: Instant) -> bool {
        let is_time = now >= self.next;
        if is_time {
            self.next = now + self.after / LOOKS;
        }
        is_time
    }

    /// After a look, which found these sleeps of all ranks, if all sleep: whether it is time to judge.
    pub fn is_due(&mut self, now: Instant, sleeps: Option<Rests>) -> bool {
        let Some(sleeps) = sleeps else {
            self.sleeps = None;
            return false;
        };
        match &self.sleeps {
            Some((since, before)) if *before == sleeps => !self.was_told && now.duration_since(*since) >= self.after,
            _ => {
                self.sleeps = Some((now, sleeps));
                self.was_told = false;
                false
            }
        }
    }

    /// Whether the sleeps are still those that were known, behind a full look at all ranks.
    #[must_use]
    pub fn is_unchanged(&self, now: Option<&Rests>) -> bool {
        now.is_some() && self.sleeps.as_ref().map(|(_, sleeps)| sleeps) == now
    }

    /// It was said that these sleeps have no end; it is not said again.
    pub fn be_silent(&mut self) {
        self.was_told = true;
    }
}

/// Signals whose handlers are none of the program's ways to go on: those of faults, which a task that sleeps does not
/// raise; those by which users and batch systems end a job; and the two that threads of the C library send each other.
const FOREIGN: [i32; 15] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGSYS,
    32,
    33,
];

/// Whether a rank, whose threads in MPI sleep, can do nothing until another rank does something.
#[must_use]
pub fn is_stuck(rank: &RankState, rest: Rest) -> bool {
    let only_ranks = |wait: &Wait| {
        let mut needs = wait.needs.iter();
        !wait.needs.is_empty() && needs.all(|need| need.told != Told::Outside)
    };
    rank.is_initialized
        && !rank.is_busy
        && !rank.is_under_way
        && rank.waits.len() as u64 == rest.threads
        && rank.waits.iter().all(only_ranks)
        && has_no_other_way(rank.pid, rest.threads).unwrap_or(false)
}

/// Whether a process has no thread but these, no child, and no handler of a signal that may come; `None` if the kernel
/// does not tell. None of the program's are a founder's thread that waits for this launcher, the launcher itself, and
/// the threads of the network and the one that is asked, which a rank with an address space of its own has.
fn has_no_other_way(pid: i32, threads: u64) -> Option<bool> {
    let folder = format!("/proc/{pid}");
    let status = std::fs::read_to_string(format!("{folder}/status")).ok()?;
    let line = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let names = std::fs::read_dir(format!("{folder}/task")).ok()?.flatten();
    let names = names.map(|thread| std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default());
    let all = names.filter(|name| !name.starts_with(OURS)).count() as u64;
    let caught = u64::from_str_radix(line("SigCgt")?, 16).ok()?;
    let foreign = FOREIGN.iter().fold(0, |set, signal| set | 1_u64 << (signal - 1));
    let children = std::fs::read_to_string(format!("{folder}/task/{pid}/children")).ok()?;
    let own = std::process::id().to_string();
    let has_child = children.split_ascii_whitespace().any(|child| child != own);
    Some(all == threads && caught & !foreign == 0 && !has_child)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(number: u64) -> Rests {
        vec![Some(Rest { threads: 1, number }), None]
    }

    #[test]
    fn sleeps_that_last_are_judged_once() {
        let environment = [CString::new("COHORT_DEADLOCK_AFTER=4").expect("no NUL")];
        let mut watch = Watch::of(&environment).expect("not off");
        let at = |seconds: u64| Instant::now() + Duration::from_secs(seconds);
        assert!(!watch.is_time(Instant::now()) && watch.is_time(at(2)) && !watch.is_time(at(2)));
        assert!(!watch.is_due(at(10), Some(rest(1))));
        assert!(!watch.is_due(at(12), Some(rest(1))), "too early");
        assert!(!watch.is_due(at(20), Some(rest(3))), "it was awake meanwhile");
        assert!(!watch.is_due(at(22), None), "somebody is awake");
        assert!(!watch.is_due(at(30), Some(rest(3))));
        assert!(watch.is_due(at(35), Some(rest(3))));
        assert!(watch.is_unchanged(Some(&rest(3))) && !watch.is_unchanged(None));
        watch.be_silent();
        assert!(!watch.is_due(at(50), Some(rest(3))), "it was said");
        let of = |words: &[&str]| {
            let words: Vec<CString> = words.iter().map(|&word| CString::new(word).expect("no NUL")).collect();
            Watch::of(&words).map(|watch| watch.action)
        };
        assert_eq!(of(&[]), Some(Deadlock::Report));
        assert_eq!(of(&["COHORT_CHECK=all,no-leaks"]), Some(Deadlock::End));
        assert_eq!(of(&["COHORT_CHECK=all", "COHORT_DEADLOCK=report"]), Some(Deadlock::Report));
        let off = [CString::new("COHORT_DEADLOCK=off").expect("no NUL")];
        assert!(Watch::of(&off).is_none());
    }

    #[test]
    fn a_process_with_other_ways_is_not_stuck() {
        let pid = std::process::id() as i32;
        // The test's own process has a thread for each test.
        assert_eq!(has_no_other_way(pid, 0), Some(false));
        assert_eq!(has_no_other_way(-1, 1), None);
    }
}

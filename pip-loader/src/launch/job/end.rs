//! How a rank ends, what status that gives the job, and the end of what it leaves behind.

use super::super::output;
use super::super::signals;
use super::{Job, UNREAD};
use cohort_base::boot::{Lifecycle, RankBoot};
use cohort_base::settings::{self, OnFailure};
use cohort_manager::server::Stage;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pip_ground::say;
use pip_insight::hang;
use pip_load::task::start::SETUP_FAILED;
use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How a rank ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Exited(i32),
    Killed(i32),
}

impl End {
    /// What `waitpid` tells; `None` if the process has not ended.
    pub(super) fn of(status: i32) -> Option<Self> {
        if libc::WIFEXITED(status) {
            Some(Self::Exited(libc::WEXITSTATUS(status)))
        } else if libc::WIFSIGNALED(status) {
            Some(Self::Killed(libc::WTERMSIG(status)))
        } else {
            None
        }
    }

    /// In words.
    pub(super) fn said(self) -> String {
        match self {
            Self::Exited(status) => format!("has ended with status {status}"),
            Self::Killed(signal) => format!("was killed by signal {signal}"),
        }
    }
}

/// The exit status for an abort code: its low byte, as for any program, and with other MPIs.
pub(super) fn exit_status(code: i32) -> i32 {
    code & 0xff
}

/// How long ranks may take to end when somebody ends the job, if the environment says so.
pub(super) fn grace(environment: &[CString]) -> Option<Duration> {
    let mut entries = environment.iter().rev();
    entries.find_map(|entry| {
        let value = entry.to_str().ok()?.strip_prefix(settings::GRACE)?;
        settings::grace(value.strip_prefix('=')?)
    })
}

/// Whether the environment has ranks survive each other's failures.
pub(super) fn survives(environment: &[CString]) -> bool {
    let mut entries = environment.iter().rev();
    let value = entries.find_map(|entry| entry.to_str().ok()?.strip_prefix(settings::ON_FAILURE)?.strip_prefix('='));
    value.and_then(OnFailure::named) == Some(OnFailure::Continue)
}

impl Job<'_> {
    /// Whether the others go on now that a rank has failed. It has been said why, and they are told.
    fn goes_on_without(&mut self, rank: usize) -> bool {
        if !self.survives || self.spawner.ranks[rank].plan.failure().is_some() {
            return false;
        }
        self.lose_rank(rank)
    }

    /// Takes the tasks that have ended.
    pub(super) fn reap(&mut self) {
        loop {
            let mut status = 0;
            // SAFETY: `status` is a valid place for the result.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if pid <= 0 {
                return;
            }
            match End::of(status) {
                Some(end) => {
                    self.on_end(pid, end);
                    let alive = &self.alive;
                    let awaited = self.guests.firsts();
                    self.spawner.give_back(|pid| !alive.contains_key(&pid), |first| awaited.contains(&first));
                }
                None if libc::WIFSTOPPED(status) => hang::let_go(pid, status),
                None => {}
            }
        }
    }

    /// A task of this node has ended.
    pub(super) fn on_end(&mut self, pid: i32, end: End) {
        let Some(rank) = self.alive.remove(&pid) else {
            self.note_left_behind(pid, end);
            return self.miss_others();
        };
        if self.miss(rank, end) {
            return;
        }
        let wrapper = self.spawner.ranks[rank].wrapper;
        let is_wrapper = wrapper == Some(pid);
        // Who waits for the rank's process says what its end means.
        let is_told = !is_wrapper && self.tell_stand_in(rank, end);
        let is_told = is_told && wrapper.is_some_and(|wrapper| self.alive.contains_key(&wrapper));
        // What ended it may have been told before: by a node that aborts, or by itself.
        self.look_for_others();
        self.serve_guests();
        if self.ends.shutdown.is_some() {
            return;
        }
        if let Some(code) = self.abort_code() {
            // The rank itself has said why.
            return self.begin_shutdown(exit_status(code));
        }
        let word = self.spawner.node.ranks()[rank].abort.load(Ordering::Acquire);
        if let Some(code) = RankBoot::decode_departure(word) {
            return self.note_departure(rank, exit_status(code));
        }
        let who = format!("{} (pid {pid})", self.name_of(rank));
        match end {
            // Whoever read its output has read enough. A shell says so of what it started.
            End::Killed(libc::SIGPIPE) | End::Exited(UNREAD) if output::is_unread() => {
                self.begin_shutdown(UNREAD);
            }
            End::Exited(0) if is_wrapper => {}
            End::Exited(_) if is_told && !self.is_initialized(rank) => {}
            End::Exited(0) if self.is_initialized(rank) => {
                say(format_args!("{who} ended without calling MPI_Finalize"));
                if !self.goes_on_without(rank) {
                    self.begin_shutdown(1);
                }
            }
            End::Exited(0) => {}
            End::Exited(code) if self.has_parted(rank) => {
                say(format_args!("{who} ended with status {code}"));
                if self.ends.departed == 0 {
                    self.ends.departed = code;
                }
            }
            End::Exited(code) => {
                match self.spawner.ranks[rank].plan.failure() {
                    Some((step, error)) if code == SETUP_FAILED => {
                        say(format_args!("{who} could not start: {step}: {error}"));
                    }
                    _ => say(format_args!("{who} ended with status {code}")),
                }
                if !self.goes_on_without(rank) {
                    self.begin_shutdown(code);
                }
            }
            End::Killed(signal) => {
                self.say_killed(pid, rank, signal);
                if !self.goes_on_without(rank) {
                    self.begin_shutdown(128 + signal);
                }
            }
        }
    }

    /// A rank has ended by `MPI_ERRORS_ABORT`, which has said why. Others go on.
    fn note_departure(&mut self, rank: usize, status: i32) {
        if self.ends.departed == 0 {
            self.ends.departed = status;
        }
        if self.survives {
            self.lose_rank(rank);
        }
    }

    /// Whether a rank has ended that has an MPI library and did not call `MPI_Init`: it may have forked itself into the
    /// background, where what it has left behind is refused when it does.
    pub(super) fn has_gone_unused(&self) -> bool {
        let server = self.spawner.served.server.as_ref();
        let records = self.spawner.node.ranks().iter();
        let mut ranks = self.spawner.ranks.iter().zip(records).enumerate();
        ranks.any(|(rank, (started, record))| {
            let is_unused = match server {
                Some(server) => server.has_never_begun(rank),
                None => {
                    record.last_words.is_there() && record.lifecycle.load(Ordering::Acquire) == Lifecycle::Fresh as u32
                }
            };
            is_unused && !self.alive.contains_key(&started.pid)
        })
    }

    /// A process has ended that is no rank's own. The status of one in the background is the job's.
    fn note_left_behind(&mut self, pid: i32, end: End) {
        let status = match end {
            End::Exited(status) => status,
            End::Killed(signal) => 128 + signal,
        };
        if status != 0 && self.ends.shutdown.is_none() && self.has_gone_unused() {
            say(format_args!("process {pid}, left behind by a rank that did not call MPI_Init, {}", end.said()));
            if self.ends.departed == 0 {
                self.ends.departed = status;
            }
        }
    }

    /// Tells a process that stands in for a rank of its end, if there is one.
    fn tell_stand_in(&mut self, rank: usize, end: End) -> bool {
        let Some(stand_in) = self.spawner.ranks[rank].stand_in.take() else {
            return false;
        };
        match end {
            End::Exited(status) => stand_in.exit(status),
            End::Killed(signal) => stand_in.die(signal),
        }
        true
    }

    /// Whether a rank uses MPI no more whose spawned world is connected with nobody: its end is nobody's matter.
    fn has_parted(&self, rank: usize) -> bool {
        let record = &self.spawner.node.ranks()[rank];
        self.is_apart(rank) && record.lifecycle.load(Ordering::Acquire) == Lifecycle::Finalized as u32
    }

    /// Whether a rank was spawned into a world that is connected with nobody any more.
    fn is_apart(&self, rank: usize) -> bool {
        let world = self.spawner.world_of(rank);
        world.is_some_and(|world| world.links.load(Ordering::Acquire) == 0)
    }

    /// Whether a rank's end leaves others waiting.
    fn is_initialized(&self, rank: usize) -> bool {
        let lifecycle = &self.spawner.node.ranks()[rank].lifecycle;
        let server = self.spawner.served.server.as_ref();
        server.is_some_and(|server| server.stage(rank) == Stage::Joined)
            || lifecycle.load(Ordering::Acquire) == Lifecycle::Initialized as u32
    }

    pub(super) fn say_killed(&self, pid: i32, rank: usize, signal: i32) {
        let (who, by) = (self.name_of(rank), self.describe(rank, signal));
        say(format_args!("{who} (pid {pid}) killed by {by}"));
        if self.is_apart(rank) {
            say(format_args!(
                "its world has disconnected from all others, but the job ends: nobody knows whether it was moving data \
                 of theirs"
            ));
        }
    }
}

impl Job<'_> {
    /// Names the rank that sent us a signal: `kill(0, ...)` reaches the job, and what else the process group has.
    pub(super) fn say_sender(&self, ending: signals::Ending) {
        let signals::Ending { signal, sender, .. } = ending;
        let Some(&rank) = self.alive.get(&sender) else { return };
        let signal = Signal::try_from(signal).map_or("a signal", Signal::as_str);
        say(format_args!(
            "{} (pid {sender}) sent {signal} to pip-exec, which ends the job; a rank's process group, kill(0, ...) and \
             `kill 0`, is the whole job and who started it",
            self.name_of(rank)
        ));
    }
}

/// The processes that ranks left behind, if no rank runs.
pub(super) fn children() -> String {
    std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default()
}

/// The processes that ranks left behind, for a message.
pub(super) fn children_in_words() -> String {
    let children = children();
    let name = |pid: &str| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("process {pid} ({})", name.trim_end())
    };
    let names: Vec<String> = children.split_whitespace().map(name).collect();
    match names.len() {
        0 => "a process that a rank left behind".into(),
        _ => format!("{}, left behind by ranks,", names.join(", ")),
    }
}

/// Kills what the ranks' forked processes left behind.
pub(super) fn kill_orphans() {
    let mut stay = Vec::new();
    for _ in 0..100 {
        let children = children();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        let children: Vec<i32> = children.filter(|pid| !stay.contains(pid)).collect();
        if children.is_empty() {
            return;
        }
        for pid in children {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            if wait_soon(pid).is_none() {
                stay.push(pid);
            }
        }
    }
}

/// How long a process may take to end that was killed.
const KILL_TIME: Duration = Duration::from_secs(3);

/// Waits for a child that was killed; its status. None if it does not end, which is said: it may be another user's
/// (`sudo`), or be in the kernel.
pub(super) fn wait_soon(pid: i32) -> Option<i32> {
    let until = Instant::now() + KILL_TIME;
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        let found = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if found != 0 {
            return Some(status);
        }
        if Instant::now() >= until {
            say(format_args!("process {pid} was killed and does not end: it is another user's, or in the kernel"));
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::exit_status;

    #[test]
    fn statuses_of_aborts_are_those_of_programs() {
        let statuses = [0, 3, 255, 256, 300, -1].map(exit_status);
        assert_eq!(statuses, [0, 3, 255, 0, 44, 255]);
    }
}

//! How a rank ends, what status that gives the job, and the end of what it leaves behind.

use cohort_base::settings;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::ffi::CString;
use std::time::Duration;

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

/// Kills what the ranks' forked processes left behind.
pub(super) fn kill_orphans() {
    for _ in 0..100 {
        let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let children: Vec<i32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        if children.is_empty() {
            return;
        }
        for pid in children {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            let _ = waitpid(Pid::from_raw(pid), None);
        }
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

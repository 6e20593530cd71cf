//! How a rank ends, and what status that gives the job.

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

/// The exit status for an abort code: its low byte, unless that made a failure look
/// like success.
pub(super) fn exit_status(code: i32) -> i32 {
    match code & 0xff {
        0 if code != 0 => 1,
        status => status,
    }
}

#[cfg(test)]
mod tests {
    use super::exit_status;

    #[test]
    fn abort_codes_stay_failures() {
        assert_eq!(exit_status(0), 0);
        assert_eq!(exit_status(3), 3);
        assert_eq!(exit_status(256), 1);
        assert_eq!(exit_status(-1), 255);
    }
}

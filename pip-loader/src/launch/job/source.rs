//! What a source is, and what a job sleeps for.

use super::Job;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Something that a job waits for.
pub(super) trait Source {
    /// Adds what the job is to sleep for.
    fn awaits<'a>(&'a self, _job: &'a Job<'_>, _sleep: &mut Sleep<'a>) {}

    /// Looks whether that has come, and does what it is for.
    fn serve(&mut self, job: &mut Job<'_>);
}

/// What a job sleeps for.
#[derive(Debug, Default)]
pub(super) struct Sleep<'a> {
    descriptors: Vec<PollFd<'a>>,
    pub(super) until: Option<Instant>,
}

impl<'a> Sleep<'a> {
    /// For input.
    pub(super) fn input(&mut self, descriptors: impl IntoIterator<Item = BorrowedFd<'a>>) {
        let input = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
        self.descriptors.extend(descriptors.into_iter().map(input));
    }

    /// For what these say.
    pub(super) fn events(&mut self, descriptors: impl IntoIterator<Item = PollFd<'a>>) {
        self.descriptors.extend(descriptors);
    }

    /// Until the first of these at most.
    pub(super) fn until(&mut self, times: impl IntoIterator<Item = Instant>) {
        self.until = self.until.into_iter().chain(times).min();
    }

    /// Sleeps.
    pub(super) fn begin(mut self) {
        let left = self.until.map(|at| at.saturating_duration_since(Instant::now()));
        // Rounded up, so that the time has come when it is over.
        let left = left.map(|left| left.as_millis() as u64 + 1);
        let limit = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left.min(i32::MAX as u64)).unwrap_or(PollTimeout::MAX)
        });
        // An interrupted wait is followed by another round of looking.
        let _ = poll(&mut self.descriptors, limit);
    }
}

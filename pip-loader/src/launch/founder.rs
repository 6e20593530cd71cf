//! The process that has started this launcher in its own address space, when it spawned others (`pip-loader/join`'s
//! `found` has the protocol). It is rank 0 of the job, and no child of the launcher: nobody here waits for it or
//! signals it, and when the job fails, it ends by itself, with the job's status.

use cohort_base::boot::Founder;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pip_ground::Refusal;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// The process that has started this launcher, as the job looks at it.
pub struct Watched {
    founder: &'static Founder,
    /// Has input when the process has ended.
    process: OwnedFd,
}

impl Watched {
    /// # Errors
    /// The system does not tell of its end.
    pub fn new(founder: &'static Founder) -> Result<Self, Refusal> {
        let refused = |error| Refusal::new(format!("cannot wait for the end of the process that spawns: {error}"));
        // SAFETY: asks for a descriptor.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, founder.process, 0) };
        let opened = Errno::result(opened).map_err(refused)?;
        // SAFETY: just made.
        Ok(Self { founder, process: unsafe { OwnedFd::from_raw_fd(opened as i32) } })
    }

    /// Its number.
    pub fn process(&self) -> i32 {
        self.founder.process
    }

    /// What has input when it has ended.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// Whether it has ended, or is about to and uses MPI no more.
    pub fn is_over(&self) -> bool {
        let mut ended = [PollFd::new(self.descriptor(), PollFlags::POLLIN)];
        let has_ended = poll(&mut ended, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        has_ended || self.founder.has_finished.load(Ordering::Acquire) != 0
    }
}

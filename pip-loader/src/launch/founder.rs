//! A launcher that a process has started in its own address space, when it spawned others (`pip-loader/join`'s `found`
//! has the protocol). The process is rank 0 of the job. It is not this one's child: nobody here waits for it or signals
//! it, and when the job fails, it ends by itself, with the job's status.

use super::membership::Membership;
use super::options::{self, Request};
use super::{environment, guardian, job, prepare, signals, start_limit};
use cohort_base::boot::AT_FOUNDER;
use cohort_base::spawn::Founder;
use nix::errno::Errno;
use pip_ground::{Refusal, refuse};
use pip_monitor::Finish;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
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
        let mut ended =
            libc::pollfd { fd: std::os::fd::AsRawFd::as_raw_fd(&self.process), events: libc::POLLIN, revents: 0 };
        // SAFETY: one record, valid during the call.
        let has_ended = unsafe { libc::poll(&raw mut ended, 1, 0) } > 0;
        has_ended || self.founder.has_finished.load(Ordering::Acquire) != 0
    }
}

/// Serves the process that has started this launcher, until its job has ended: the exit status. `None` if no process
/// has.
pub fn serve_founder() -> Option<i32> {
    // SAFETY: no condition; 0 says that there is no such entry.
    let address = unsafe { libc::getauxval(AT_FOUNDER) };
    // SAFETY: a founder has put the address of its record there, which stays.
    let founder = unsafe { std::ptr::without_provenance::<Founder>(address as usize).as_ref() }?;
    Some(serve(founder).unwrap_or_else(|refusal| refuse(&refusal)))
}

fn serve(founder: &'static Founder) -> Result<i32, Refusal> {
    let signals = signals::Signals::block()?;
    let program = std::fs::read_link(format!("/proc/{}/exe", founder.process)).unwrap_or_else(|_| PathBuf::from("-"));
    let arguments = vec!["-n".into(), "1".into(), program.into_os_string()];
    let Request::Run(options) = options::parse(arguments, environment())? else {
        return Err(Refusal::new("the environment asks for something else than to run a program"));
    };
    let guardian = guardian::Guardian::none();
    let mut membership = Membership::connect(&options.variables, start_limit(&options))?;
    let prepared = prepare::prepare_for(founder, &options, membership.place(), &guardian.job)?;
    let finish = match job::Job::start(prepared, signals, &mut membership) {
        Ok(job) => job.wait(),
        Err(refusal) => Finish { status: refuse(&refusal), is_cut: true, cause: None },
    };
    membership.leave(finish);
    Ok(finish.status)
}

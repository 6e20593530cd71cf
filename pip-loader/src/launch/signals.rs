//! The signals of `pip-exec`: those that end a job, and those that are meant for the program.

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, raise, signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use pip_ground::Refusal;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is meant for the program: managers and batch systems send these to whom they have started, which is the root.
const FORWARDED: [Signal; 5] = [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGTSTP, Signal::SIGCONT, Signal::SIGWINCH];

/// What ends a job; a hang-up unless whoever has started us ignores it (`nohup`). A shell's script has what it starts
/// in the background ignore SIGINT, which ends the job all the same, as it does with other launchers.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The code of a signal that the kernel sends: of these, for a terminal.
const SI_KERNEL: i32 = 0x80;

/// All signals, blocked; those that the root handles can be read.
pub struct Signals {
    descriptor: SignalFd,
    handled: SigSet,
    original: SigSet,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// A child has ended, or changed.
    Child,
    /// For the ranks. What a terminal sends goes to the whole process group, which they are in as a rule.
    Forward { signal: Signal, to_group: bool },
    /// What the ranks do is to be shown.
    Show,
    /// The job is to end.
    End(Ending),
}

/// A signal that ends a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Its number.
    pub signal: i32,
    /// The process that sent it; 0 is the kernel or another namespace.
    pub sender: i32,
    /// A terminal has sent it to the whole process group.
    pub to_group: bool,
}

impl Signals {
    /// Blocks all signals in this thread and those that it starts.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn block() -> Result<Self, Refusal> {
        let mut original = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut original))
            .map_err(|error| system("cannot block signals", error))?;
        // Whoever has started us may ignore it (`env --ignore-signal=CHLD`): then no child would be waited for, and no
        // signal come.
        // SAFETY: no handler.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }.map_err(|error| system("cannot take SIGCHLD", error))?;
        let ending = ENDING.into_iter().filter(|&signal| signal != Signal::SIGHUP || !is_ignored(signal));
        let handled = SigSet::from_iter(ending.chain([Signal::SIGCHLD, Signal::SIGQUIT]).chain(FORWARDED));
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self {
            descriptor: SignalFd::with_flags(&handled, flags)
                .map_err(|error| system("cannot wait for signals", error))?,
            handled,
            original,
        })
    }

    /// What kills a process by default is left to do so again; it takes the ranks along.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn unblock_others(&self) -> Result<(), Refusal> {
        let mut others = SigSet::all();
        for signal in &self.handled {
            others.remove(signal);
        }
        // A file that may grow no more is an error of the call that writes to it, and not the end of the job.
        others.remove(Signal::SIGXFSZ);
        sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&others), None)
            .map_err(|error| system("cannot unblock signals", error))
    }

    /// The mask before all were blocked, which ranks get.
    pub fn original(&self) -> &SigSet {
        &self.original
    }

    /// What to poll for input.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// The next one that came.
    pub fn next(&self) -> Option<Came> {
        let info = self.descriptor.read_signal().ok()??;
        let signal = info.ssi_signo as i32;
        let forwarded = FORWARDED.into_iter().find(|it| *it as i32 == signal);
        let to_group = info.ssi_code == SI_KERNEL;
        Some(match (signal, forwarded) {
            (libc::SIGCHLD, _) => Came::Child,
            (libc::SIGQUIT, _) => Came::Show,
            (_, Some(signal)) => Came::Forward { signal, to_group },
            // Who leads a session is the only one that the kernel tells of a terminal that is gone.
            _ => {
                Came::End(Ending { signal, sender: info.ssi_pid as i32, to_group: to_group && signal == libc::SIGINT })
            }
        })
    }

    /// Stops this process as SIGTSTP does by default, until SIGCONT comes; not where nobody could continue it.
    pub fn stop(&self) {
        let stop = SigSet::from_iter([Signal::SIGTSTP]);
        // What cannot be unblocked stops nothing.
        let _ = raise(Signal::SIGTSTP);
        let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&stop), None);
        let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&stop), None);
    }
}

/// Whether this process ignores a signal.
fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks only, and the place for the answer is there.
    let result = unsafe { libc::sigaction(signal as i32, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: a record of zeros is one, too.
    result == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Whoever has started this program ignores SIGPIPE.
static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);

/// Rust's start-up code, which comes later, ignores SIGPIPE in any case.
extern "C" fn note_pipe() {
    IGNORES_PIPE.store(is_ignored(Signal::SIGPIPE), Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_PIPE: extern "C" fn() = note_pipe;

/// Whether ranks are to ignore SIGPIPE, as whoever has started this program does. What a process manager ignores is its
/// own matter.
#[must_use]
pub fn ranks_ignore_pipe() -> bool {
    IGNORES_PIPE.load(Ordering::Relaxed) && !cohort_manager::is_present(|name| std::env::var(name).ok())
}

/// All signals are blocked while this lives.
pub struct Blocked {
    before: SigSet,
}

impl Blocked {
    /// Blocks them.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn all() -> nix::Result<Self> {
        let mut before = SigSet::empty();
        let all = SigSet::all();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&all), Some(&mut before))?;
        Ok(Self { before })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}

fn system(what: &str, error: Errno) -> Refusal {
    Refusal::new(format!("{what}: {error}"))
}

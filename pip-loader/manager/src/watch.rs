//! A watch over waits that nobody else can end: for the manager, for other nodes.
//!
//! Managers' libraries and streams block, and signals are blocked while a node starts. So a thread takes
//! the signals that ask a program to end, and looks at the time. When either comes it says what was waited
//! for, asks the manager to end the job, and ends the process: no rank runs yet that could lose
//! anything.

use std::ffi::c_int;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Asks the manager to end the job with a status, for a reason; any thread may call it, also while another
/// one waits for the manager.
pub type Aborter = Box<dyn FnOnce(i32, &str) + Send>;

/// Exit status of a program that waited too long, as `timeout(1)` has it.
const TIMED_OUT: i32 = 124;

/// How long the manager may take to hear that it shall end the job.
const ABORT_TIME: Duration = Duration::from_secs(1);

/// What a manager gets to pass a message on before it is told to end the job.
const OUTPUT_TIME: Duration = Duration::from_millis(300);

/// The signals that end a waiting program.
const SIGNALS: [(c_int, &str); 3] = [
    (libc::SIGINT, "SIGINT"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGHUP, "SIGHUP"),
];

/// For how long a program waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The time.
    pub time: Duration,
    /// What sets it, for the message.
    pub setting: &'static str,
}

/// Name of the setting for the time of a start.
pub const START_TIMEOUT: &str = "COHORT_START_TIMEOUT";

impl Limit {
    /// That of a job's start, with the value of [`START_TIMEOUT`] if it is set; one that makes no sense is
    /// refused elsewhere.
    #[must_use]
    pub fn of_start(setting: Option<&str>) -> Self {
        let seconds = setting.and_then(|text| text.parse().ok());
        Self {
            time: Duration::from_secs(seconds.unwrap_or(300)),
            setting: START_TIMEOUT,
        }
    }
}

#[derive(Default)]
struct State {
    waiting_for: String,
    aborter: Option<Aborter>,
}

/// Watches until it is dropped.
pub struct Watch {
    state: Arc<Mutex<State>>,
    end: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch; `program` begins the messages. The calling thread blocks the signals
    /// SIGINT, SIGTERM and SIGHUP, as all others of this process do.
    ///
    /// # Errors
    /// No thread or descriptor is left.
    pub fn begin(program: &'static str, limit: Option<Limit>) -> io::Result<Self> {
        let signals = signals()?;
        // SAFETY: makes a descriptor.
        let end = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
        let state = Arc::<Mutex<State>>::default();
        let (its_end, its_state) = (end.try_clone()?, Arc::clone(&state));
        let deadline = limit.map(|limit| (Instant::now() + limit.time, limit));
        let body = move || watch(&signals, &its_end, deadline, program, &its_state);
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .stack_size(256 << 10)
            .spawn(body)?;
        Ok(Self {
            state,
            end,
            thread: Some(thread),
        })
    }

    /// Says what the program waits for from now on.
    pub fn waits_for(&self, what: impl Into<String>) {
        lock(&self.state).waiting_for = what.into();
    }

    /// From now on there is a manager to tell.
    pub fn connected(&self, aborter: Option<Aborter>) {
        lock(&self.state).aborter = aborter;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: eight bytes and a descriptor that is open. It cannot fail: nobody else writes to it.
        unsafe { libc::write(self.end.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked watches no more.
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn owned(descriptor: c_int) -> io::Result<OwnedFd> {
    match descriptor {
        0.. => {
            // SAFETY: just made, so nobody else has it.
            Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// A descriptor from which the signals can be read.
fn signals() -> io::Result<OwnedFd> {
    // SAFETY: an all-zero set is a place for one, which is made empty; the calls change nothing else.
    let descriptor = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for (signal, _) in SIGNALS {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    owned(descriptor)
}

fn watch(
    signals: &OwnedFd,
    end: &OwnedFd,
    deadline: Option<(Instant, Limit)>,
    program: &str,
    state: &Mutex<State>,
) {
    loop {
        let left = deadline.map(|(at, _)| at.saturating_duration_since(Instant::now()));
        // Rounded up, so that the time is over when the wait is.
        let left = left.map_or(-1, |left| {
            left.as_millis().min(i32::MAX as u128 - 1) as c_int + 1
        });
        let mut sources = [signals, end].map(|source| libc::pollfd {
            fd: source.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: two records, valid during the call.
        let ready = unsafe { libc::poll(sources.as_mut_ptr(), 2, left) };
        if sources[1].revents != 0 {
            return;
        }
        if let Some((number, name)) = take(signals) {
            let why = format!("ended by {name}");
            finish(program, state, &why, 128 + number, Duration::ZERO);
        }
        if let Some((at, limit)) = deadline
            && ready == 0
            && Instant::now() >= at
        {
            let seconds = limit.time.as_secs_f64();
            let why = format!(
                "the job did not start within {seconds} s ({})",
                limit.setting
            );
            finish(program, state, &why, TIMED_OUT, OUTPUT_TIME);
        }
    }
}

/// A signal that has come.
fn take(signals: &OwnedFd) -> Option<(c_int, &'static str)> {
    // SAFETY: an all-zero record is a place for one.
    let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info);
    // SAFETY: the record is valid for its size.
    let got = unsafe { libc::read(signals.as_raw_fd(), (&raw mut info).cast(), size) };
    let number = info.ssi_signo.cast_signed();
    let known = SIGNALS.into_iter().find(|&(signal, _)| signal == number);
    known.filter(|_| got == size as isize)
}

/// Says why, tells the manager, and ends the process.
fn finish(program: &str, state: &Mutex<State>, why: &str, status: i32, before: Duration) -> ! {
    let (waiting_for, aborter) = {
        let mut state = lock(state);
        (std::mem::take(&mut state.waiting_for), state.aborter.take())
    };
    let what = match waiting_for.as_str() {
        "" => String::new(),
        what => format!("; it waited for {what}"),
    };
    // Nobody may be reading.
    let _ = io::stderr().write_all(format!("{program}: {why}{what}\n").as_bytes());
    if let Some(aborter) = aborter {
        std::thread::sleep(before);
        let (said, hears) = mpsc::channel();
        let reason = why.to_owned();
        // The manager may be what does not answer.
        let told = std::thread::Builder::new().spawn(move || {
            aborter(status, &reason);
            let _ = said.send(());
        });
        if told.is_ok() {
            let _ = hears.recv_timeout(ABORT_TIME);
        }
    }
    // SAFETY: ends the process without its destructors, which may wait for what does not come.
    unsafe { libc::_exit(status) }
}

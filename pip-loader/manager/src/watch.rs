//! A watch over waits that nobody else can end: for the manager, for other nodes.
//!
//! Managers' libraries and streams block, and signals are blocked while a node starts. So a thread takes
//! the signals that ask a program to end, and looks at the time. When either comes it says what was waited
//! for, asks the manager to end the job, and ends the process: no rank runs yet that could lose
//! anything.
//!
//! **The loader's lock.** A program may join its job while it loads a library, and the dynamic linker holds a
//! lock meanwhile. The C library takes the same lock when a thread first uses thread-local data of a loaded
//! library, or registers a destructor of such data, as every thread of the standard library does. So this
//! is a plain thread of the C library that uses neither: system calls, the heap, and a mutex that nobody
//! poisons.

use crate::Place;
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Asks the manager to end the job with a status, for a reason; any thread may call it, also while another
/// one waits for the manager.
pub type Aborter = Box<dyn FnOnce(i32, &str) + Send>;

/// Exit status of a program that waited too long, as `timeout(1)` has it.
const TIMED_OUT: i32 = 124;

/// Seconds that the manager may take to hear that it shall end the job.
const ABORT_SECONDS: u32 = 1;

/// What a manager gets to pass a message on before it is told to end the job.
const OUTPUT_TIME: Duration = Duration::from_millis(300);

/// How long a node waits until it says what for: no longer than half of what it may.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many nodes say so: the missing one may be the first.
const SPEAKERS: u32 = 2;

/// The signals that end a waiting program.
const SIGNALS: [(c_int, &str); 3] = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")];

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
        let seconds = seconds.filter(|seconds| (1..=86400).contains(seconds));
        Self { time: Duration::from_secs(seconds.unwrap_or(300)), setting: START_TIMEOUT }
    }
}

#[derive(Default)]
struct WaitState {
    waiting_for: String,
    aborter: Option<Aborter>,
    /// This is one of those that say what they wait for.
    speaks: bool,
}

/// What the thread and the waiting program share.
struct Shared {
    program: &'static str,
    deadline: Option<(Instant, Limit)>,
    signals: OwnedFd,
    /// Readable when the watch is over.
    end: OwnedFd,
    state: Mutex<WaitState>,
}

/// Watches until it is dropped.
pub struct Watch {
    shared: Arc<Shared>,
    thread: libc::pthread_t,
}

impl Watch {
    /// Begins to watch; `program` begins the messages. The calling thread blocks the signals
    /// SIGINT, SIGTERM and SIGHUP, as all others of this process do.
    ///
    /// # Errors
    /// No thread or descriptor is left.
    pub fn begin(program: &'static str, limit: Option<Limit>) -> io::Result<Self> {
        // Most often this is the first thread beside the one that is here.
        crate::alone::prepare_for_threads();
        let shared = Arc::new(Shared {
            program,
            deadline: limit.map(|limit| (Instant::now() + limit.time, limit)),
            signals: signals()?,
            // SAFETY: makes a descriptor.
            end: owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?,
            state: Mutex::default(),
        });
        let mut thread = 0;
        let argument = Arc::into_raw(Arc::clone(&shared)).cast_mut();
        // SAFETY: a place for the result, default attributes, and the function that takes this argument.
        let status = unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), body, argument.cast()) };
        if status != 0 {
            // SAFETY: of `into_raw` above; no thread has it.
            drop(unsafe { Arc::from_raw(argument.cast_const()) });
            return Err(io::Error::from_raw_os_error(status));
        }
        Ok(Self { shared, thread })
    }

    /// Says what the program waits for from now on.
    pub fn waits_for(&self, what: impl Into<String>) {
        lock(&self.shared.state).waiting_for = what.into();
    }

    /// From now on there is a manager to tell, and this is the node at that place.
    pub fn connected(&self, aborter: Option<Aborter>, place: Place) {
        let mut state = lock(&self.shared.state);
        state.aborter = aborter;
        state.speaks = place.index < SPEAKERS;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (one, end) = (1_u64.to_ne_bytes(), self.shared.end.as_raw_fd());
        // SAFETY: eight bytes and a descriptor that is open. It cannot fail: nobody else writes to it.
        unsafe { libc::write(end, one.as_ptr().cast(), one.len()) };
        // SAFETY: a thread that nobody else joins, and that ends now.
        unsafe { libc::pthread_join(self.thread, std::ptr::null_mut()) };
    }
}

/// The thread.
extern "C" fn body(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `begin` gave it this away.
    let shared = unsafe { Arc::from_raw(argument.cast::<Shared>().cast_const()) };
    watch(&shared);
    std::ptr::null_mut()
}

fn lock(state: &Mutex<WaitState>) -> MutexGuard<'_, WaitState> {
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

fn watch(shared: &Shared) {
    let half = shared.deadline.map_or(PATIENCE, |(_, limit)| limit.time / 2);
    let mut tells_at = Some(Instant::now() + PATIENCE.min(half));
    loop {
        let deadline = shared.deadline.map(|(at, _)| at);
        let next = [deadline, tells_at].into_iter().flatten().min();
        let left = next.map(|at| at.saturating_duration_since(Instant::now()));
        // Rounded up, so that the time is over when the wait is.
        let rounded = |left: Duration| left.as_millis().min(i32::MAX as u128 - 1) as c_int + 1;
        let mut sources = [&shared.signals, &shared.end].map(|source| libc::pollfd {
            fd: source.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: two records, valid during the call.
        let ready = unsafe { libc::poll(sources.as_mut_ptr(), 2, left.map_or(-1, rounded)) };
        if sources[1].revents != 0 {
            return;
        }
        if let Some((number, name)) = take(&shared.signals) {
            let why = format!("ended by {name}");
            finish(shared, &why, 128 + number, Duration::ZERO);
        }
        if tells_at.is_some_and(|at| Instant::now() >= at) {
            tells_at = None;
            tell(shared);
        }
        if let Some((at, limit)) = shared.deadline
            && ready == 0
            && Instant::now() >= at
        {
            let seconds = limit.time.as_secs_f64();
            let why = format!("the job did not start within {seconds} s ({})", limit.setting);
            finish(shared, &why, TIMED_OUT, OUTPUT_TIME);
        }
    }
}

/// Says what is waited for, and for how long. Which node is missing nobody knows: managers tell that all have come.
fn tell(shared: &Shared) {
    let state = lock(&shared.state);
    if !state.speaks || state.waiting_for.is_empty() {
        return;
    }
    let most = shared
        .deadline
        .map_or_else(String::new, |(_, limit)| format!(", {} s at most ({})", limit.time.as_secs_f64(), limit.setting));
    let line = format!("{}: still waiting for {}{most}\n", shared.program, state.waiting_for);
    write(&line);
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
fn finish(shared: &Shared, why: &str, status: i32, before: Duration) -> ! {
    let (waiting_for, aborter) = {
        let mut state = lock(&shared.state);
        (std::mem::take(&mut state.waiting_for), state.aborter.take())
    };
    let what = match waiting_for.as_str() {
        "" => String::new(),
        what => format!("; it waited for {what}"),
    };
    let line = format!("{}: {why}{what}\n", shared.program);
    write(&line);
    if let Some(aborter) = aborter {
        std::thread::sleep(before);
        end_soon();
        aborter(status, why);
    }
    // SAFETY: ends the process without its destructors, which may wait for what does not come.
    unsafe { libc::_exit(status) }
}

/// Writes a line to standard error.
fn write(line: &str) {
    // SAFETY: bytes that are there. Nobody may be reading them, which does not matter.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Lets the system end this process should the manager not answer.
fn end_soon() {
    // SAFETY: an all-zero set is a place for one. The default action of the signal and this thread's mask change,
    // and the process ends in any case.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGALRM);
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::alarm(ABORT_SECONDS);
    }
}

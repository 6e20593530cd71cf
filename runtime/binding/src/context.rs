//! Who hears of an error, and what then happens.

use crate::process::Process;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::{Abi, HandleKind, INDEX_MAX, dynamic, neutral};
use cohort_base::Peer;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::sync::futex;
use cohort_base::text::{FixedText, say};
use cohort_engine::{Rank, lifecycle, reserve};
use cohort_object::Error;
use cohort_object::errhandler::Errhandler;
use cohort_object::ports;
use core::ffi::{c_int, c_void};
use core::time::Duration;

/// Who hears of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// The communicator with this neutral handle, or as `Process` if there is none.
    Comm(u32),
    /// The session with this neutral handle, or as `Process` if there is none.
    Session(u32),
    /// The file with this neutral handle, or `MPI_FILE_NULL` if there is none: it hears of the opening of files.
    File(u32),
    /// The window with this neutral handle, or as `Process` if there is none.
    Win(u32),
    /// The error handler that the call was given, which has heard.
    Told,
    /// Calls that have none of these: `MPI_COMM_SELF` (MPI-4.1, 9.3), or `MPI_COMM_WORLD` as long as the program
    /// has set no handler there; outside of initialisation and finalisation the initial error handler.
    Process,
}

impl Listener {
    /// The object that an operation belongs to, by its neutral handle.
    #[must_use]
    pub fn of(handle: u32) -> Self {
        let is = |kind| handle == dynamic(kind, handle & INDEX_MAX);
        if is(HandleKind::Win) {
            Self::Win(handle)
        } else if is(HandleKind::File) {
            Self::File(handle)
        } else {
            Self::Comm(handle)
        }
    }

    /// Who hears in fact, and the error handler.
    fn resolve(self, process: &Process) -> (Self, Errhandler) {
        let objects = &process.objects;
        let of_comm = |handle| {
            let object = objects.comm(handle).ok()?;
            Some(object.errhandler.lock().clone())
        };
        let found = match self {
            Self::Comm(handle) => of_comm(handle).or_else(|| objects.left_comm(handle).map(|it| it.0)),
            Self::Session(handle) => {
                let session = objects.session(handle).ok();
                session.map(|session| session.errhandler.lock().clone())
            }
            Self::File(handle) => {
                let file = objects.file(handle).ok();
                let own = file.map(|file| file.errhandler.lock().clone());
                Some(own.unwrap_or_else(|| objects.file_errhandler.lock().clone()))
            }
            Self::Win(handle) => {
                let win = objects.win(handle).ok();
                win.map(|win| win.errhandler.lock().clone())
            }
            Self::Told => Some(Errhandler::Return),
            Self::Process => None,
        };
        match found {
            Some(handler) => (self, handler),
            None => {
                let has_own = objects.has_own_errhandler.load(Ordering::Relaxed);
                let common = match has_own {
                    true => neutral::handle::COMM_SELF,
                    false => neutral::handle::COMM_WORLD,
                };
                let own = of_comm(common);
                let handler = own.unwrap_or_else(|| objects.initial_errhandler.lock().clone());
                match handler {
                    // It is told the object that the program set it for.
                    Errhandler::User(_) => (Self::Comm(common), handler),
                    _ => (Self::Process, handler),
                }
            }
        }
    }

    /// Neutral handle of the object that an error handler of the program is called for.
    fn object(self) -> u32 {
        match self {
            Self::Comm(object) | Self::Session(object) | Self::Win(object) | Self::File(object) => object,
            Self::Told | Self::Process => neutral::handle::COMM_SELF,
        }
    }

    /// Whom `MPI_ERRORS_ABORT` ends (MPI-4.1, 9.3): the groups of a communicator, a window's, or the caller alone.
    fn members(self, process: &Process) -> Vec<Peer> {
        let own = || alloc::vec![process.objects.rank().peer()];
        let handle = match self {
            Self::Comm(handle) => handle,
            Self::File(handle) => {
                let file = process.objects.file(handle);
                return file.map_or_else(|_| own(), |file| file.group().members().to_vec());
            }
            Self::Win(handle) => {
                let win = process.objects.win(handle);
                return win.map_or_else(|_| own(), |win| win.group().members().to_vec());
            }
            _ => return own(),
        };
        match process.objects.comm(handle) {
            Ok(comm) => comm.everybody(),
            Err(_) => process.objects.left_comm(handle).map_or_else(own, |it| it.1),
        }
    }
}

/// Reports an error in the MPI function `function` to the error handler of `listener`, and returns it as the
/// program's code if the handler returns.
#[cold]
pub fn raise<A: Abi>(process: &Process, function: &'static str, listener: Listener, error: &Error) -> c_int {
    let (listener, handler) = listener.resolve(process);
    tell(process, function, (listener, &handler), error);
    A::error_out(error.code())
}

/// Runs an error handler for an error in the MPI function `function`; returns if it does.
#[cold]
pub fn tell(process: &Process, function: &'static str, (listener, handler): (Listener, &Errhandler), error: &Error) {
    let why = match error.code() {
        neutral::ERR_NO_MEM => FixedText::<200>::of(format_args!("{}", reserve::why())),
        neutral::ERR_UNSUPPORTED_OPERATION => FixedText::of(format_args!("{MISSING}")),
        _ => FixedText::new(),
    };
    let detail = match error.detail() {
        "" => why.as_str(),
        detail => detail,
    };
    process.objects.errors.note(error.code(), detail);
    let site = Site { function, listener, detail };
    handle_error(process, &site, handler, error.code());
}

/// Where an error happened.
pub struct Site<'a> {
    /// The MPI function.
    pub function: &'static str,
    /// Whose error handler hears of it.
    pub listener: Listener,
    /// What is wrong, in words; may be empty.
    pub detail: &'a str,
}

/// Runs an error handler; returns if it does.
pub fn handle_error(process: &Process, site: &Site<'_>, handler: &Errhandler, code: i32) {
    match handler {
        Errhandler::Return => {}
        Errhandler::User(user) => user.callback.call(site.listener.object(), code),
        Errhandler::Fatal => die(process, site, true, code),
        Errhandler::Abort => die(process, site, false, code),
    }
}

/// Where to read of what is not implemented.
const MISSING: &str = "README and docs/functions.md of Cohort say what is";

/// Whether a rank of this node has said that something is not implemented: 0, [`SAYING`] or [`SAID`].
static MISSED: AtomicU32 = AtomicU32::new(0);
const SAYING: u32 = 1;
const SAID: u32 = 2;

/// How long others wait for the rank that says it.
const SAYS: Duration = Duration::from_secs(1);

/// Says a line that all ranks are likely to say, once on a node. Who comes later waits until it is said: it is about to
/// end the job, and that rank with it.
fn say_once(rank: &Rank, line: &str) {
    match MISSED.compare_exchange(0, SAYING, Ordering::Relaxed, Ordering::Acquire) {
        Ok(_) => {
            say(rank.node().boot().report_fd(), format_args!("{line}\n"));
            MISSED.store(SAID, Ordering::Release);
            futex::wake(&MISSED, u32::MAX >> 1);
        }
        Err(SAYING) => drop(futex::wait(&MISSED, SAYING, Some(SAYS))),
        Err(_) => {}
    }
}

/// Ends the job, or the processes that the object of the error belongs to, after a line that says why.
fn die(process: &Process, site: &Site<'_>, is_fatal: bool, code: i32) -> ! {
    let handler = match is_fatal {
        true => "MPI_ERRORS_ARE_FATAL",
        false => "MPI_ERRORS_ABORT",
    };
    let objects = &process.objects;
    let place = match site.listener {
        Listener::Comm(comm) => comm_name(process, comm),
        Listener::Session(_) => "a session".into(),
        Listener::File(file) => process.objects.file(file).map_or("MPI_FILE_NULL".into(), |file| file.name()),
        Listener::Win(win) => win_name(process, win),
        Listener::Told | Listener::Process => String::new(),
    };
    let on = if place.is_empty() { "" } else { " on " };
    let class = objects.errors.class_of(code).unwrap_or(neutral::ERR_UNKNOWN);
    let text = objects.errors.text(code).unwrap_or_default();
    // Some texts have it already.
    let detail = if text.ends_with(site.detail) { "" } else { site.detail };
    let line = FixedText::<1024>::of(format_args!(
        "cohort: {}: {} failed{on}{place}: {text}{}{detail} (error handler {handler})",
        objects.rank().name(),
        site.function,
        if detail.is_empty() { "" } else { ": " },
    ));
    // An exit status has eight bits, and 0 would mean success.
    let (rank, status) = (objects.rank(), class.clamp(1, 255));
    let line = match code {
        neutral::ERR_UNSUPPORTED_OPERATION => {
            say_once(rank, line.as_str());
            FixedText::new()
        }
        _ => line,
    };
    if is_fatal {
        lifecycle::abort_with(rank, status, line.as_str(), ports::end)
    } else {
        lifecycle::abort_members(rank, &site.listener.members(process), status, line.as_str(), ports::end)
    }
}

/// The name of a communicator, for messages.
pub fn comm_name(process: &Process, comm: u32) -> String {
    let name = process.objects.comm(comm).map(cohort_object::Comm::name).unwrap_or_default();
    match name.is_empty() {
        false => name,
        true if comm == neutral::handle::COMM_SELF => "MPI_COMM_SELF".into(),
        // Before MPI_Init and after MPI_Finalize there are no names.
        true if comm == neutral::handle::COMM_WORLD => "MPI_COMM_WORLD".into(),
        true => "an unnamed communicator".into(),
    }
}

/// The name of a window, for messages.
fn win_name(process: &Process, win: u32) -> String {
    let name = process.objects.win(win).map(|win| win.name());
    match name {
        Ok(name) if !name.is_empty() => name,
        _ => "an unnamed window".into(),
    }
}

/// Who hears that this function is not implemented.
fn listener_of(name: &str) -> Listener {
    match name.starts_with("MPI_File_") {
        true => Listener::File(neutral::handle::FILE_NULL),
        false => Listener::Process,
    }
}

/// What a function that is not implemented does: it raises `MPI_ERR_UNSUPPORTED_OPERATION`.
///
/// # Safety
/// `caller` is what [`attach`](crate::process::attach) returned.
#[cold]
pub unsafe fn unsupported<A: Abi>(caller: *const c_void, name: &'static str) -> c_int {
    // SAFETY: the condition of this function is the same.
    let process = unsafe { Process::of(caller) };
    let error = Error::from(neutral::ERR_UNSUPPORTED_OPERATION);
    raise::<A>(process, name, listener_of(name), &error)
}

/// The same for a function of another library whose result is no error code: any result would be a wrong answer, so the
/// job ends.
///
/// # Safety
/// As [`unsupported`].
#[cold]
pub unsafe fn unsupported_value<A: Abi>(caller: *const c_void, name: &'static str) -> c_int {
    // SAFETY: the condition of this function is the same.
    let rank = unsafe { Process::of(caller) }.objects.rank();
    let line = FixedText::<256>::of(format_args!(
        "cohort: {}: {name} is not implemented, and what it returns cannot say so; {MISSING}",
        rank.name(),
    ));
    lifecycle::abort_with(rank, 1, line.as_str(), ports::end)
}

//! A launcher for a process that nobody started for MPI, and that spawns.
//!
//! The launcher is `pip-exec`, as a task in the address space of the process, with a C library of its own as all ranks
//! have: so the ranks that it starts share the process's address space. The process is rank 0 of the launcher's job.
//!
//! ```text
//! process, in MPI_Comm_spawn                     launcher
//! F1 freezes the break, so that its C library    L1 finds the record of the process (AT_FOUNDER)
//!    and the launcher's have nothing in common   L2 blocks signals, so that none is lost, and takes
//! F2 starts the launcher, and a thread that         what is on the desk
//!    waits for its end                           L3 serves the desk at each SIGCHLD; learns of the
//! F3 writes its number on the desk                  process's end by a descriptor
//! F4 leaves its request, then sends SIGCHLD      L4 ends when all ranks have ended, with the job's
//! F5 at its end: says so, and waits for F2's        status
//!    thread
//! ```
//!
//! If the launcher ends with another status than 0, the job has failed, and the thread ends the process with that
//! status. So a launcher that cannot start leaves nobody waiting.

use crate::{block_signals, own_folder, restore_signals};
use cohort_base::boot::{AT_FOUNDER, Founder, Lifecycle, NodeBoot, RankBoot};
use cohort_base::spawn::WAITER;
use pip_load::image::{OpenError, Template, reserve};
use pip_load::task;
use pip_load::task::crash::HANDLER_STACK;
use pip_load::task::stack::{self, Extra, InheritedAuxiliary, Strings};
use pip_load::task::start::{self, Program, StartPlan};
use std::ffi::{CString, OsString, c_char, c_int, c_void};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// File name of the launcher, and the folders in which it may lie, from that of this library.
const LAUNCHER: &str = "pip-exec";
const FOLDERS: [&str; 3] = ["", "../../bin", "../bin"];

/// Bytes of its stack.
const STACK: usize = 8 << 20;

/// A launcher that has been started.
struct Founded {
    /// The process whose launcher it is. One that it forks has none.
    process: u32,
    launcher: i32,
    founder: &'static Founder,
    rank: &'static RankBoot,
    /// Waits for its end.
    waiter: Option<JoinHandle<c_int>>,
}

static FOUNDED: Mutex<Option<Founded>> = Mutex::new(None);

#[link(name = "c")]
unsafe extern "C" {
    static stdout: *mut libc::FILE;
    fn ftrylockfile(stream: *mut libc::FILE) -> c_int;
    fn fflush_unlocked(stream: *mut libc::FILE) -> c_int;
    fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Starts a launcher; see [`cohort_base::boot::NodeFound`].
///
/// # Safety
/// The record is that of the calling process's node of one rank, which stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cohort_found(node: *const NodeBoot) -> *const c_char {
    let mask = block_signals();
    // SAFETY: the caller's contract.
    let result = found(unsafe { &*node }, &mask);
    restore_signals(&mask);
    match result {
        Ok(()) => null(),
        Err(reason) => CString::new(reason).map_or(c"no launcher".as_ptr(), |text| text.into_raw().cast_const()),
    }
}

/// # Errors
/// Why there is none, in words.
fn found(node: &'static NodeBoot, mask: &libc::sigset_t) -> Result<(), String> {
    // SAFETY: NULL, or records that stay.
    let (desk, rank) = unsafe { (node.desk.as_ref(), node.ranks.as_ref()) };
    let (Some(desk), Some(rank)) = (desk, rank) else {
        return Err("this process has no place for other ranks".to_owned());
    };
    let mut founded = FOUNDED.lock().map_err(|_| "a thread has failed to start the launcher".to_owned())?;
    if desk.launcher() != 0 {
        return Ok(());
    }
    let path = launcher()?;
    let refuse = |what: &str, error: &io::Error| format!("the launcher cannot be started: {what}: {error}");
    let file = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    task::freeze_break().map_err(|error| refuse("cannot freeze the program break", &error))?;
    let founder: &'static Founder = Box::leak(Box::new(Founder {
        boot: node,
        process: std::process::id() as i32,
        launcher: file.into_raw(),
        has_finished: AtomicU32::new(0),
    }));
    let launcher = start(&path, founder, mask).map_err(|error| refuse(&path.display().to_string(), &error))?;
    let waiter = std::thread::Builder::new().name(WAITER.to_owned());
    let waiter = waiter.spawn(move || wait(launcher, founder));
    let waiter = waiter.map_err(|error| {
        // SAFETY: a process that nobody else knows of.
        unsafe { libc::kill(launcher, libc::SIGKILL) };
        refuse("no thread that waits for its end", &error)
    })?;
    // SAFETY: a plain function of a library that is never unloaded.
    unsafe { on_exit(finish, null_mut()) };
    *founded = Some(Founded { process: std::process::id(), launcher, founder, rank, waiter: Some(waiter) });
    desk.set_launcher(launcher);
    Ok(())
}

/// Where the launcher lies.
fn launcher() -> Result<PathBuf, String> {
    let own = own_folder();
    let found = FOLDERS.iter().map(|folder| own.join(folder).join(LAUNCHER)).find(|path| path.is_file());
    let found = found.and_then(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        format!(
            "{LAUNCHER}, which starts processes, is neither in {} nor in {}; the installation is incomplete",
            own.display(),
            own.join(FOLDERS[1]).display()
        )
    })
}

/// Starts the launcher's task; gives its number.
fn start(path: &Path, founder: &'static Founder, mask: &libc::sigset_t) -> io::Result<i32> {
    let open = |path: &Path| {
        Template::open(path).map_err(|error| match error {
            OpenError::Io(error) => error,
            OpenError::Elf(error) => io::Error::other(format!("{error:?}")),
        })
    };
    let no_linker = || io::Error::from_raw_os_error(libc::ENOEXEC);
    let interpreter = open(path)?.plan().interpreter.clone().ok_or_else(no_linker)?;
    let linker = open(Path::new(&interpreter))?.map()?;
    let words = [interpreter.as_ref(), path.as_os_str()];
    let environment: Vec<OsString> = std::env::vars_os()
        .map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            entry
        })
        .collect();
    let strings = Strings::new(words, environment.iter().map(OsString::as_os_str), interpreter.as_ref())?;
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let size = STACK.max(4 * strings.stack_bytes().next_multiple_of(1 << 16));
    let memory = reserve(size + HANDLER_STACK, writable, libc::MAP_NORESERVE | libc::MAP_STACK)? as usize;
    let (handler_stack, bottom) = (memory, memory + HANDLER_STACK);
    let extra = Extra { variables: &[], auxiliary: (AT_FOUNDER, std::ptr::from_ref(founder) as u64) };
    let auxiliary = InheritedAuxiliary::of_this_process()?;
    // SAFETY: memory that was mapped just now.
    let stack_pointer = unsafe { stack::build(bottom..bottom + size, &strings, &linker, &auxiliary, extra)? };
    let mut name = [0; 16];
    name[..LAUNCHER.len()].copy_from_slice(LAUNCHER.as_bytes());
    let plan: &'static StartPlan = Box::leak(Box::new(StartPlan {
        follows: false,
        // Whoever waits for the end of a pipe of the program's does not wait for the launcher.
        close: &[(3, u32::MAX)],
        // SAFETY: the kernel's words are the first ones of the C library's set.
        signal_mask: unsafe { std::ptr::from_ref(mask).cast::<u64>().read() },
        name,
        ..StartPlan::new(stack_pointer, Program::Mapped(linker.entry), handler_stack)
    }));
    // SAFETY: all of it was mapped for this task and stays; signals are blocked.
    unsafe { start::start(plan) }
}

/// Waits for the end of the launcher, and ends the process if the job has failed, but for one that is ending already.
/// Returns the job's status.
fn wait(launcher: i32, founder: &Founder) -> c_int {
    let mut status = 0;
    // SAFETY: a place for the result.
    while unsafe { libc::waitpid(launcher, &raw mut status, libc::__WALL) } < 0 {
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            // A handler of the program's has waited for it.
            return 0;
        }
    }
    let status = match libc::WIFEXITED(status) {
        true => libc::WEXITSTATUS(status),
        false => {
            let signal = libc::WTERMSIG(status);
            let _ = writeln!(io::stderr(), "cohort: the launcher of spawned processes was killed by signal {signal}");
            128 + signal
        }
    };
    if status != 0 && founder.has_finished.load(Ordering::Acquire) == 0 {
        // SAFETY: what the program has written is kept, if no other thread is writing; then the process ends.
        unsafe {
            if ftrylockfile(stdout) == 0 {
                fflush_unlocked(stdout);
            }
            libc::_exit(status)
        }
    }
    status
}

/// Before the process ends: waits until all that it has spawned have ended, and ends with the job's status if its own
/// is 0.
extern "C" fn finish(status: c_int, _: *mut c_void) {
    // Another thread of the process that forked this one may have had the lock.
    let Ok(mut founded) = FOUNDED.try_lock() else {
        return;
    };
    let own = founded.as_mut().filter(|it| it.process == std::process::id());
    let Some(Founded { launcher, founder, rank, waiter, .. }) = own else {
        return;
    };
    // A rank that leaves within MPI ends the job: the launcher sees it.
    if rank.lifecycle.load(Ordering::Acquire) == Lifecycle::Initialized as u32 {
        return;
    }
    founder.has_finished.store(1, Ordering::Release);
    // SAFETY: it has not been waited for, as its waiter still is.
    unsafe { libc::kill(*launcher, libc::SIGCHLD) };
    let waiter = waiter.take();
    drop(founded);
    let job = waiter.and_then(|waiter| waiter.join().ok()).unwrap_or_default();
    if status == 0 && job != 0 {
        // SAFETY: glibc goes on with the handlers that are left, and takes the new status.
        unsafe { libc::exit(job) }
    }
}

//! The lines of Python that ranks are in.
//!
//! Frames of Python have another layout in each release, and the function that knows it is part of every interpreter:
//! `_Py_DumpTraceback`, by which `faulthandler` prints a thread's frames. It reads only, allocates nothing and takes no
//! lock, but what it reads may change, or be broken. So a child process calls it: a copy of this one with all of its
//! memory, in which the ranks' interpreters stand still, and whose crash harms nobody. The child has this thread's
//! registers, thread-local data among them; the function uses none of a rank's but `errno`, which it sets, in a copy.
//!
//! Of each interpreter the frames of the main thread are had: the one that was made first.

use super::super::fault::read_words;
use goblin::elf::Elf;
use libc::c_int;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, pthread_sigmask};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, pipe2};
use std::ffi::c_void;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// How long all interpreters together may take.
const TIME: Duration = Duration::from_millis(500);

/// Most threads of an interpreter that are passed by, should the list be damaged.
const THREADS_MAX: usize = 100_000;

/// The functions that are called, by name.
const NAMES: [&str; 4] =
    ["_Py_DumpTraceback", "PyInterpreterState_Main", "PyInterpreterState_ThreadHead", "PyThreadState_Next"];

/// Folders of what is installed: a program's own functions are elsewhere.
const INSTALLED: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python3"];

/// Where the functions of an interpreter are: in its file, or with what was added to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter([u64; NAMES.len()]);

impl Interpreter {
    /// Those in a file, if it is a Python or its library and names them all.
    pub(super) fn in_file(elf: &Elf<'_>) -> Option<Self> {
        let main = elf
            .dynsyms
            .iter()
            .find(|symbol| symbol.st_value != 0 && elf.dynstrtab.get_at(symbol.st_name) == Some(NAMES[1]));
        main?;
        let named = |wanted: &str| {
            let dynamic = elf.dynsyms.iter();
            let mut dynamic = dynamic.filter(|it| elf.dynstrtab.get_at(it.st_name) == Some(wanted));
            // Some releases keep one of them to themselves: it is found in a file that was not stripped.
            let mut all = elf.syms.iter();
            let found = dynamic
                .find(|it| it.st_value != 0)
                .or_else(|| all.find(|it| it.st_value != 0 && elf.strtab.get_at(it.st_name) == Some(wanted)));
            found.map(|symbol| symbol.st_value)
        };
        let mut places = [0; NAMES.len()];
        for (place, name) in places.iter_mut().zip(NAMES) {
            *place = named(name)?;
        }
        Some(Self(places))
    }

    /// Those of a file that is mapped so far from its own addresses.
    pub(super) fn moved_by(self, distance: u64) -> Self {
        Self(self.0.map(|address| address.wrapping_add(distance)))
    }

    /// Writes the frames of the main thread.
    ///
    /// # Safety
    /// The functions are those of an interpreter, whose memory nobody changes. It may be broken: then this crashes.
    unsafe fn dump(self, file: c_int) {
        type State = *mut c_void;
        let [dump, main, head, next] = self.0.map(|address| address as usize);
        // SAFETY: the caller's promise; these are their types in all releases.
        unsafe {
            let dump: unsafe extern "C" fn(c_int, State) = std::mem::transmute(dump);
            let main: unsafe extern "C" fn() -> State = std::mem::transmute(main);
            let head: unsafe extern "C" fn(State) -> State = std::mem::transmute(head);
            let next: unsafe extern "C" fn(State) -> State = std::mem::transmute(next);
            let interpreter = main();
            if interpreter.is_null() {
                return;
            }
            // The newest is the first.
            let mut thread = head(interpreter);
            for _ in 0..THREADS_MAX {
                let older = if thread.is_null() { thread } else { next(thread) };
                if older.is_null() {
                    break;
                }
                thread = older;
            }
            if !thread.is_null() {
                dump(file, thread);
            }
        }
    }
}

/// The functions of Python that the main threads of these interpreters are in, each with its file and line, the
/// innermost first. None for those that do not tell, and for all behind one that is broken.
#[must_use]
pub fn frames(interpreters: &[Interpreter]) -> Vec<Vec<String>> {
    let text = match interpreters {
        [] => String::new(),
        _ => ask_child(interpreters).unwrap_or_default(),
    };
    let mut parts = text.split('\0');
    let parts = interpreters.iter().map(|_| parts.next().unwrap_or_default());
    parts.map(read).collect()
}

/// What a child writes that looks at them, each part with a NUL at its end.
fn ask_child(interpreters: &[Interpreter]) -> Option<String> {
    // What is not mapped any more is not asked.
    let is_there = |it: &Interpreter| it.0.iter().all(|at| read_words::<1>(*at as usize).is_some());
    if !interpreters.iter().all(is_there) {
        return None;
    }
    let (from, into) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).ok()?;
    // Handlers of this process are none of the child's. Faults cannot be blocked: they end it.
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before)).ok()?;
    let no_flags: libc::c_long = 0;
    // SAFETY: a copy of this process with the stack and all memory; without a signal at its end, so that nobody but we
    // hears of it. It calls no function of the C library that takes a lock.
    let child = unsafe { libc::syscall(libc::SYS_clone, no_flags, 0, 0, 0, 0) };
    if child == 0 {
        // SAFETY: the copy's only thread; nobody changes the memory of an interpreter, and a crash ends the copy.
        unsafe { be_child(interpreters, into.as_raw_fd()) };
    }
    let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    drop(into);
    let child = i32::try_from(child).ok().filter(|child| *child > 0)?;
    let text = read_until_closed(File::from(from), Instant::now() + TIME);
    let child = Pid::from_raw(child);
    let _ = kill(child, Signal::SIGKILL);
    let _ = waitpid(child, Some(WaitPidFlag::__WALL));
    Some(text)
}

/// The child's part: never comes back.
///
/// # Safety
/// In a process that is a copy for this.
unsafe fn be_child(interpreters: &[Interpreter], file: c_int) -> ! {
    // SAFETY: system calls, and what the caller promises.
    unsafe {
        // Its core would be that of the whole job.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        for interpreter in interpreters {
            interpreter.dump(file);
            libc::write(file, c"".as_ptr().cast(), 1);
        }
        libc::syscall(libc::SYS_exit_group, 0);
    }
    // The call before does not come back.
    std::process::abort()
}

/// What is written into a pipe before its other end closes, or before it is late.
fn read_until_closed(mut pipe: File, until: Instant) -> String {
    let (mut text, mut room) = (Vec::new(), [0; 4096]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, left).unwrap_or(0) < 1 {
            break;
        }
        match pipe.read(&mut room) {
            Ok(count) if count > 0 => text.extend(&room[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The program's own functions among the frames that an interpreter has written; all of them if none is.
fn read(text: &str) -> Vec<String> {
    let frames: Vec<(&str, String)> = text.lines().filter_map(frame).collect();
    let is_own = |file: &str| !INSTALLED.iter().any(|folder| file.contains(folder));
    let any_own = frames.iter().any(|(file, _)| is_own(file));
    let shown = frames.into_iter().filter(|(file, _)| !any_own || is_own(file));
    shown.map(|(_, text)| text).collect()
}

/// File and text of the frame on a line `  File "/a/b.py", line 3 in main`. None for Python's own start.
fn frame(line: &str) -> Option<(&str, String)> {
    let (file, rest) = line.trim().strip_prefix("File \"")?.rsplit_once("\", line ")?;
    let (number, function) = rest.split_once(" in ")?;
    let name = file.rsplit('/').next()?;
    let is_start = file.starts_with("<frozen ") || name == "runpy.py";
    (!is_start).then(|| (file, format!("{function} at {name}:{number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMPED: &str = "Stack (most recent call first):\n\
        \x20 File \"/usr/lib/python3/dist-packages/numpy/core.py\", line 7 in solve\n\
        \x20 File \"/home/me/my \"\"best\".py\", line 12 in work\n\
        \x20 File \"/home/me/a.py\", line 30 in <module>\n\
        \x20 File \"<frozen runpy>\", line 88 in _run_code\n";

    #[test]
    fn the_programs_own_functions_are_shown() {
        assert_eq!(read(DUMPED), ["work at my \"\"best\".py:12", "<module> at a.py:30"]);
        let installed: String = DUMPED.lines().take(2).map(|line| format!("{line}\n")).collect();
        assert_eq!(read(&installed), ["solve at core.py:7"]);
        assert!(read("  <no Python frame>\nFile \"a\n, line ").is_empty());
    }

    #[test]
    fn what_is_no_interpreter_costs_a_child_only() {
        // Addresses that can be read, and are no functions.
        let word = Box::new(u64::MAX);
        let nonsense = Interpreter([&raw const *word as u64; 4]);
        assert_eq!(frames(&[nonsense]), [Vec::<String>::new()]);
        let unmapped = Interpreter([8; 4]);
        assert_eq!(frames(&[unmapped]), [Vec::<String>::new()]);
        assert!(frames(&[]).is_empty());
    }
}

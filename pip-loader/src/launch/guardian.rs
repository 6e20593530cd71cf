//! Who ends what ranks have started when `pip-exec` is killed.
//!
//! `kill -9` of the root takes the ranks along (`PR_SET_PDEATHSIG`), but not the processes that they have started:
//! these become init's children, and nothing leads from the root to them. So the root starts a process, the guardian,
//! which does nothing but wait for the root's end, and knows the job's processes by two marks:
//! * the variable [`VARIABLE`] in the environment of programs that ranks, or what they started, have executed;
//! * a mapping of a file in memory with the job's name, which a process has that a rank forked and that
//!   executed nothing.
//!
//! It is no child of the root, whose children are the ranks, has a session of its own, and no descriptors but standard
//! error and its end of a connection with the root. A root that ends by itself dismisses it. When the connection
//! breaks without that, it kills whatever has a mark, until nothing has.
//!
//! When memory runs out, the kernel kills all processes that share an address space: root and ranks at once, and
//! nobody is left to say so. The guardian has a memory of its own. It knows by the kernel's count, and says it. Who
//! asks for memory before that of the killed is free is killed next, so the guardian has what it needs for that from
//! the beginning, and waits a moment before it goes on ([`Count`]).
//!
//! Files that the job has made and writes to when it ends (a timeline, a report) would stay empty: the root names them,
//! and the guardian removes those that are.
//!
//! What it does not find: programs whose environment was emptied (`env -i`, `sudo`), and those of other users.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, setsid};

/// In the environment of ranks, and so of what they execute: the name of the job on this node.
pub const VARIABLE: &str = "COHORT_GUARDED_JOB";

/// What the guardian says when the root was killed, and the kernel has killed processes meanwhile.
const OUT_OF_MEMORY: &str = "pip-exec: the job was killed, and memory has run out since it began: \
     the kernel then kills all ranks and pip-exec, which share it. Run fewer ranks, or allow more memory \
     (docker run -m, --mem of a batch system, resources.limits.memory)";

/// What the root says: its guardian is dismissed; the name of a file follows, behind its length.
const DISMISSED: u8 = b'x';
const FILE: u8 = b'f';

/// Between two looks for processes.
const PAUSE: Duration = Duration::from_millis(20);

/// How long the kernel may take to get back the memory of those that it has killed.
const MEMORY_TIME: Duration = Duration::from_millis(50);

/// Longest text of the kernel's counts.
const COUNTS_MAX: usize = 32 << 10;

/// Looks in a row that must find nothing: ranks may start processes until they are gone.
const EMPTY_LOOKS: u32 = 3;

/// How long it looks at most.
const LOOKS_END: Duration = Duration::from_secs(5);

/// Milliseconds that the root waits for the end of a guardian that it has dismissed.
const DISMISSAL_MS: u8 = 200;

/// The root's end of the connection. Dropped, it dismisses the guardian.
#[derive(Debug)]
pub struct Guardian {
    /// What [`VARIABLE`] says.
    pub job: String,
    connection: Option<UnixStream>,
}

impl Guardian {
    /// Starts the guardian and puts the marks. Where the system does not let it, there is none.
    ///
    /// # Safety
    /// The process has one thread.
    pub unsafe fn start() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let moment = since.unwrap_or_default().as_nanos();
        let job = format!("{}.{moment}", std::process::id());
        KILLED_BEFORE.store(kills_for_memory(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        let connection = unsafe { part(&job) }.ok();
        if connection.is_some() {
            // Without the mark, forked processes that execute nothing are not found.
            let _ = put_mark(&job);
        }
        Self { job, connection }
    }
}

impl Guardian {
    /// None: the job has a name only.
    pub fn none() -> Self {
        Self { job: std::process::id().to_string(), connection: None }
    }

    /// Names a file that is empty as long as the root has not ended by itself.
    pub fn name_file(&mut self, file: &Path) {
        let (Some(connection), Ok(file)) = (&mut self.connection, std::path::absolute(file)) else {
            return;
        };
        let name = file.as_os_str().as_bytes();
        if let Ok(length) = u16::try_from(name.len()) {
            let words = [&[FILE], &length.to_ne_bytes()[..], name].concat();
            let _ = connection.write_all(&words);
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.connection
            && connection.write_all(&[DISMISSED]).is_ok()
        {
            // Whoever started the root finds none of its processes behind its end.
            let mut end = [PollFd::new(connection.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut end, PollTimeout::from(DISMISSAL_MS));
        }
    }
}

/// Starts the guardian of a job; the root's end of the connection with it.
///
/// # Safety
/// As for [`Guardian::start`].
unsafe fn part(job: &str) -> io::Result<UnixStream> {
    let (own, its) = UnixStream::pair()?;
    // SAFETY: there is one thread, so the child's copy of everything is whole.
    match unsafe { fork()? } {
        ForkResult::Parent { child } => {
            let _ = waitpid(child, None);
            Ok(own)
        }
        ForkResult::Child => {
            drop(own);
            // SAFETY: as above. The parent in between ends, so that the guardian is not the root's child.
            if let Ok(ForkResult::Child) = unsafe { fork() } {
                guard(its, job);
            }
            // SAFETY: no handler of the root's is to run.
            unsafe { libc::_exit(0) }
        }
    }
}

/// The guardian's life.
fn guard(mut connection: UnixStream, job: &str) {
    let _ = setsid();
    // Who looks for launchers, by name or to signal them, does not mean this one.
    let _ = nix::sys::prctl::set_name(c"cohort-guardian");
    let _ = std::env::set_current_dir("/");
    let mut count = Count::open();
    let kept = count.as_ref().map_or(-1, |count| count.file.as_raw_fd());
    keep_only(&[connection.as_raw_fd(), libc::STDERR_FILENO, kept]);
    // Where the user may; the kernel then takes others.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let Some(files) = hear(&mut connection) else {
        return;
    };
    std::thread::sleep(MEMORY_TIME);
    let say = |text: &str| {
        // Whoever reads it may be gone too.
        let _ = writeln!(io::stderr(), "{text}");
    };
    if count.as_mut().is_some_and(Count::has_grown) {
        say(OUT_OF_MEMORY);
    }
    for file in files.iter().filter(|file| is_empty(file)) {
        if std::fs::remove_file(file).is_ok() {
            let file = file.display();
            say(&format!("pip-exec: killed before it could write {file}, which is removed"));
        }
    }
    // Whoever reads it waits for its end, and not for what follows.
    // SAFETY: only this function writes there, and it does not any more.
    unsafe { libc::close(libc::STDERR_FILENO) };
    let marks = Marks::of(job);
    let end = Instant::now() + LOOKS_END;
    let mut empty = 0;
    while empty < EMPTY_LOOKS && Instant::now() < end {
        match marks.kill_all() {
            0 => empty += 1,
            _ => empty = 0,
        }
        std::thread::sleep(PAUSE);
    }
}

/// Hears the root until its end: the files that it has named, or `None` when it has dismissed its guardian.
fn hear(connection: &mut UnixStream) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut word = [0];
    while connection.read_exact(&mut word).is_ok() {
        let mut length = [0; 2];
        if word != [FILE] {
            return None;
        }
        if connection.read_exact(&mut length).is_err() {
            break;
        }
        let mut name = vec![0; usize::from(u16::from_ne_bytes(length))];
        if connection.read_exact(&mut name).is_err() {
            break;
        }
        files.push(OsString::from_vec(name).into());
    }
    Some(files)
}

/// Whether it is a file with nothing in it.
fn is_empty(file: &Path) -> bool {
    std::fs::symlink_metadata(file).is_ok_and(|it| it.is_file() && it.len() == 0)
}

/// How many it was when the guardian started.
static KILLED_BEFORE: AtomicU64 = AtomicU64::new(0);

/// Whether the kernel has killed a process of this machine for lack of memory since the guardian started.
pub fn memory_has_run_out() -> bool {
    kills_for_memory() > KILLED_BEFORE.load(Ordering::Relaxed)
}

/// How many processes the kernel has killed for lack of memory, on the whole machine.
fn kills_for_memory() -> u64 {
    let counts = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    killed_by(&counts)
}

fn killed_by(counts: &str) -> u64 {
    let count = counts.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The kernel's count of processes that it has killed for lack of memory, open and with room for it, so that a look
/// needs no memory that was not there at the beginning.
struct Count {
    file: File,
    text: Vec<u8>,
    before: u64,
}

impl Count {
    fn open() -> Option<Self> {
        let file = File::open("/proc/vmstat").ok()?;
        let before = KILLED_BEFORE.load(Ordering::Relaxed);
        // Written to, so that the pages are there.
        let mut count = Self { file, text: vec![b' '; COUNTS_MAX], before };
        // The kernel's own memory for it is there after the first look.
        count.has_grown();
        Some(count)
    }

    fn has_grown(&mut self) -> bool {
        let length = self.file.read_at(&mut self.text, 0).unwrap_or(0);
        std::str::from_utf8(&self.text[..length]).is_ok_and(|text| killed_by(text) > self.before)
    }
}

/// Closes all descriptors but these.
fn keep_only(kept: &[i32]) {
    let open = std::fs::read_dir("/proc/self/fd").map(|entries| {
        let numbers = entries.flatten().map(|entry| entry.file_name());
        let numbers = numbers.filter_map(|name| name.to_str()?.parse::<i32>().ok());
        numbers.collect::<Vec<_>>()
    });
    for number in open.unwrap_or_default() {
        if !kept.contains(&number) {
            // SAFETY: nothing that owns one of them is used or dropped in this process any more.
            unsafe { libc::close(number) };
        }
    }
}

/// Maps a file in memory with the job's name, for as long as the process lives. The file is empty, because a limit of
/// the size of files (`ulimit -f`) is for it too, and kills whoever exceeds it.
fn put_mark(job: &str) -> io::Result<()> {
    let name = CString::new(map_name(job))?;
    // SAFETY: a string; the result is checked.
    let number = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: opened just now.
    let _file = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number) };
    // SAFETY: a new mapping at a place of the kernel's choice, which nobody looks into.
    let start = unsafe {
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        libc::mmap(std::ptr::null_mut(), 1, protection, flags, number, 0)
    };
    match start == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}

fn map_name(job: &str) -> String {
    format!("cohort-job-{job}")
}

/// How the processes of a job are known.
struct Marks {
    /// An entry of an environment.
    entry: Vec<u8>,
    /// A part of a line of `/proc/PID/maps`.
    map: String,
    /// The program that processes run that have executed none.
    own_program: Option<std::path::PathBuf>,
}

impl Marks {
    fn of(job: &str) -> Self {
        Self {
            entry: format!("{VARIABLE}={job}").into_bytes(),
            map: format!("/memfd:{} ", map_name(job)),
            own_program: std::fs::read_link("/proc/self/exe").ok(),
        }
    }

    /// Kills all processes with a mark; their number.
    fn kill_all(&self) -> usize {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let marked = numbers.filter(|&pid| self.are_at(Path::new(&format!("/proc/{pid}"))));
        let killed = marked.filter(|&pid| kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok());
        killed.count()
    }

    /// Whether the process of this folder has one.
    fn are_at(&self, process: &Path) -> bool {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|entry| entry == self.entry) {
            return true;
        }
        let program = std::fs::read_link(process.join("exe")).ok();
        let runs_ours = program.is_some() && program == self.own_program;
        runs_ours
            && std::fs::read(process.join("maps")).is_ok_and(|maps| String::from_utf8_lossy(&maps).contains(&self.map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_heard_unless_the_guardian_is_dismissed() {
        let hear_of = |words: &[u8]| {
            let (mut root, mut guardian) = UnixStream::pair().expect("a pair");
            root.write_all(words).expect("room");
            drop(root);
            hear(&mut guardian)
        };
        let length = 4_u16.to_ne_bytes();
        let named = [&[FILE], &length[..], b"/a\xff\n"].concat();
        let heard = hear_of(&named).expect("the root has not said goodbye");
        assert_eq!(heard, [PathBuf::from(OsString::from_vec(b"/a\xff\n".to_vec()))]);
        assert_eq!(hear_of(&[&named[..], &[DISMISSED]].concat()), None);
        assert_eq!(hear_of(&named[..5]), Some(Vec::new()));
    }

    #[test]
    fn the_count_of_kills_is_read() {
        assert_eq!(killed_by("nr_free_pages 7\noom_kill 12\noom_killer 5\n"), 12);
        assert_eq!(killed_by("nr_free_pages 7\n"), 0);
    }
}

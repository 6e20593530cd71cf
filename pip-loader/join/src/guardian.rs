//! Who looks after a rank that joined its job without `pip-exec`.
//!
//! Exit handlers do not see every end: `_exit` runs none, and a rank that waits in MPI does not look at its manager. So
//! a rank has a process beside it, the guardian, which waits for either end, and does for the rank what `pip-exec`
//! does for its ranks:
//! * The rank ends between initialisation and finalisation: the guardian says so and has the manager end the job.
//!   It holds a copy of the connection, because a manager that sees it close kills the other ranks without a word,
//!   and counts an exit status of 0 as a good end.
//! * The rank ends before or behind its use of MPI, but by `_exit`: the guardian takes leave of the manager for it.
//! * The manager is gone: the guardian ends the rank.
//!
//! It is a copy of the process, which may have had several threads, so it uses neither the heap nor locks. It is no
//! child that the program's `wait` finds, has all signals blocked, and no descriptors but those that it needs.

use cohort_base::boot::{Lifecycle, RankBoot};
use cohort_manager::{Manager, Parting};
use std::ffi::{c_int, c_long, c_short};
use std::io::{Cursor, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// A rank's end closes its connections before it shows; milliseconds after which they are not its.
const END_SHOWS_MS: c_int = 500;

/// Milliseconds that the manager may take to answer.
const ANSWER_MS: c_int = 1000;

/// How often the guardian asks for the status of a rank that has ended, which its parent may take at any time.
const STATUS_LOOKS: u32 = 3;

/// What the rank and its guardian share.
struct Shared {
    /// A copy of [`RankBoot::lifecycle`].
    lifecycle: AtomicU32,
    /// 1 when the rank has taken leave of its manager itself.
    left: AtomicU32,
    /// 1 when the rank has called `MPI_Abort`, and its code.
    aborted: AtomicU32,
    code: AtomicI32,
}

/// The rank's end of what it shares with its guardian.
pub struct Guardian {
    shared: &'static Shared,
}

impl Guardian {
    /// Starts the guardian of this process. Where the system does not let it, there is none.
    pub fn start(manager: &dyn Manager, rank: &mut RankBoot) -> Option<Self> {
        let parting = manager.parting();
        let line = manager.line()?.as_raw_fd();
        let shared = share()?;
        // SAFETY: asks for a descriptor of this process.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
        if process < 0 {
            return None;
        }
        // SAFETY: just made.
        let process = unsafe { OwnedFd::from_raw_fd(process as c_int) };
        let watch = Watch {
            shared,
            pid: std::process::id(),
            rank: rank.world_rank,
            process: process.as_raw_fd(),
            line,
            parting: parting.as_ref(),
        };
        // SAFETY: a copy of this process, as fork makes it, but without a signal at its end. The copy uses nothing that
        // another thread may have been changing.
        let copy = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
        match copy {
            0 => watch.guard(),
            1.. => {
                rank.witness = &raw const shared.lifecycle;
                Some(Self { shared })
            }
            _ => None,
        }
    }

    /// The rank takes leave of its manager itself.
    pub fn leaves(&self) {
        self.shared.left.store(1, Ordering::Release);
    }

    /// The rank has called `MPI_Abort`, and has said why. Release: pairs with the guardian's acquire.
    pub fn aborts(&self, code: i32) {
        self.shared.code.store(code, Ordering::Relaxed);
        self.shared.aborted.store(1, Ordering::Release);
    }
}

/// A page that a copy of this process shares with it.
fn share() -> Option<&'static Shared> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    let size = size_of::<Shared>();
    // SAFETY: new memory at a place of the kernel's choice.
    let page = unsafe { libc::mmap(null_mut(), size, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: zeros are values of all atomics, and the page is never unmapped.
    Some(unsafe { &*page.cast::<Shared>() })
}

/// What the guardian knows.
struct Watch<'a> {
    shared: &'static Shared,
    pid: u32,
    rank: u32,
    process: c_int,
    line: c_int,
    parting: Option<&'a Parting>,
}

impl Watch<'_> {
    /// The guardian's life.
    fn guard(&self) -> ! {
        // SAFETY: a string; changes this process's name only.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"cohort-guardian".as_ptr()) };
        self.close_others();
        self.wait(-1);
        // The end of either may come a moment before that of the rank.
        match self.wait_for_rank(END_SHOWS_MS) {
            true => self.on_end(),
            false => self.on_lost_manager(),
        }
        // SAFETY: ends this process; no handler of the program's is to run.
        unsafe { libc::_exit(0) }
    }

    /// Closes what this process does not need, so that nobody waits for its copies.
    fn close_others(&self) {
        let mut kept = [libc::STDERR_FILENO, self.process, self.line];
        kept.sort_unstable();
        let mut first = 0;
        for number in kept.into_iter().chain([c_int::MAX]) {
            if first < number {
                // SAFETY: nothing that owns one of them is used or dropped in this process any more.
                unsafe { libc::syscall(libc::SYS_close_range, first, number - 1, 0) };
            }
            first = number.saturating_add(1);
        }
    }

    /// Waits for the end of the rank or of the manager.
    fn wait(&self, limit: c_int) {
        let source = |fd, events: c_short| libc::pollfd { fd, events, revents: 0 };
        let mut sources = [source(self.process, libc::POLLIN), source(self.line, libc::POLLRDHUP)];
        // SAFETY: two records, valid during the call.
        while unsafe { libc::poll(sources.as_mut_ptr(), 2, limit) } < 0 {}
    }

    /// Whether the rank has ended, or does within so many milliseconds.
    fn wait_for_rank(&self, limit: c_int) -> bool {
        let mut source = libc::pollfd { fd: self.process, events: libc::POLLIN, revents: 0 };
        // SAFETY: one record, valid during the call.
        unsafe { libc::poll(&raw mut source, 1, limit) > 0 }
    }

    fn on_end(&self) {
        let status = self.status();
        let is_within = self.shared.lifecycle.load(Ordering::Acquire) == Lifecycle::Initialized as u32;
        let aborted = self.shared.aborted.load(Ordering::Acquire) != 0;
        if !is_within && !aborted {
            if self.shared.left.load(Ordering::Acquire) == 0
                && let Some(parting) = self.parting
            {
                self.tell(&parting.finalize);
                self.hear();
            }
            return;
        }
        // A rank that ends with another status has said why, or its manager does.
        if matches!(status, None | Some(0)) && !aborted {
            self.say("ended without calling MPI_Finalize");
        }
        if let Some(parting) = self.parting {
            let code = match status.filter(|_| !aborted).map(|status| (status & 0x7f, (status >> 8) & 0xff)) {
                Some((0, code @ 1..)) => code,
                Some((signal @ 1.., _)) => 128 + signal,
                _ if aborted => self.shared.code.load(Ordering::Relaxed).cast_unsigned(),
                _ => 1,
            };
            // Managers that are told to end a job do not pass on what is still in their pipes.
            // SAFETY: waits.
            unsafe { libc::poll(null_mut(), 0, 300) };
            let mut buffer = [0; 256];
            self.tell(parting.abort(code as u8, &mut buffer));
        }
    }

    fn on_lost_manager(&self) {
        self.say("is ended, because its process manager is gone");
        let (kill, none): (c_long, c_long) = (libc::SYS_pidfd_send_signal, 0);
        // SAFETY: signals the process that the descriptor means, which has not ended.
        unsafe { libc::syscall(kill, self.process, libc::SIGKILL, none, none) };
    }

    /// The status of the rank, which has ended, in the words of `wait`; `None` if its parent has taken it already.
    fn status(&self) -> Option<u32> {
        let mut path = [0_u8; 40];
        write!(Cursor::new(&mut path[..39]), "/proc/{}/stat", self.pid).ok()?;
        (0..STATUS_LOOKS).find_map(|_| read_status(&path))
    }

    fn say(&self, what: &str) {
        let mut line = [0_u8; 160];
        let mut cursor = Cursor::new(&mut line[..]);
        let (rank, pid) = (self.rank, self.pid);
        let _ = writeln!(cursor, "cohort: rank {rank} (pid {pid}) {what}");
        let length = cursor.position() as usize;
        // SAFETY: bytes that are there. Nobody may be reading them: signals are blocked.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
    }

    /// Takes the manager's answer: Hydra's proxy ends the job if it cannot send one.
    fn hear(&self) {
        let mut source = libc::pollfd { fd: self.line, events: libc::POLLIN, revents: 0 };
        let mut answer = [0_u8; 256];
        // SAFETY: one record, valid during the call, and room for the bytes.
        unsafe {
            if libc::poll(&raw mut source, 1, ANSWER_MS) > 0 {
                libc::read(self.line, answer.as_mut_ptr().cast(), answer.len());
            }
        }
    }

    /// Nobody answers, and whoever does not hear it sees the end of the connection.
    fn tell(&self, words: &[u8]) {
        // SAFETY: bytes that are there.
        unsafe { libc::write(self.line, words.as_ptr().cast(), words.len()) };
    }
}

/// The last field of a line of `/proc/PID/stat`, if the process is one that has ended.
fn read_status(path: &[u8]) -> Option<u32> {
    let mut text = [0_u8; 1024];
    // SAFETY: a path with its NUL.
    let file = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY) };
    // SAFETY: at most as many bytes as there is room for.
    let length = unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: opened above, or no descriptor, which is refused.
    unsafe { libc::close(file) };
    let text = std::str::from_utf8(text.get(..usize::try_from(length).ok()?)?).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let status = fields.trim_end().rsplit(' ').next()?.parse().ok()?;
    fields.starts_with('Z').then_some(status)
}

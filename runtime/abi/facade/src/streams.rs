//! What a rank prints, on its way to a pipe or a file.
//!
//! A C library holds lines back unless they go to a terminal. For a program by itself that is a saving. For a rank it
//! means that users see the lines of a long run at its end, and never those before a failure, since whoever fails ends
//! all others. So standard output of a rank has the habits of a terminal: a line goes out when it ends. The program may
//! choose otherwise, with `setvbuf`, and so may its user, with `stdbuf`.
//!
//! What is still held back, a begun line or the buffer that the program chose, goes out before `MPI_Abort` or a fault
//! ends the rank. Another thread may print at this moment, or the thread that fails may have been printing: a lock that
//! is taken, or a reader that does not come, is not waited for. A program may print through other streams than the C
//! library's first (`stdout = fdopen(dup(1), "w")`, `fopen("/dev/stdout", "w")`), so the list of all that are open is
//! looked through for those that lead where standard output does. `MPI_Abort` loses nothing of the other ones either, a
//! log for instance, as `exit` would not, nor of C++'s `cout` (`sync_with_stdio(false)`). A fault does, as in any
//! program.

use crate::{fail, is_own, libc};
use cohort_base::boot::RankBoot;
use cohort_base::text::complain;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, fstat, fstatvfs};
use rustix::process::{Resource, geteuid, getrlimit};

/// How many seconds the last words wait for a reader.
const PATIENCE: i64 = 1;

/// The most streams that are looked through: the list may change meanwhile.
const STREAMS_MAX: usize = 4096;

/// C++'s `cout`, its function that finds a stream's buffer, the one that writes a buffer out, and a table among the
/// library's data, behind which the buffers lie that it has itself.
static CPP: [AtomicPtr<c_void>; 4] = [const { AtomicPtr::new(ptr::null_mut()) }; 4];
const CPP_NAMES: [&CStr; 4] = [
    c"_ZSt4cout",
    c"_ZNKSt9basic_iosIcSt11char_traitsIcEE5rdbufEv",
    c"_ZNSt15basic_streambufIcSt11char_traitsIcEE7pubsyncEv",
    c"_ZTVN9__gnu_cxx18stdio_sync_filebufIcSt11char_traitsIcEEE",
];

/// Has the rank's lines come out as they end, and nothing of them be lost at the rank's end without a word.
pub fn prepare(boot: &'static RankBoot) {
    // SAFETY: the C library's stream, before the program runs or between two of its calls; no buffer is given. The
    // name ends with a zero.
    unsafe {
        if may_hold_back() && libc::getenv(c"_STDBUF_O".as_ptr()).is_null() {
            libc::setvbuf(libc::stdout, ptr::null_mut(), libc::LINE_BUFFERED, 0);
        }
        // SAFETY: registers a function of this library, which is linked never to be unloaded, and a record that stays.
        libc::on_exit(check, ptr::from_ref(boot).cast_mut().cast());
    }
    for (found, name) in CPP.iter().zip(CPP_NAMES) {
        // SAFETY: a name that ends with a zero; a NULL object stands for the program and its libraries.
        let symbol = unsafe { libc::dlsym(ptr::null_mut(), name.as_ptr()) };
        if symbol.is_null() {
            break;
        }
        found.store(symbol, Ordering::Relaxed);
    }
    // Last: they use what was found.
    boot.last_words.leave(last_words);
}

/// Whether the C library takes standard output for something in which lines may wait.
fn may_hold_back() -> bool {
    // SAFETY: whatever it is now; if it is closed the call fails.
    let output = unsafe { BorrowedFd::borrow_raw(rustix::stdio::raw_stdout()) };
    let kind = fstat(output).map(|stat| FileType::from_raw_mode(stat.st_mode));
    kind.is_ok_and(|kind| kind != FileType::CharacterDevice)
}

/// Writes what streams hold back, unless that could wait: at a fault, of those that lead where standard output does.
extern "C" fn last_words() {
    let is_fault = is_in_handler();
    let mut seconds = PATIENCE;
    let mut write_out = |stream: *mut libc::Stream| {
        // SAFETY: a stream of this task's C library, whose lock this thread has. If it had it before, it was
        // interrupted while it wrote there: then the bytes up to the stream's own mark are complete.
        unsafe {
            let output = libc::fileno_unlocked(stream);
            if libc::__fpending(stream) == 0 || is_fault && !is_output(output) {
                return;
            }
            match state(output, PollFlags::OUT, seconds) {
                PollFlags::OUT => {
                    libc::fflush_unlocked(stream);
                }
                // Others have no time of their own.
                nothing if nothing.is_empty() => seconds = 0,
                _ => {}
            }
        }
    };
    each_stream(&mut write_out);
    if !is_fault {
        // SAFETY: the C library's own stream, if the program has not put another one there: then that one.
        let output = unsafe { libc::stdout };
        write_out_cpp(output, seconds);
    }
}

/// Whether a signal was taken on a stack of its own, as faults are.
fn is_in_handler() -> bool {
    let mut stack = libc::SignalStack { start: ptr::null_mut(), flags: 0, size: 0 };
    // SAFETY: asks only.
    unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) == 0 && stack.flags & libc::ON_STACK != 0 }
}

/// Calls this for each open stream that no other thread has locked. No lock of the list is taken: its holder may be
/// waiting for a reader. Who closes a stream in this very moment is not looked for.
fn each_stream(mut act: impl FnMut(*mut libc::Stream)) {
    // SAFETY: the list is the C library's, and each of its streams is open.
    unsafe {
        let (mut place, end) = (libc::_IO_iter_begin(), libc::_IO_iter_end());
        for _ in 0..STREAMS_MAX {
            if place == end {
                return;
            }
            let stream = libc::_IO_iter_file(place);
            place = libc::_IO_iter_next(place);
            if libc::ftrylockfile(stream) == 0 {
                act(stream);
                libc::funlockfile(stream);
            }
        }
    }
}

/// Whether a descriptor leads where standard output does.
fn is_output(descriptor: c_int) -> bool {
    let file = |descriptor: c_int| {
        // SAFETY: whatever it is now; if it is closed the call fails.
        let stat = fstat(unsafe { BorrowedFd::borrow_raw(descriptor) }).ok()?;
        Some((stat.st_dev, stat.st_ino))
    };
    let output = rustix::stdio::raw_stdout();
    descriptor == output || descriptor >= 0 && file(output).is_some_and(|output| file(descriptor) == Some(output))
}

/// Writes what C++'s `cout` holds back by itself. What it writes to is the program's choice; the C library's stream is
/// locked meanwhile, as it is what that is at first.
fn write_out_cpp(stream: *mut libc::Stream, seconds: i64) {
    if state(rustix::stdio::raw_stdout(), PollFlags::OUT, seconds) != PollFlags::OUT {
        return;
    }
    // SAFETY: a stream of this task's C library; its lock is given back.
    unsafe {
        if libc::ftrylockfile(stream) == 0 {
            sync_cpp(Buffers::All);
            libc::funlockfile(stream);
        }
    }
}

/// What `cout` may write to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Buffers {
    /// Whatever the program has chosen.
    All,
    /// Its own: at the program's end another one may be gone, and is nobody's standard output.
    Own,
}

/// Bytes of the C++ library's data.
const CPP_DATA: usize = 256 << 10;

/// Has C++'s `cout` write what it holds back; false if that fails.
fn sync_cpp(buffers: Buffers) -> bool {
    let [cout, buffer_of, write_out, own] = CPP.each_ref().map(|it| it.load(Ordering::Relaxed));
    if write_out.is_null() {
        return true;
    }
    // SAFETY: functions of the C++ library of these types. `cout` is an object with virtual bases, or still zeros: the
    // word before the two at which its table begins says where the base is that has the buffer.
    unsafe {
        let table: *const isize = cout.cast::<*const isize>().read();
        if table.is_null() {
            return true;
        }
        let base = cout.byte_offset(table.sub(3).read());
        let buffer_of = transmute::<*mut c_void, extern "C" fn(*mut c_void) -> *mut c_void>(buffer_of);
        let write_out = transmute::<*mut c_void, extern "C" fn(*mut c_void) -> c_int>(write_out);
        let buffer = buffer_of(base);
        let is_own = (own.addr()..own.addr() + CPP_DATA).contains(&buffer.addr());
        let is_asked = buffers == Buffers::All || !own.is_null() && is_own;
        buffer.is_null() || !is_asked || write_out(buffer) == 0
    }
}

/// What poll says about a descriptor, within so many seconds; a file is always ready.
fn state(descriptor: c_int, wanted: PollFlags, seconds: i64) -> PollFlags {
    if descriptor < 0 {
        return PollFlags::NVAL;
    }
    // SAFETY: if it is closed, poll says so.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let mut asked = [PollFd::from_borrowed_fd(descriptor, wanted)];
    let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
    // Of no use when the call fails: nothing is known then, and nothing done.
    let _ = poll(&mut asked, Some(&limit));
    asked[0].revents()
}

/// At the program's end, after its own handlers: a program that printed to a full disk has failed, though few look.
extern "C" fn check(status: c_int, boot: *mut c_void) {
    // SAFETY: the record that was registered.
    if !is_own(unsafe { &*boot.cast::<RankBoot>() }) {
        return;
    }
    let mut is_lost = false;
    // If it has been closed, or its reader has gone, nobody wants it.
    let is_wanted = |descriptor| state(descriptor, PollFlags::empty(), 0).is_empty();
    // SAFETY: a stream of this task's C library, whose lock this thread has.
    each_stream(|stream| unsafe {
        let descriptor = libc::fileno_unlocked(stream);
        let has_news = libc::__fpending(stream) != 0 || libc::ferror_unlocked(stream) != 0;
        if has_news && libc::__fwritable(stream) != 0 && is_output(descriptor) {
            let failed = libc::fflush_unlocked(stream) != 0 || libc::ferror_unlocked(stream) != 0;
            is_lost |= failed && is_wanted(descriptor);
        }
    });
    is_lost |= !sync_cpp(Buffers::Own) && is_wanted(rustix::stdio::raw_stdout());
    let status_of_loss = if status == 0 { 1 } else { status };
    match end_of_output() {
        _ if is_lost => {
            let reason = "some of what the program printed is lost: standard output cannot be written (a full disk?)";
            fail(status_of_loss, format_args!("{reason}"));
        }
        // Runtimes of other languages (gfortran's) write by themselves, and look at no error.
        End::Cut => fail(
            status_of_loss,
            format_args!("some of what the program printed is lost: standard output ends where its disk is full"),
        ),
        End::Empty => complain(format_args!(
            "cohort: standard output is an empty file on a full disk: whatever the program printed is lost\n"
        )),
        End::Free => {}
    }
}

/// Where a file ends to which standard output leads.
enum End {
    /// There is room behind it.
    Free,
    /// It is full, and all blocks are used up, as if the last write had found no room.
    Cut,
    /// Nothing was written, and nothing can be.
    Empty,
}

/// Bytes of the shortest block of a disk.
const SECTOR: u64 = 512;

/// Looks at the file of standard output: who writes what does not fit fills the last block.
fn end_of_output() -> End {
    // SAFETY: whatever it is now; if it is closed the calls fail.
    let output = unsafe { BorrowedFd::borrow_raw(rustix::stdio::raw_stdout()) };
    let (Ok(file), Ok(disk)) = (fstat(output), fstatvfs(output)) else {
        return End::Free;
    };
    let size = file.st_size as u64;
    let free = if geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
    // Some systems of files do not say how much room they have.
    let is_full = disk.f_blocks != 0 && disk.f_frsize >= SECTOR && free == 0;
    let is_long = getrlimit(Resource::Fsize).current.is_some_and(|most| size != 0 && size >= most);
    match FileType::from_raw_mode(file.st_mode) == FileType::RegularFile {
        true if is_long => End::Cut,
        true if is_full && size == 0 => End::Empty,
        true if is_full && size.is_multiple_of(disk.f_frsize) => End::Cut,
        _ => End::Free,
    }
}

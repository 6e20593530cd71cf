//! What a rank prints, on its way to a pipe or a file.
//!
//! A C library holds lines back unless they go to a terminal. For a program by itself that is a saving. For a rank it
//! means that users see the lines of a long run at its end, and never those before a failure, since whoever fails ends
//! all others. So standard output of a rank has the habits of a terminal: a line goes out when it ends. The program may
//! choose otherwise, with `setvbuf`, and so may its user, with `stdbuf`.
//!
//! What is still held back, a begun line or the buffer that the program chose, goes out before `MPI_Abort` or a fault
//! ends the rank. Another thread may print at this moment, or the thread that fails may have been printing: a lock that
//! is taken, or a reader that does not come, is not waited for.

use crate::{fail, is_own, libc};
use cohort_base::boot::RankBoot;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, fstat};

/// The C library's stream of standard output. A program may put another one in its place, and close that one.
static OUTPUT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// How many seconds the last words wait for a reader.
const PATIENCE: i64 = 1;

/// Has the rank's lines come out as they end, and nothing of them be lost at the rank's end without a word.
pub fn prepare(boot: &'static RankBoot) {
    // SAFETY: the C library's stream, before the program runs or between two of its calls; no buffer is given. The
    // name ends with a zero.
    unsafe {
        OUTPUT.store(libc::stdout.cast(), Ordering::Relaxed);
        if may_hold_back() && libc::getenv(c"_STDBUF_O".as_ptr()).is_null() {
            libc::setvbuf(libc::stdout, ptr::null_mut(), libc::LINE_BUFFERED, 0);
        }
        // SAFETY: registers a function of this library, which is linked never to be unloaded, and a record that stays.
        libc::on_exit(check, ptr::from_ref(boot).cast_mut().cast());
    }
    // Last: they use the stream.
    boot.last_words.leave(last_words);
}

/// Whether the C library takes standard output for something in which lines may wait.
fn may_hold_back() -> bool {
    // SAFETY: whatever it is now; if it is closed the call fails.
    let output = unsafe { BorrowedFd::borrow_raw(rustix::stdio::raw_stdout()) };
    let kind = fstat(output).map(|stat| FileType::from_raw_mode(stat.st_mode));
    kind.is_ok_and(|kind| kind != FileType::CharacterDevice)
}

/// Writes what is held back of standard output, unless that could wait.
extern "C" fn last_words() {
    // SAFETY: a stream of this task's C library, whose lock this thread has. If it had it before, it was interrupted
    // while it wrote there: then the bytes up to the stream's own mark are complete.
    unsafe {
        let stream = OUTPUT.load(Ordering::Relaxed).cast();
        if libc::ftrylockfile(stream) == 0 {
            let output = libc::fileno_unlocked(stream);
            if state(output, PollFlags::OUT, PATIENCE) == PollFlags::OUT {
                libc::fflush_unlocked(stream);
            }
            libc::funlockfile(stream);
        }
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
    // SAFETY: a stream of this task's C library, whose lock this thread has.
    let is_lost = unsafe {
        let stream = OUTPUT.load(Ordering::Relaxed).cast();
        if libc::ftrylockfile(stream) != 0 {
            return;
        }
        let flushed = libc::fflush_unlocked(stream);
        let failed = flushed != 0 || libc::ferror_unlocked(stream) != 0;
        let descriptor = libc::fileno_unlocked(stream);
        libc::funlockfile(stream);
        // If it has been closed, or its reader has gone, nobody wants it.
        failed && state(descriptor, PollFlags::empty(), 0).is_empty()
    };
    if is_lost {
        let status = if status == 0 { 1 } else { status };
        let reason = "some of what the program printed is lost: standard output cannot be written (a full disk?)";
        fail(status, format_args!("{reason}"));
    }
}

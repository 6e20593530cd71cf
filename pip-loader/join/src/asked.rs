//! A thread that tells `pip-exec` what this rank waits for: nobody else sees into an address space of its own.
//!
//! It has a table of descriptors of its own, with one socket, so that nothing the program closes or opens concerns it,
//! and all signals are blocked. Where a system has no such tables, or no thread is left, the rank is not asked.

use cohort_base::boot::{Lifecycle, RankBoot, Rest};
use cohort_base::picture::Fact;
use cohort_manager::asked::{Question, Said, THREAD, serve};
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Its stack: it has little to do, and some libraries keep much thread-local data at its end.
const STACK: usize = 512 << 10;

/// The record of the rank, which its own thread goes on filling until the rank uses MPI.
struct Record(*const RankBoot);

// SAFETY: other threads look at its atomics only until then, and it does not change any more but in these then.
unsafe impl Send for Record {}

/// What the program's table of descriptors has of the thread's socket.
pub struct Asked {
    number: c_int,
    socket: Socket,
    /// The thread has a table of its own.
    is_apart: Arc<AtomicBool>,
}

impl Asked {
    /// Closes the program's copy of the socket, if it is one that nobody needs.
    pub fn close(self) {
        if self.is_apart.load(Ordering::Acquire) && socket_at(self.number) == Some(self.socket) {
            // SAFETY: nobody owns it: the thread has one of its own, under the same number in its table.
            unsafe { libc::close(self.number) };
        }
    }
}

/// What tells a socket from what else may come to have its number: device and inode.
type Socket = (libc::dev_t, libc::ino_t);

fn socket_at(number: c_int) -> Option<Socket> {
    // SAFETY: all zero is a valid value, and the call fills it.
    unsafe {
        let mut facts: libc::stat = std::mem::zeroed();
        (libc::fstat(number, &raw mut facts) == 0).then_some((facts.st_dev, facts.st_ino))
    }
}

/// Answers at this end of a connection from now on. Does not wait for the thread, which may begin late: where a program
/// opens MPI with `dlopen`, no thread gets its thread-local data before that has returned.
///
/// # Safety
/// All signals are blocked. The record stays, and what it leads to is there once the rank uses MPI, and stays.
pub unsafe fn begin(stream: UnixStream, rank: *const RankBoot) -> Option<Asked> {
    let number = stream.as_raw_fd();
    let socket = socket_at(number)?;
    let is_apart = Arc::new(AtomicBool::new(false));
    let (record, tells) = (Record(rank), is_apart.clone());
    // What is closed, or not, is the program's.
    let stream = ManuallyDrop::new(stream);
    let body = move || {
        let record = record;
        // The program may have closed it meanwhile, and opened something else.
        if keep_only(number) && socket_at(number) == Some(socket) {
            tells.store(true, Ordering::Release);
            serve(&stream, |question| said(&record, question));
        }
    };
    let thread = std::thread::Builder::new().name(THREAD.to_owned()).stack_size(STACK);
    thread.spawn(body).ok().map(|_| Asked { number, socket, is_apart })
}

/// Makes a table of descriptors for the calling thread that holds nothing but this one.
fn keep_only(number: c_int) -> bool {
    let number = number.cast_unsigned();
    let unshare = libc::CLOSE_RANGE_UNSHARE;
    // SAFETY: nothing that owns one of them is used or dropped on this thread.
    unsafe {
        libc::syscall(libc::SYS_close_range, number + 1, u32::MAX, unshare) == 0
            && (number == 0 || libc::syscall(libc::SYS_close_range, 0, number - 1, 0) == 0)
    }
}

/// What the rank says.
fn said(record: &Record, question: Question) -> Said {
    // SAFETY: an atomic of a record that stays.
    let stage = unsafe { &(*record.0).lifecycle }.load(Ordering::Acquire);
    let mut said = Said { stage, rest: Rest { threads: 0, number: 0 }, facts: Vec::new() };
    if stage != Lifecycle::Initialized as u32 {
        return said;
    }
    // SAFETY: it is complete when the rank uses MPI.
    let rank = unsafe { &*record.0 };
    // SAFETY: as said, and NULL or the image's functions.
    let Some(api) = (unsafe { rank.api.as_ref() }) else {
        return said;
    };
    if question == Question::Look {
        // SAFETY: the node of this rank, its only one; `hear` is called with the address of the facts during this call.
        unsafe { (api.look)(rank.node, rank.local_rank, hear, (&raw mut said.facts).cast()) };
    }
    // SAFETY: as above.
    said.rest = unsafe { (api.rest)(rank.node, rank.local_rank) };
    said
}

unsafe extern "C" fn hear(data: *mut c_void, fact: *const Fact) {
    // SAFETY: `said` gives the address of its facts; a fact is valid during the call.
    unsafe { (*data.cast::<Vec<Fact>>()).push(*fact) };
}

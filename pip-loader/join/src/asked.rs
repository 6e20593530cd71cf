//! A thread that tells `pip-exec` what this rank waits for: nobody else sees into an address space of its own.
//!
//! It has a table of descriptors of its own, with one socket, so that nothing the program closes or opens concerns it,
//! and all signals are blocked. Where a system has no such tables, or no thread is left, the rank is not asked.

use cohort_base::boot::{Lifecycle, RankBoot, Rest};
use cohort_base::picture::Fact;
use cohort_manager::asked::{Question, Said, THREAD, serve};
use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

/// Its stack: it has little to do, and some libraries keep much thread-local data at its end.
const STACK: usize = 512 << 10;

/// The record of the rank, which its own thread goes on filling until the rank uses MPI.
struct Record(*const RankBoot);

// SAFETY: other threads look at its atomics only until then, and it does not change any more but in these then.
unsafe impl Send for Record {}

/// Answers at this end of a connection from now on.
///
/// # Safety
/// All signals are blocked. The record stays, and what it leads to is there once the rank uses MPI, and stays.
pub unsafe fn begin(stream: UnixStream, rank: *const RankBoot) {
    let (ready, wait) = mpsc::channel();
    let number = stream.as_raw_fd();
    let record = Record(rank);
    let body = move || {
        let record = record;
        let is_apart = keep_only(&stream);
        // Who started this waits for it.
        let _ = ready.send(());
        if is_apart {
            serve(&stream, |question| said(&record, question));
        } else {
            // The socket is the program's too, and closed there.
            std::mem::forget(stream);
        }
    };
    let thread = std::thread::Builder::new().name(THREAD.to_owned()).stack_size(STACK);
    if thread.spawn(body).is_ok() {
        let _ = wait.recv();
        // SAFETY: this table's copy, which nobody owns: the thread has one of its own, or has forgotten it.
        unsafe { libc::close(number) };
    }
}

/// Makes a table of descriptors for the calling thread that holds nothing else.
fn keep_only(stream: &UnixStream) -> bool {
    let number = stream.as_raw_fd().cast_unsigned();
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

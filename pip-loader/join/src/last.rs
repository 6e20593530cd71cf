//! The end of a program whose first thread leaves by `pthread_exit`.
//!
//! A C library ends a process with its last thread. The network's threads never end by themselves, so such a process
//! would stay when the program's last thread is gone. Hence, from when the first thread leaves, a thread looks for the
//! others, and ends the process as the C library would: with status 0, through its exit handlers.

use cohort_base::spawn::OURS;
use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

/// Between two looks at the process's threads.
const LOOK: Duration = Duration::from_millis(50);

/// The process that has joined, and the network's threads in it.
static JOINED: OnceLock<(u32, HashSet<u32>)> = OnceLock::new();

/// The threads of this process; none if the system does not tell.
pub fn threads() -> HashSet<u32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter_map(number).collect()
}

/// Notes that the threads which there are now and were not `before` are the network's, and waits for the end of this
/// thread, if it is the process's first. Of a program that opens MPI from another thread nothing is known.
pub fn begin(before: &HashSet<u32>) {
    let process = std::process::id();
    // SAFETY: asks for a number.
    let is_first = unsafe { libc::gettid() }.cast_unsigned() == process;
    let started = threads().difference(before).copied().collect();
    if !is_first || before.is_empty() || JOINED.set((process, started)).is_err() {
        return;
    }
    let mut key = 0;
    // SAFETY: a place for the key; its function belongs to a library that is never unloaded. Any value but NULL has it
    // called when this thread leaves by `pthread_exit`; `exit` calls none.
    unsafe {
        if libc::pthread_key_create(&raw mut key, Some(on_leave)) == 0 {
            libc::pthread_setspecific(key, std::ptr::dangling());
        }
    }
}

/// The first thread leaves. What a child has that was forked from it is no thread of the network.
unsafe extern "C" fn on_leave(_: *mut c_void) {
    let Some((process, started)) = JOINED.get() else {
        return;
    };
    if *process != std::process::id() {
        return;
    }
    let mask = super::block_signals();
    let thread = std::thread::Builder::new().name(format!("{OURS}last"));
    // Without a thread the process stays.
    let _ = thread.spawn(move || end_with_the_others(*process, started));
    super::restore_signals(&mask);
}

fn end_with_the_others(process: u32, started: &HashSet<u32>) {
    // SAFETY: asks for a number.
    let own = unsafe { libc::gettid() }.cast_unsigned();
    let is_ours = |thread: u32| {
        // A number alone may have come again.
        let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
        started.contains(&thread) && name.is_ok_and(|name| name.starts_with(OURS))
    };
    loop {
        std::thread::sleep(LOOK);
        let all = threads();
        let mut others = all.iter().filter(|&&it| it != process && it != own);
        if !all.is_empty() && others.all(|&thread| is_ours(thread)) {
            const GOOD: c_int = 0;
            // SAFETY: the program has no thread any more that this could surprise.
            unsafe { libc::exit(GOOD) };
        }
    }
}

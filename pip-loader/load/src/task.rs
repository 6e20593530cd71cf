//! Starts a rank: its stack, its auxiliary vector, its task.
//!
//! A rank is a task of its own thread group that shares only the address space:
//! `clone(CLONE_VM | SIGCHLD)`. It has its own pid, descriptors, working directory and
//! signal dispositions. Between the clone and the jump into its dynamic linker it runs
//! [`start`]'s code with the root's thread pointer, so that code makes raw system calls
//! only; see the stage table in `docs/loading.md`.

mod arch;
pub mod crash;
pub mod debug;
pub mod exec;
pub mod inherit;
pub mod stack;
pub mod start;

use std::io;

/// Keeps the kernel's heap (`brk`) from growing for as long as the address space lives, by reserving a page behind it.
/// Every rank's libc would else believe the one heap to be its own; so each falls back to `mmap`. Call before the first
/// rank starts.
///
/// It keeps it from shrinking as well: the C library of the calling process would give memory back (`malloc_trim`) as
/// long as its heap ends at the break, and the break would have room for others. So the break is moved by a page, which
/// nobody uses, when nobody else can move it up any more.
///
/// # Errors
/// Reserving fails for another reason than that the page is taken already.
pub fn freeze_break() -> io::Result<()> {
    let page = cohort_arch::page();
    // SAFETY: `sbrk(0)` only reads the break.
    let the_break = || unsafe { libc::sbrk(0) } as usize;
    loop {
        let end = the_break();
        // The kernel leaves a page between the break and what follows.
        let guard = (end + 2 * page).next_multiple_of(page);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: MAP_FIXED_NOREPLACE replaces nothing.
        let mapped = unsafe { libc::mmap(guard as *mut _, page, libc::PROT_NONE, flags, -1, 0) };
        let error = io::Error::last_os_error();
        match (mapped, error.raw_os_error()) {
            // Another thread has moved it meanwhile.
            (libc::MAP_FAILED, Some(libc::EEXIST)) if the_break() != end => {}
            (libc::MAP_FAILED, Some(code)) if code != libc::EEXIST => return Err(error),
            _ => break,
        }
    }
    // SAFETY: nobody uses the page. If the break does not move, it is frozen where it is.
    unsafe { libc::sbrk(page as isize) };
    Ok(())
}

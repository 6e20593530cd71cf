//! How a rank ends that is one of many in its address space.
//!
//! When the last task of a process ends, the kernel adds up the length of every map entry of its address space, here
//! those of all ranks: with 1000 ranks that takes longer than all else that ends them. `execve` does not. So such a
//! rank executes a program that does nothing but end with the rank's status, and ends in an address space of a few
//! entries.
//!
//! That must be the very last thing that the rank does. The C library calls what was registered for a program's end in
//! reverse order, and the first to register is the dynamic linker, for the destructors of all objects, when the program
//! starts. The constructor of a library that the program is linked to runs before that. So what it registers is called
//! after all handlers and destructors, and only the streams are left, which are closed here.

use crate::{is_own, libc};
use cohort_base::boot::{Lifecycle, RankBoot};
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering;

/// Half a byte as a letter, as the program that ends reads it.
const LETTERS: &[u8; 16] = b"abcdefghijklmnop";

/// `SIG_SETMASK`
const SET_MASK: c_int = 2;

/// Registers this way of ending, if the loader asks for it; of the libraries of a rank the first one does.
pub fn prepare(boot: &'static RankBoot) {
    if !boot.leaver.is_null() && !boot.leaves.swap(true, Ordering::Relaxed) {
        // SAFETY: registers a function of this library, which is linked never to be unloaded, and a record that stays.
        unsafe { libc::on_exit(leave, ptr::from_ref(boot).cast_mut().cast()) };
    }
}

/// Ends the calling process, if it is the rank; a rank that stops in the middle of MPI ends as usual.
extern "C" fn leave(status: c_int, boot: *mut c_void) {
    // SAFETY: the record that was registered.
    let boot = unsafe { &*boot.cast::<RankBoot>() };
    let stage = boot.lifecycle.load(Ordering::Relaxed);
    if !is_own(boot) || stage == Lifecycle::Initialized as u32 {
        return;
    }
    let status = status as u8;
    let letter = |half: u8| LETTERS[usize::from(half & 15)] as c_char;
    let argument = [letter(status >> 4), letter(status), 0];
    let arguments = [boot.leaver, argument.as_ptr(), ptr::null()];
    let nothing = [ptr::null::<c_char>()];
    let mut all = MaybeUninit::<libc::SignalSet>::uninit();
    let mut before = MaybeUninit::<libc::SignalSet>::uninit();
    // SAFETY: the last handler of this process: what the C library does next with its streams is the same. A signal
    // whose handler `execve` takes away must not end the program, so they are all blocked before. The strings and lists
    // end with zeros; the sets are initialised by the calls that get their addresses.
    unsafe {
        libc::fcloseall();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(SET_MASK, all.as_ptr(), before.as_mut_ptr());
        libc::execve(boot.leaver, arguments.as_ptr(), nothing.as_ptr());
        // It cannot be executed: the rank ends as others do.
        libc::sigprocmask(SET_MASK, before.as_ptr(), ptr::null_mut());
    }
}

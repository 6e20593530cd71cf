//! A bare kernel thread of a rank's task.
//!
//! The node image has no libc to make a pthread with, and needs none, since stealable code uses no
//! thread-local data. All signals are blocked in it, so that handlers of the application never run on it.

use crate::arch;
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use core::ffi::c_void;
use core::ptr::{from_ref, null_mut};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Bytes of the thread's stack, of which the lowest page is a guard. Pages that the thread does not touch
/// cost nothing.
const STACK: usize = 128 << 10;
const GUARD: usize = 4096;

/// What a thread runs. It neither unwinds nor uses thread-local data.
pub(crate) type Entry = unsafe extern "C" fn(*const c_void);

/// Room for one thread.
#[derive(Debug)]
pub(crate) struct KernelThread {
    stop: AtomicBool,
    /// 1 while the thread lives; the kernel clears it.
    alive: AtomicU32,
    stack: AtomicPtr<c_void>,
}

impl KernelThread {
    pub(crate) fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            alive: AtomicU32::new(0),
            stack: AtomicPtr::new(null_mut()),
        }
    }

    /// Starts the thread, which runs `entry(argument)`, if it does not run and the kernel lets us. It ends
    /// with the task that starts it.
    ///
    /// # Safety
    /// `entry` may be called with the argument; it returns soon after [`KernelThread::must_stop`].
    pub(crate) unsafe fn start<T>(&self, entry: Entry, argument: &'static T) {
        if self.alive.load(Ordering::Acquire) != 0 {
            return;
        }
        let Some(stack) = map_stack() else {
            return;
        };
        self.stack.store(stack, Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
        self.alive.store(1, Ordering::Relaxed);
        let signals = arch::block_signals();
        // SAFETY: the stack is fresh, and unmapped in `stop` only after the thread has ended; the
        // caller's promise.
        let started = unsafe {
            let end = stack.cast::<u8>().add(STACK);
            let argument = from_ref(argument).cast();
            arch::start_thread(end, self.alive.as_ptr(), entry, argument)
        };
        arch::restore_signals(signals);
        if started < 0 {
            self.alive.store(0, Ordering::Relaxed);
            self.unmap_stack();
        }
    }

    /// Whether the thread was asked to end. Asked by the thread.
    #[inline]
    pub(crate) fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Stops the thread, if there is one, and waits for its end; `wake` ends its sleep.
    pub(crate) fn stop(&self, wake: impl FnOnce()) {
        use rustix::thread::futex::{Flags, wait};
        if self.stack.load(Ordering::Relaxed).is_null() {
            return;
        }
        self.stop.store(true, Ordering::Release);
        wake();
        while self.alive.load(Ordering::Acquire) != 0 {
            // The kernel's wake-up is of the shared kind. A failed wait just looks again.
            let _ = wait(&self.alive, Flags::empty(), 1, None);
        }
        self.unmap_stack();
    }

    fn unmap_stack(&self) {
        let stack = self.stack.swap(null_mut(), Ordering::Relaxed);
        // SAFETY: mapped by `map_stack`, and no thread uses it. Unmapping a whole mapping
        // does not fail.
        let _ = unsafe { munmap(stack, STACK) };
    }
}

fn map_stack() -> Option<*mut c_void> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice, whose first page is ours to
    // protect.
    unsafe {
        let stack = mmap_anonymous(null_mut(), STACK, protection, flags).ok()?;
        if mprotect(stack, GUARD, MprotectFlags::empty()).is_err() {
            let _ = munmap(stack, STACK);
            return None;
        }
        Some(stack)
    }
}

//! A bare kernel thread of a rank's task.
//!
//! The node image has no libc to make a pthread with, and needs none, since its code uses no
//! thread-local data. All signals are blocked in it, so that handlers of the application never run on it.

use cohort_arch::page;
use cohort_base::signals::Signals;
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use cohort_core::arch;
use cohort_core::threads::Block;
use core::ffi::c_void;
use core::ptr::{from_ref, null, null_mut};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Bytes of the thread's stack, of which the lowest page is a guard. Pages that the thread does not touch
/// cost nothing.
fn stack_bytes() -> usize {
    (128 << 10).max(4 * page())
}

/// What a thread runs. It neither unwinds nor uses thread-local data.
pub type Entry = unsafe extern "C" fn(*const c_void);

/// Room for one thread.
#[derive(Debug)]
pub struct KernelThread {
    stop: AtomicBool,
    /// The number of the thread while it lives; the kernel clears it.
    alive: AtomicU32,
    /// Numbers given so far.
    numbers: AtomicU32,
    /// Postponed for the next thread.
    stack: AtomicPtr<c_void>,
}

impl Default for KernelThread {
    fn default() -> Self {
        Self::new()
    }
}

impl KernelThread {
    /// Without a thread.
    #[must_use]
    pub fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            alive: AtomicU32::new(0),
            numbers: AtomicU32::new(0),
            stack: AtomicPtr::new(null_mut()),
        }
    }

    /// Starts the thread, which runs `entry(argument)`, if it does not run and the kernel lets us. It ends
    /// with the task that starts it. Of several tasks that try one wins; it calls `won` before the thread begins.
    ///
    /// # Safety
    /// `entry` may be called with the argument; it returns soon after [`KernelThread::must_stop`].
    pub unsafe fn start<T>(&self, entry: Entry, argument: &'static T, won: impl FnOnce()) {
        // SAFETY: the caller's promise.
        unsafe { self.start_with(entry, argument, false, won) };
    }

    /// [`KernelThread::start`] of a thread with a [`Block`], which may be in calls of the engine that wait. Returns
    /// whether it was started.
    ///
    /// # Safety
    /// As for [`KernelThread::start`].
    pub unsafe fn start_with_block<T>(&self, entry: Entry, argument: &'static T) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.start_with(entry, argument, true, || {}) }
    }

    /// # Safety
    /// As for [`KernelThread::start`].
    unsafe fn start_with<T>(&self, entry: Entry, argument: &'static T, has_block: bool, won: impl FnOnce()) -> bool {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // Acquire pairs with the kernel's clearing: the thread before has ended, and left its stack.
        let begun = self.alive.compare_exchange(0, number.max(1), Ordering::Acquire, Ordering::Relaxed);
        if begun.is_err() {
            return false;
        }
        let Some(stack) = self.stack() else {
            self.alive.store(0, Ordering::Release);
            return false;
        };
        self.stop.store(false, Ordering::Relaxed);
        won();
        let signals = Signals::ALL_BUT_FAULTS.block();
        // SAFETY: the stack is fresh, and unmapped in `stop` only after the thread has ended; the
        // caller's promise.
        let started = unsafe {
            let block = stack.cast::<u8>().add(stack_bytes() - size_of::<Block>()).cast::<Block>();
            block.write(Block::new());
            (*block).settle();
            let shown = if has_block { block.cast_const().cast() } else { null() };
            let argument = from_ref(argument).cast();
            arch::start_thread(block.cast(), self.alive.as_ptr(), entry, argument, shown)
        };
        signals.restore();
        if started < 0 {
            self.alive.store(0, Ordering::Release);
        }
        started >= 0
    }

    /// The stack, made at the first start. By the task that is about to start the thread.
    fn stack(&self) -> Option<*mut c_void> {
        let mut stack = self.stack.load(Ordering::Relaxed);
        if stack.is_null() {
            stack = map_stack()?;
            self.stack.store(stack, Ordering::Relaxed);
        }
        Some(stack)
    }

    /// Whether there is a thread. It may be gone although nobody stopped it: with a task that ended or executed another
    /// program.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed) != 0
    }

    /// Whether the thread was asked to end. Asked by the thread.
    #[inline]
    pub fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Stops the thread, if there is one, and waits for its end; `wake` ends its sleep.
    pub fn stop(&self, wake: impl FnOnce()) {
        use rustix::thread::futex::{Flags, wait};
        let number = self.alive.load(Ordering::Acquire);
        if number == 0 {
            return;
        }
        self.stop.store(true, Ordering::Release);
        wake();
        // Another number is a thread that somebody else has started since.
        while self.alive.load(Ordering::Acquire) == number {
            // The kernel's wake-up is of the shared kind. A failed wait just looks again.
            let _ = wait(&self.alive, Flags::empty(), number, None);
        }
    }
}

fn map_stack() -> Option<*mut c_void> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice, whose first page is ours to
    // protect.
    unsafe {
        let stack = mmap_anonymous(null_mut(), stack_bytes(), protection, flags).ok()?;
        if mprotect(stack, page(), MprotectFlags::empty()).is_err() {
            let _ = munmap(stack, stack_bytes());
            return None;
        }
        Some(stack)
    }
}

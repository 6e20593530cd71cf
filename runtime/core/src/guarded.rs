//! A value that one task at a time may use, for work that is rare and short.

use cohort_base::sync::atomic::{AtomicBool, Ordering};
use core::cell::UnsafeCell;

/// See the module page.
pub struct Guarded<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `busy` guards the value.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// A value that nobody uses.
    pub const fn new(value: T) -> Self {
        Self {
            busy: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `work` alone. Waiters give their CPU away instead of queueing.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        while self.busy.swap(true, Ordering::Acquire) {
            rustix::thread::sched_yield();
        }
        // SAFETY: `busy` is ours.
        let result = work(unsafe { &mut *self.value.get() });
        self.busy.store(false, Ordering::Release);
        result
    }
}

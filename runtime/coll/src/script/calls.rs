//! What a rank is told of its scripts that wait.

use cohort_base::sync::atomic::{AtomicPtr, Ordering};
use cohort_core::request::Line;
use core::cell::Cell;
use core::ptr::null_mut;

/// A script's place in the stack of those that are called.
#[derive(Debug)]
pub(crate) struct Call {
    next: Cell<*mut Self>,
}

impl Call {
    /// Not called.
    pub(crate) const fn new() -> Self {
        Self {
            next: Cell::new(null_mut()),
        }
    }
}

/// What others than the claim's holder tell a rank of its scripts.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Those whose members have all come, the last one first.
    met: AtomicPtr<Call>,
    /// Those whose messages are complete.
    pub(crate) heard: Line,
}

impl Calls {
    /// None.
    pub(crate) const fn new() -> Self {
        Self {
            met: AtomicPtr::new(null_mut()),
            heard: Line::new(),
        }
    }

    /// Calls a script whose members have come, and whose meeting opens next.
    ///
    /// # Safety
    /// It is one of this rank's, waits for that meeting, and nobody else calls it.
    pub(crate) unsafe fn call(&self, call: *mut Call) {
        let mut first = self.met.load(Ordering::Relaxed);
        loop {
            // SAFETY: the script cannot end before the meeting is open. Only the caller, and behind it who takes the
            // stack, touch the field.
            unsafe { (*call).next.set(first) };
            // Release pairs with the Acquire in `take`.
            let swapped =
                self.met
                    .compare_exchange_weak(first, call, Ordering::Release, Ordering::Relaxed);
            match swapped {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all that were called, and gives them to `take`, the first one first. By the claim's holder.
    #[inline]
    pub(crate) fn take(&self, take: impl FnMut(*mut Call)) {
        if !self.met.load(Ordering::Relaxed).is_null() {
            self.take_all(take);
        }
    }

    fn take_all(&self, mut take: impl FnMut(*mut Call)) {
        // Acquire pairs with the Release in `call`.
        let mut met = self.met.swap(null_mut(), Ordering::Acquire);
        let mut first = null_mut::<Call>();
        while !met.is_null() {
            // SAFETY: scripts that were called are valid, and stay until they are taken.
            let next = unsafe { (*met).next.replace(first) };
            first = met;
            met = next;
        }
        while !first.is_null() {
            // SAFETY: as above.
            let next = unsafe { (*first).next.get() };
            take(first);
            first = next;
        }
    }
}

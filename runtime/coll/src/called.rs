//! A stack of those that are called: anybody calls, one takes all.
//!
//! # Protocol
//! A caller links its entry before the first one and swaps the head, with Release. The taker swaps the head for null,
//! with Acquire, so it sees the links of all that it takes; there is no taking of one entry, hence no ABA. Whoever
//! calls, and then publishes an event with Release, has its entry found by who saw the event with Acquire and takes
//! behind that: the head that it swaps is not older than the caller's.

use cohort_base::sync::atomic::{AtomicPtr, Ordering};
use core::cell::Cell;
use core::ptr::null_mut;

/// A place in the stack.
#[derive(Debug)]
pub(crate) struct Call {
    next: Cell<*mut Self>,
}

impl Call {
    /// Not called.
    pub(crate) const fn new() -> Self {
        Self { next: Cell::new(null_mut()) }
    }
}

/// The stack.
#[derive(Debug)]
pub(crate) struct Called {
    /// The last one first.
    first: AtomicPtr<Call>,
}

impl Called {
    /// Empty.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { first: AtomicPtr::new(null_mut()) }
    }

    /// Empty; loom's atomics are not constants.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self { first: AtomicPtr::new(null_mut()) }
    }

    /// Calls.
    ///
    /// # Safety
    /// The entry is in no stack, stays where it is until it has been taken, and nobody else calls it meanwhile.
    pub(crate) unsafe fn call(&self, call: *mut Call) {
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller's promise. Only the caller, and behind it who takes the stack, touch the field.
            unsafe { (*call).next.set(first) };
            // Release pairs with the Acquire in `take_all`.
            let swapped = self.first.compare_exchange_weak(first, call, Ordering::Release, Ordering::Relaxed);
            match swapped {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all that were called, and gives them to `take`, the first one first. By one task at a time.
    #[inline]
    pub(crate) fn take(&self, take: impl FnMut(*mut Call)) {
        if !self.first.load(Ordering::Relaxed).is_null() {
            self.take_all(take);
        }
    }

    fn take_all(&self, mut take: impl FnMut(*mut Call)) {
        // Acquire pairs with the Release in `call`, also of those below the first: each swap of a caller's goes on with
        // what the one before it has released.
        let mut called = self.first.swap(null_mut(), Ordering::Acquire);
        let mut first = null_mut::<Call>();
        while !called.is_null() {
            // SAFETY: those that were called are valid, and stay until they are taken.
            let next = unsafe { (*called).next.replace(first) };
            first = called;
            called = next;
        }
        while !first.is_null() {
            // SAFETY: as above.
            let next = unsafe { (*first).next.get() };
            take(first);
            first = next;
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    struct Shared {
        called: Called,
        calls: [Call; 2],
        is_open: [AtomicBool; 2],
    }

    // SAFETY: entries are touched by their caller and behind it by the one taker.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    impl Shared {
        fn place(&self, index: usize) -> *mut Call {
            core::ptr::from_ref(&self.calls[index]).cast_mut()
        }
    }

    /// Who finds a meeting open finds the call too, each once, whoever else calls meanwhile.
    #[test]
    fn who_sees_the_event_finds_the_call() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                called: Called::new(),
                calls: [Call::new(), Call::new()],
                is_open: [AtomicBool::new(false), AtomicBool::new(false)],
            });
            let callers = [0, 1].map(|index| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // SAFETY: called once.
                    unsafe { shared.called.call(shared.place(index)) };
                    shared.is_open[index].store(true, Ordering::Release);
                })
            });
            let mut found = [0; 2];
            let mut look = |shared: &Shared| {
                let open = [0, 1].map(|index| shared.is_open[index].load(Ordering::Acquire));
                shared.called.take(|call| {
                    let index = usize::from(call == shared.place(1));
                    found[index] += 1;
                });
                for index in 0..2 {
                    assert!(found[index] == 1 || !open[index], "{found:?}, {open:?}");
                }
                found
            };
            look(&shared);
            for caller in callers {
                caller.join().expect("the caller ends");
            }
            assert_eq!(look(&shared), [1, 1]);
        });
    }
}

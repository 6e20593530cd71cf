//! What threads of the runtime's own have the program's threads do, since the program's handlers of signals belong
//! there: *errands*. A thread of the program's runs them in its next call that makes progress, whatever that waits for.
//!
//! # Protocol
//! ```text
//! who asks                              a thread of the program's, with the claim
//! A1 puts the errand on the stack       P1 takes the whole stack
//! A2 wakes the rank                     P2 without the claim: runs each errand, and marks it as done
//! A3 sleeps until it is done            P3 counts, and wakes all who ask
//! ```
//! The errand is on the stack of who asks, who does not return before P2 has marked it; P2 has read what comes after it
//! by then, and P3 touches the rank's word only. A3 reads that word before it looks at the mark, so that it does not
//! sleep over a P3. No errand comes back to the stack that P1 has taken, so a stack that is taken as a whole cannot be
//! mistaken for another one.

use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use cohort_base::sync::futex;
use cohort_core::{Piece, Rank, wait};
use core::ptr::null_mut;

/// Something to run.
struct Errand<'a> {
    what: &'a dyn Fn(),
    is_done: AtomicBool,
    next: AtomicPtr<Errand<'static>>,
}

/// Those of a rank.
#[derive(Debug)]
pub(crate) struct Errands {
    first: AtomicPtr<Errand<'static>>,
    /// How often P3 was done.
    done: AtomicU32,
}

impl Errands {
    pub(crate) const fn new() -> Self {
        Self { first: AtomicPtr::new(null_mut()), done: AtomicU32::new(0) }
    }

    /// Whether there are none. For the owner.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed).is_null()
    }

    /// P1. By a thread of the program's that has the claim.
    pub(crate) fn take(&'static self) -> Option<Taken> {
        // Acquire pairs with the Release of A1.
        let first = self.first.swap(null_mut(), Ordering::Acquire);
        (!first.is_null()).then(|| Taken { first: AtomicPtr::new(first), errands: self })
    }

    /// A1 to A3, for the rank that has these.
    pub(crate) fn ask(&self, rank: &Rank, what: &dyn Fn()) {
        let mut errand = Errand { what, is_done: AtomicBool::new(false), next: AtomicPtr::new(null_mut()) };
        let errand = (&raw mut errand).cast::<Errand<'static>>();
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            // SAFETY: it is here until this returns.
            unsafe { (*errand).next.store(first, Ordering::Relaxed) };
            match self.first.compare_exchange_weak(first, errand, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        wait::wake(rank);
        loop {
            let heard = self.done.load(Ordering::Acquire);
            // SAFETY: as above. Acquire pairs with the Release of P2.
            if unsafe { (*errand).is_done.load(Ordering::Acquire) } {
                return;
            }
            futex::wait(&self.done, heard, None);
        }
    }
}

/// A stack that was taken. Whoever has taken it runs it.
pub(crate) struct Taken {
    first: AtomicPtr<Errand<'static>>,
    errands: &'static Errands,
}

impl Piece for Taken {
    fn run(&self, _pieces: u32) -> u64 {
        let mut next = self.first.swap(null_mut(), Ordering::Relaxed);
        // SAFETY: who asks keeps the errand until it is done.
        while let Some(errand) = unsafe { next.as_ref() } {
            (errand.what)();
            next = errand.next.load(Ordering::Relaxed);
            errand.is_done.store(true, Ordering::Release);
            self.errands.done.fetch_add(1, Ordering::Release);
            futex::wake(&self.errands.done, u32::MAX);
        }
        0
    }
}

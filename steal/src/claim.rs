//! The claim: the right to run one rank's progress (Daps' `in_progress`, rule 1).
//!
//! # State
//! Two words on one line: `held`, and `waiters`, the owner's threads that sleep or are about to.
//!
//! | held | waiters | meaning | a worker's `try_claim` | an owner's `claim_owner` |
//! |---|---|---|---|---|
//! | 0 | 0 | free | takes it | takes it at once |
//! | 1 | 0 | held | fails | spins, then becomes a waiter |
//! | 1 | n | held, waited for | fails | spins, then becomes a waiter |
//! | 0 | n | reserved for a waiter | fails | a waiter takes it |
//!
//! # Protocol
//! ```text
//! owner that waits                         release
//! W1 waiters += 1                          R1 held = 0 (Release)
//! W2 Barriers::heavy                       R2 Barriers::light
//! W3 swap held 0 -> 1: waiters -= 1, done  R3 waiters != 0: futex wake, one
//! W4 futex wait while held == 1; W3
//! ```
//! * A worker never waits: one compare-and-swap, or it tries another victim.
//! * An owner that meets a worker inside spins for about the time of one steal step before W1.
//!   So a worker that lost its CPU in the middle of a steal does not cost the owner its own time slice.
//! * One of several threads of the owner gives its CPU away before it sleeps, and where they outnumber CPUs after a few
//!   looks: the thread inside is likely to come again at once, and goes on undisturbed meanwhile.
//! * Taking costs one locked instruction, releasing none when the barriers are asymmetric.
//!
//! # Why it holds
//! *Exclusion.* `held` becomes 1 only by a compare-and-swap from 0.
//! *No lost wake-up.* W2 and R2 are the halves of a full barrier: either the futex compare of W4 sees
//! R1 and does not sleep, or R3 sees W1 and wakes. A woken thread that finds the claim taken again
//! sleeps again, still counted, and the next release wakes it.
//! *Owners do not starve.* Who comes later looks at `waiters` first, and stays out when there are any;
//! only one that had looked before can still overtake, once.
//! *Visibility.* The taking swap is Acquire and pairs with R1.

use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::sync::{Barriers, CacheLine, futex, pause};
use core::marker::PhantomData;
use core::time::Duration;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Pauses before an owner sleeps: a few microseconds, longer than a steal step of small messages.
#[cfg(not(loom))]
const OWNER_SPINS: u32 = 100;
#[cfg(loom)]
const OWNER_SPINS: u32 = 1;

/// The same before a thread gives its CPU away where threads outnumber CPUs.
#[cfg(not(loom))]
const THREAD_SPINS: u32 = 8;
#[cfg(loom)]
const THREAD_SPINS: u32 = 1;

#[derive(Debug)]
struct Words {
    held: AtomicU32,
    waiters: AtomicU32,
}

/// The claim of one rank, alone on its cache line. See the module's text for the protocol.
#[derive(Debug)]
pub struct ClaimWord {
    words: CacheLine<Words>,
    barriers: Barriers,
}

impl ClaimWord {
    /// A free claim; `barriers` is what [`Barriers::detect`] said.
    #[must_use]
    pub fn new(barriers: Barriers) -> Self {
        let words = Words { held: AtomicU32::new(FREE), waiters: AtomicU32::new(0) };
        Self { words: CacheLine(words), barriers }
    }

    /// Takes the claim if it is free and no owner waits for it. Never blocks; for workers.
    ///
    /// Whoever gets `true` calls [`ClaimWord::release`] once, or nobody takes the claim any more.
    #[inline]
    #[must_use]
    pub fn try_claim(&self) -> bool {
        // The load first keeps the line shared among workers that would fail.
        self.words.held.load(Ordering::Relaxed) == FREE && self.take_unless_reserved()
    }

    /// Takes the claim, waiting for as long as another task holds it. For threads of the owner.
    ///
    /// Not reentrant: a task that holds the claim already would wait for itself.
    #[inline]
    pub fn claim_owner(&self) {
        self.claim_yielding(|| false, || false);
    }

    /// [`ClaimWord::claim_owner`] of one of several threads: before it sleeps it calls `give_way`, which lets another
    /// thread run, and looks again, for as long as that says `true`; after a few looks if they are `crowded`. Each
    /// hand-over to a thread that sleeps costs a switch of threads, in which the claim lies idle, and those who come
    /// meanwhile queue up behind it.
    #[inline]
    pub fn claim_yielding(&self, crowded: impl FnOnce() -> bool, give_way: impl FnMut() -> bool) {
        if !self.take_unless_reserved() {
            self.claim_contended(crowded, give_way);
        }
    }

    #[inline]
    fn take_unless_reserved(&self) -> bool {
        // Relaxed: a count that comes too late lets one task overtake.
        self.words.waiters.load(Ordering::Relaxed) == 0 && self.take()
    }

    #[inline]
    fn take(&self) -> bool {
        // Acquire pairs with the Release in `release`.
        self.words.held.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn claim_contended(&self, crowded: impl FnOnce() -> bool, mut give_way: impl FnMut() -> bool) {
        let looks = if crowded() { THREAD_SPINS } else { OWNER_SPINS };
        if self.is_got_by(looks) {
            return;
        }
        while give_way() {
            if self.try_claim() {
                return;
            }
        }
        let Words { held, waiters } = &*self.words;
        // Relaxed: ordered by the barrier, whose other half is in `release`.
        waiters.fetch_add(1, Ordering::Relaxed);
        self.barriers.heavy();
        while !self.take() {
            futex::wait(held, HELD, None);
        }
        // Relaxed: the count guards nothing.
        waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Looks so many times at most, with a pause before each; says whether the claim was taken.
    fn is_got_by(&self, looks: u32) -> bool {
        (0..looks).any(|_| {
            pause();
            self.try_claim()
        })
    }

    /// Takes the claim for ever, for an owner that ends. If its holder has not given it back within the limit, as the
    /// caller itself would not, nobody takes it any more who only tries for it.
    pub fn retire(&self, limit: Duration) {
        const LOOKS: u32 = 16;
        let Words { held, waiters } = &*self.words;
        // As one that waits for ever. Relaxed: as in `claim_contended`.
        waiters.fetch_add(1, Ordering::Relaxed);
        self.barriers.heavy();
        for _ in 0..LOOKS {
            if self.take() {
                return;
            }
            futex::wait(held, HELD, Some(limit / LOOKS));
        }
    }

    /// Gives the claim back and wakes an owner that waits for it.
    ///
    /// # Safety
    /// The caller holds the claim, and no guard stands for it: what the claim protects is another task's from now on.
    #[inline]
    pub unsafe fn release(&self) {
        let Words { held, waiters } = &*self.words;
        debug_assert!(self.is_held(), "a claim was released that nobody held");
        self.barriers.store(held, FREE);
        if waiters.load(Ordering::SeqCst) != 0 {
            futex::wake(held, 1);
        }
    }

    /// Whether a task holds the claim, or an owner is about to: a hint that may be stale.
    #[inline]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.words.held.load(Ordering::Relaxed) != FREE || self.words.waiters.load(Ordering::Relaxed) != 0
    }

    /// [`ClaimWord::try_claim`] with a guard that releases.
    #[inline]
    #[must_use]
    pub fn try_guard(&self) -> Option<ClaimGuard<'_>> {
        self.try_claim().then(|| ClaimGuard::of(self))
    }

    /// [`ClaimWord::claim_owner`] with a guard that releases.
    #[inline]
    #[must_use]
    pub fn owner_guard(&self) -> ClaimGuard<'_> {
        self.claim_owner();
        ClaimGuard::of(self)
    }
}

/// A held claim, which ends with this value. It stays with the task that took it, hence not `Send`.
#[derive(Debug)]
pub struct ClaimGuard<'a> {
    word: &'a ClaimWord,
    stays_here: PhantomData<*const ()>,
}

impl<'a> ClaimGuard<'a> {
    /// The guard of a claim that was just taken.
    #[inline]
    fn of(word: &'a ClaimWord) -> Self {
        Self { word, stays_here: PhantomData }
    }

    /// Whether this is the claim of `word`.
    #[must_use]
    pub fn is_of(&self, word: &ClaimWord) -> bool {
        core::ptr::eq(self.word, word)
    }
}

impl Drop for ClaimGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard stands for the claim, and ends here.
        unsafe { self.word.release() };
    }
}

#[cfg(test)]
mod tests;

//! The claim: the right to run one rank's progress (Daps' `in_progress`, rule 1).
//!
//! # States
//! One word: bit 0 is HELD, the bits above count the owner's threads that wait.
//!
//! | HELD | waiters | meaning | a worker's `try_claim` | an owner's `claim_owner` |
//! |---|---|---|---|---|
//! | 0 | 0 | free | takes it | takes it at once |
//! | 1 | 0 | held | fails | spins, then becomes a waiter |
//! | 1 | n | held, waited for | fails | spins, then becomes a waiter |
//! | 0 | n | reserved for a waiter | fails | a waiter takes it |
//!
//! # Protocol
//! * A worker never waits: one compare-and-swap `0 -> HELD`, or it tries another victim.
//! * An owner that meets a worker inside spins for about the time of one steal step,
//!   then counts itself as waiter and sleeps on the word. So a worker that lost its CPU
//!   in the middle of a steal does not cost the owner its own time slice.
//! * `release` clears HELD; if waiters were counted it wakes one.
//!
//! # Why it holds
//! *Exclusion.* HELD is set only by a compare-and-swap from a value without it.
//! *No lost wake-up.* The futex compares the word with a value that has HELD set. Clearing
//! HELD changes the word, so a waiter either finds it changed, or sleeps before
//! the change, and then its count was in the word that `release` read.
//! *Owners do not starve.* As long as one is counted no worker's swap from 0 succeeds.
//! *Nothing stays reserved.* A counted thread leaves the count only by taking the claim.
//! *Visibility.* Each taking swap is Acquire and pairs with the Release of the `release`
//! before it; counting in between are read-modify-writes, which continue its release sequence.

use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::sync::{CacheLine, futex, pause};

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITER: u32 = 2;

/// Pauses before an owner sleeps: a few microseconds, longer than a steal step of small messages.
#[cfg(not(loom))]
const OWNER_SPINS: u32 = 100;
#[cfg(loom)]
const OWNER_SPINS: u32 = 1;

/// The claim of one rank, alone on its cache line. See the module's text for the protocol.
#[derive(Debug)]
pub struct ClaimWord(CacheLine<AtomicU32>);

impl Default for ClaimWord {
    fn default() -> Self {
        Self::new()
    }
}

impl ClaimWord {
    /// A free claim.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(CacheLine(AtomicU32::new(FREE)))
    }

    /// A free claim.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(CacheLine(AtomicU32::new(FREE)))
    }

    /// Takes the claim if it is free and no owner waits for it. Never blocks; for workers.
    ///
    /// Whoever gets `true` must call [`ClaimWord::release`] once.
    #[inline]
    #[must_use]
    pub fn try_claim(&self) -> bool {
        // Acquire pairs with the Release in `release`. The load first keeps the line
        // shared among workers that would fail.
        self.0.load(Ordering::Relaxed) == FREE
            && self
                .0
                .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Takes the claim, waiting for as long as another task holds it. For threads of the owner.
    ///
    /// Not reentrant: a task that holds the claim already would wait for itself.
    #[inline]
    pub fn claim_owner(&self) {
        // Acquire pairs with the Release in `release`.
        if self
            .0
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.claim_contended();
        }
    }

    #[cold]
    fn claim_contended(&self) {
        for _ in 0..OWNER_SPINS {
            pause();
            if self.try_claim() {
                return;
            }
        }
        // Relaxed: the count guards nothing but itself; order comes with the swap below.
        let mut word = self.0.fetch_add(WAITER, Ordering::Relaxed) + WAITER;
        loop {
            if word & HELD != 0 {
                futex::wait(&self.0, word, None);
                word = self.0.load(Ordering::Relaxed);
                continue;
            }
            // Acquire pairs with the Release in `release`.
            match self.0.compare_exchange_weak(
                word,
                (word - WAITER) | HELD,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(current) => word = current,
            }
        }
    }

    /// Gives the claim back and wakes an owner that waits for it.
    ///
    /// Only the task that holds the claim may call this. After the claim is free the word is
    /// not read again, only its address is given to the kernel.
    #[inline]
    pub fn release(&self) {
        // Release pairs with the Acquire of the next taker.
        let before = self.0.fetch_sub(HELD, Ordering::Release);
        debug_assert!(before & HELD != 0, "a claim was released that nobody held");
        if before != HELD {
            futex::wake(&self.0, 1);
        }
    }

    /// Whether a task holds the claim, or an owner is about to: a hint that may be stale.
    #[inline]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) != FREE
    }

    /// [`ClaimWord::try_claim`] with a guard that releases.
    #[inline]
    #[must_use]
    pub fn try_guard(&self) -> Option<ClaimGuard<'_>> {
        self.try_claim().then(|| ClaimGuard(self))
    }

    /// [`ClaimWord::claim_owner`] with a guard that releases.
    #[inline]
    #[must_use]
    pub fn owner_guard(&self) -> ClaimGuard<'_> {
        self.claim_owner();
        ClaimGuard(self)
    }
}

/// A held claim, which ends with this value.
#[derive(Debug)]
pub struct ClaimGuard<'a>(&'a ClaimWord);

impl ClaimGuard<'_> {
    /// Whether this is the claim of `word`.
    #[must_use]
    pub fn is_of(&self, word: &ClaimWord) -> bool {
        core::ptr::eq(self.0, word)
    }
}

impl Drop for ClaimGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests;

//! Parking: how a waiting rank sleeps, and how a sender finds out at no cost that it does not.
//!
//! # State
//! One word on a line of its own, which changes only when somebody parks or is woken, so that
//! a sender's look at it is a cache hit: the low 8 bits count the rank's parked
//! threads (0 is *running*), the upper 24 are the epoch, the number of wakes so far.
//!
//! # Protocol
//! ```text
//! waiter                                   waker
//! W1 ticket = prepare: count += 1          M1 publish the message (Release)
//! W2 Barriers::heavy                       M2 Barriers::light
//! W3 look for the message once more        M3 load the word; count 0: done
//! W4 nothing: sleep(ticket);               M4 swap to (epoch + 1, count 0)
//!    something: cancel(ticket)             M5 futex wake, all
//! ```
//!
//! # Why no wake-up is lost
//! W2 and M2 are the two halves of a full barrier, so W3 sees M1, or M3 sees W1. In
//! the second case M4 changes the epoch that `sleep` compares: the waiter either has gone to sleep
//! before (M5 wakes it), or does not sleep. While a thread is counted every waker
//! passes M4. A thread that leaves by itself (cancelled, out of time) takes its count back
//! only if the epoch is still its ticket's; else a waker has already taken it.
//!
//! A waker resets the count, so a second message to the same sleeper costs no second
//! system call. A ticket would be mistaken for a newer one after exactly 2^24 wakes between
//! two instructions of its thread; the time limit of `sleep` bounds even that.
//!
//! Orderings: everything that must be ordered is ordered by the pair W2/M2. M4 is Release and
//! the load after the sleep is Acquire, so that a woken thread sees M1 at once.

use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::sync::{Barriers, CacheLine, futex};
use core::time::Duration;

const COUNT_BITS: u32 = 8;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;

/// The epoch, in place, of a word.
const fn epoch(word: u32) -> u32 {
    word & !COUNT_MASK
}

/// Where the waiting threads of one rank sleep. At most 255 at a time.
#[derive(Debug)]
pub struct ParkSlot(CacheLine<AtomicU32>);

/// An announced sleep; ends in [`ParkSlot::sleep`] or [`ParkSlot::cancel`].
#[derive(Debug)]
#[must_use = "an announced sleep is slept or cancelled"]
pub struct Ticket(u32);

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awake {
    /// Somebody woke this slot.
    Woken,
    /// The limit passed, or a signal came.
    Unasked,
}

impl Default for ParkSlot {
    fn default() -> Self {
        Self::new()
    }
}

impl ParkSlot {
    /// A slot where nobody sleeps.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(CacheLine(AtomicU32::new(0)))
    }

    /// A slot where nobody sleeps.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(CacheLine(AtomicU32::new(0)))
    }

    /// Announces a sleep. Afterwards the caller must look once more at everything it waits for,
    /// and then either [`ParkSlot::sleep`] or [`ParkSlot::cancel`].
    pub fn prepare(&self, barriers: Barriers) -> Ticket {
        let word = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        debug_assert!(
            word & COUNT_MASK != 0,
            "more than 255 threads of one rank sleep"
        );
        barriers.heavy();
        Ticket(word)
    }

    /// Sleeps until [`ParkSlot::wake`], a signal, or the end of `limit`. May return early.
    pub fn sleep(&self, ticket: Ticket, limit: Option<Duration>) -> Awake {
        let word = self.0.load(Ordering::Relaxed);
        if epoch(word) == epoch(ticket.0) {
            futex::wait(&self.0, word, limit);
        }
        self.leave(&ticket)
    }

    /// [`ParkSlot::sleep`] somewhere else than on the slot's own word: runs `sleep` unless the slot was
    /// woken since the announcement. Who wakes the slot must end that sleep too.
    pub fn sleep_elsewhere(&self, ticket: Ticket, sleep: impl FnOnce()) -> Awake {
        // SeqCst: what the caller has published of its other sleep comes first.
        if epoch(self.0.load(Ordering::SeqCst)) == epoch(ticket.0) {
            sleep();
        }
        self.leave(&ticket)
    }

    /// Takes an announcement back: the last look found something.
    pub fn cancel(&self, ticket: Ticket) {
        self.leave(&ticket);
    }

    fn leave(&self, ticket: &Ticket) -> Awake {
        // Acquire pairs with the Release in `wake`.
        let mut word = self.0.load(Ordering::Acquire);
        while epoch(word) == epoch(ticket.0) {
            match self
                .0
                .compare_exchange_weak(word, word - 1, Ordering::Relaxed, Ordering::Acquire)
            {
                Ok(_) => return Awake::Unasked,
                Err(current) => word = current,
            }
        }
        Awake::Woken
    }

    /// Wakes the rank if it sleeps or is about to; says whether it did. The caller has
    /// published before whatever the sleeper waits for.
    #[inline]
    pub fn wake(&self, barriers: Barriers) -> bool {
        barriers.light();
        let word = self.0.load(Ordering::Relaxed);
        word & COUNT_MASK != 0 && self.wake_parked(word)
    }

    #[cold]
    fn wake_parked(&self, mut word: u32) -> bool {
        while word & COUNT_MASK != 0 {
            let woken = epoch(word).wrapping_add(1 << COUNT_BITS);
            // Release pairs with the Acquire in `leave`.
            match self
                .0
                .compare_exchange_weak(word, woken, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => {
                    // All: a thread of the next epoch must not use up the wake of an older one.
                    futex::wake(&self.0, i32::MAX as u32);
                    return true;
                }
                Err(current) => word = current,
            }
        }
        // Another waker was faster. The sleeper looks once more behind a new barrier
        // before it sleeps again, and that look sees our message.
        false
    }

    /// Whether a thread of this rank sleeps or is about to: a hint that may be stale.
    #[inline]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.0.load(Ordering::Relaxed) & COUNT_MASK != 0
    }
}

#[cfg(test)]
mod tests;

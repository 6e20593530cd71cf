//! Parking: how a waiting rank sleeps, and how a sender finds out at no cost that it does not.
//!
//! # State
//! One word of 64 bits on a line of its own, which changes only when somebody parks or is woken, so that
//! a sender's look at it is a cache hit: the lower half counts the rank's parked threads (0 is *running*), of
//! which the kernel has at most 2^22, and the upper half is the epoch, the number of wakes so far. The
//! futex is the upper half: a thread that parks meanwhile does not disturb one that falls asleep.
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
//! system call. A ticket would be mistaken for a newer one after exactly 2^32 wakes between
//! two instructions of its thread. Each of those is a system call, and between any two of them a thread
//! of the rank has parked again, so that is more than an hour in which the kernel does not run the thread.
//!
//! Orderings: everything that must be ordered is ordered by the pair W2/M2. M4 is Release and
//! the load after the sleep is Acquire, so that a woken thread sees M1 at once.

use cohort_base::sync::atomic::{AtomicU64, Ordering};
use cohort_base::sync::{Barriers, CacheLine, futex};
use core::time::Duration;

/// The epoch of a word.
const fn epoch(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The parked threads of a word.
const fn count(word: u64) -> u32 {
    word as u32
}

/// A word of this epoch in which nobody is parked.
const fn empty(epoch: u32) -> u64 {
    (epoch as u64) << 32
}

/// Where the waiting threads of one rank sleep.
#[derive(Debug)]
pub struct ParkSlot(CacheLine<AtomicU64>);

/// An announced sleep; ends in [`ParkSlot::sleep`] or [`ParkSlot::cancel`].
#[derive(Debug)]
#[must_use = "an announced sleep is slept or cancelled"]
pub struct Ticket {
    epoch: u32,
}

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
        Self(CacheLine(AtomicU64::new(0)))
    }

    /// A slot where nobody sleeps.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(CacheLine(AtomicU64::new(0)))
    }

    /// A slot that was woken `epoch` times.
    #[cfg(all(test, not(loom)))]
    fn woken_before(epoch: u32) -> Self {
        Self(CacheLine(AtomicU64::new(empty(epoch))))
    }

    /// Announces a sleep. Afterwards the caller must look once more at everything it waits for,
    /// and then either [`ParkSlot::sleep`] or [`ParkSlot::cancel`].
    pub fn prepare(&self, barriers: Barriers) -> Ticket {
        let word = self.0.fetch_add(1, Ordering::Relaxed);
        barriers.heavy();
        Ticket { epoch: epoch(word) }
    }

    /// Sleeps until [`ParkSlot::wake`], a signal, or the end of `limit`. May return early.
    pub fn sleep(&self, ticket: Ticket, limit: Option<Duration>) -> Awake {
        if epoch(self.0.load(Ordering::Relaxed)) == ticket.epoch {
            futex::wait_upper(&self.0, ticket.epoch, limit);
        }
        self.leave(&ticket)
    }

    /// [`ParkSlot::sleep`] somewhere else than on the slot's own word: runs `sleep` unless the slot was
    /// woken since the announcement. Who wakes the slot must end that sleep too.
    pub fn sleep_elsewhere(&self, ticket: Ticket, sleep: impl FnOnce()) -> Awake {
        // SeqCst: what the caller has published of its other sleep comes first.
        if epoch(self.0.load(Ordering::SeqCst)) == ticket.epoch {
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
        while epoch(word) == ticket.epoch {
            match self.0.compare_exchange_weak(word, word - 1, Ordering::Relaxed, Ordering::Acquire) {
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
        self.wake_after_barrier()
    }

    /// [`ParkSlot::wake`] by a task that has passed the light barrier since it published: one barrier is
    /// enough to wake many.
    #[inline]
    pub fn wake_after_barrier(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        count(word) != 0 && self.wake_parked(word)
    }

    #[cold]
    fn wake_parked(&self, mut word: u64) -> bool {
        while count(word) != 0 {
            let woken = empty(epoch(word).wrapping_add(1));
            // Release pairs with the Acquire in `leave`.
            match self.0.compare_exchange_weak(word, woken, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => {
                    // All: a thread of the next epoch must not use up the wake of an older one.
                    futex::wake_upper(&self.0);
                    return true;
                }
                Err(current) => word = current,
            }
        }
        // Another waker was faster. The sleeper looks once more behind a new barrier
        // before it sleeps again, and that look sees our message.
        false
    }

    /// Wakes those whom somebody was about to wake who may have died after it had said so.
    pub fn wake_again(&self) {
        futex::wake_upper(&self.0);
    }

    /// The rank's threads that sleep or are about to, and how often it was woken so far.
    #[must_use]
    pub fn parked(&self) -> (u32, u32) {
        let word = self.0.load(Ordering::SeqCst);
        (count(word), epoch(word))
    }

    /// Whether a thread of this rank sleeps or is about to: a hint that may be stale.
    #[inline]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        count(self.0.load(Ordering::Relaxed)) != 0
    }
}

#[cfg(test)]
mod tests;

//! What the threads of a rank wait for, for whoever asks why a job hangs.
//!
//! A wait that has come to its first sleep puts a [`Note`] into a slot of its rank, and takes it out when it ends; a
//! wait that ends before costs nothing. Both happen under the rank's claim, so whoever has the claim may use what notes
//! refer to: it lies on the stacks of threads that cannot leave their waits meanwhile.
//!
//! # The stamp of a slot
//! Besides its note a slot has a word that only its thread changes: vacant, awake, or asleep *for good* (until
//! somebody wakes the rank), and above that a count of its changes. So two equal looks at a sleeping slot have a
//! sleep between them, without a moment awake. What follows from that for all ranks together is in `docs/insight.md`,
//! and modelled in `waits/models.rs`.

use cohort_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cohort_steal::park::ParkSlot;

/// Threads of a rank whose waits are noted; more are counted.
const SLOTS: usize = 8;

/// States of a slot, in the low bits of its stamp.
const VACANT: u64 = 0;
const AWAKE: u64 = 1;
const ASLEEP: u64 = 2;
const STATES: u64 = 3;

/// The word of a slot: how often it has changed, and what it is.
#[derive(Debug)]
pub(crate) struct Stamp(AtomicU64);

impl Stamp {
    fn vacant() -> Self {
        Self(AtomicU64::new(VACANT))
    }

    /// By the slot's thread, or the holder of the claim that fills a vacant one.
    fn change(&self, state: u64) {
        let next = (self.0.load(Ordering::Relaxed) & !STATES) + (STATES + 1) + state;
        // SeqCst: a look that sees a sleep sees all that its thread did before.
        self.0.store(next, Ordering::SeqCst);
    }

    fn is(&self, state: u64) -> bool {
        self.0.load(Ordering::SeqCst) & STATES == state
    }

    /// Its number, of a sleeping one.
    fn sleep(&self) -> Option<u64> {
        let word = self.0.load(Ordering::SeqCst);
        (word & STATES == ASLEEP).then_some(word)
    }
}

/// The stamps of a rank's waits.
#[derive(Debug)]
pub(crate) struct Stamps {
    slots: [Stamp; SLOTS],
    /// Waits without a slot.
    beyond: AtomicU64,
    /// Somebody asks for the rank's claim, to look at it.
    is_asked: AtomicBool,
}

impl Stamps {
    fn new() -> Self {
        Self {
            slots: core::array::from_fn(|_| Stamp::vacant()),
            beyond: AtomicU64::new(0),
            is_asked: AtomicBool::new(false),
        }
    }

    /// The sleeps of all waits: how many they are, and the sum of their stamps, which grows with each change.
    /// `None` if there is none, or one is awake.
    fn sleeps(&self) -> Option<(u64, u64)> {
        if self.beyond.load(Ordering::SeqCst) != 0 {
            return None;
        }
        let (mut threads, mut sum) = (0, 0_u64);
        for slot in &self.slots {
            if slot.is(VACANT) {
                continue;
            }
            sum = sum.wrapping_add(slot.sleep()?);
            threads += 1;
        }
        (threads > 0).then_some((threads, sum))
    }

    /// The same of a rank that sleeps in `park`, whom nobody has woken: a number that grows with each sleep and each
    /// wake-up.
    fn rest(&self, park: &ParkSlot) -> Option<(u64, u64)> {
        let (threads, sum) = self.sleeps()?;
        // Behind the stamps: who was woken is not counted any more.
        let (parked, wakes) = park.parked();
        (u64::from(parked) == threads).then(|| (threads, sum.wrapping_add(u64::from(wakes))))
    }
}

#[cfg(not(loom))]
pub use noted::{Awaited, Note, Place, Waits};

#[cfg(all(test, loom))]
mod models;
#[cfg(not(loom))]
mod noted;
#[cfg(all(test, not(loom)))]
mod tests;

//! Whether the threads of a rank sleep, for whoever asks why a job hangs.
//!
//! A wait that has come to its first sleep has a slot of its rank. The slot has a word, its *stamp*, that only its
//! thread changes: vacant, awake, or asleep *for good* (until somebody wakes the rank), and above that a count of its
//! changes. So two equal looks at a sleeping slot have a sleep between them, without a moment awake. What follows from
//! that for all ranks together is in `docs/insight.md`, and modelled in `stamps/models.rs`.
//!
//! What the threads wait for is in `ranks/waits.rs`.

use cohort_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cohort_steal::park::ParkSlot;

/// Threads of a rank whose waits are noted; more are counted.
pub(crate) const SLOTS: usize = 8;

/// States of a slot, in the low bits of its stamp.
const VACANT: u64 = 0;
const AWAKE: u64 = 1;
const ASLEEP: u64 = 2;
const STATES: u64 = 3;

/// The word of a slot: how often it has changed, and what it is.
#[derive(Debug)]
struct Stamp(AtomicU64);

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
    /// Threads that are awake though their stamps say that they sleep, in the lower half; above that, how often one
    /// was.
    stirs: AtomicU64,
}

/// One more stir, by one more thread.
const STIR: u64 = 1 << 32 | 1;

impl Stamps {
    pub(crate) fn new() -> Self {
        Self {
            slots: core::array::from_fn(|_| Stamp::vacant()),
            beyond: AtomicU64::new(0),
            is_asked: AtomicBool::new(false),
            stirs: AtomicU64::new(0),
        }
    }

    /// A wait begins: its slot, [`SLOTS`] if all are taken. By the holder of the claim.
    pub(crate) fn begin(&self) -> usize {
        let vacant = self.slots.iter().position(|slot| slot.is(VACANT));
        let Some(at) = vacant else {
            self.beyond.fetch_add(1, Ordering::SeqCst);
            return SLOTS;
        };
        self.slots[at].change(AWAKE);
        at
    }

    /// The wait with this slot is over. By its thread, under the claim.
    pub(crate) fn end(&self, at: usize) {
        match self.slots.get(at) {
            Some(slot) => slot.change(VACANT),
            None => {
                self.beyond.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// The thread with this slot sleeps from now on until somebody wakes the rank, or is awake again.
    pub(crate) fn sleep(&self, at: usize, sleeps: bool) {
        if let Some(slot) = self.slots.get(at) {
            slot.change(if sleeps { ASLEEP } else { AWAKE });
        }
    }

    /// A thread within its sleep looks at something for others, or does so no more: it watches the network.
    pub(crate) fn stir(&self, begins: bool) {
        // SeqCst: as for stamps.
        match begins {
            true => self.stirs.fetch_add(STIR, Ordering::SeqCst),
            false => self.stirs.fetch_sub(1, Ordering::SeqCst),
        };
    }

    /// The threads that wait, with a slot or without.
    pub(crate) fn count(&self) -> u32 {
        let taken = self.slots.iter().filter(|slot| !slot.is(VACANT));
        taken.count() as u32 + self.beyond.load(Ordering::Relaxed) as u32
    }

    /// Somebody asks for the claim, or does no more.
    pub(crate) fn ask(&self, asks: bool) {
        self.is_asked.store(asks, Ordering::Relaxed);
    }

    /// Whether somebody asks for the claim.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
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
        let stirs = self.stirs.load(Ordering::SeqCst);
        let is_still = stirs & u64::from(u32::MAX) == 0;
        (threads > 0 && is_still).then_some((threads, sum.wrapping_add(stirs >> 32)))
    }

    /// The same of a rank that sleeps in `park`, whom nobody has woken: a number that grows with each sleep and each
    /// wake-up.
    pub(crate) fn rest(&self, park: &ParkSlot) -> Option<(u64, u64)> {
        let (threads, sum) = self.sleeps()?;
        // Behind the stamps: who was woken is not counted any more.
        let (parked, wakes) = park.parked();
        (u64::from(parked) == threads).then(|| (threads, sum.wrapping_add(u64::from(wakes))))
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

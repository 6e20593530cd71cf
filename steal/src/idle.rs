//! The idle set: which ranks of the node sleep and would work for others.
//!
//! One bit per rank, in words given by the caller. A sender that posts a rendezvous to a busy
//! owner picks one sleeping worker, preferably near the owner, and wakes it.
//!
//! # Protocol
//! ```text
//! worker                                   sender
//! W1 insert(self)                          M1 post, raise the owner's availability
//! W2 ParkSlot::prepare (heavy)             M2 Barriers::light (the caller's)
//! W3 look at every victim once more        M3 pick(near): clears the bit it returns
//! W4 sleep or cancel                       M4 ParkSlot::wake of the picked rank
//! W5 remove(self)
//! ```
//! By the barriers, W3 sees M1 or M3 sees W1. A bit is cleared by exactly one task, so two senders
//! wake two workers. If the picked worker had not reached W2, M4 finds it running, and its
//! own W3 sees M1.
//!
//! A pick is an errand: a worker whose [`IdleSet::remove`] says that it was picked either
//! makes a round of stealing or, when its own wait is over, passes the errand on by picking
//! another one. Without that, a wake-up for the owner could end at a worker that leaves.
//!
//! # Several threads of a rank
//! The rank's bit is for all its threads that sleep, which [`Sleepers`] counts. Each adds one before W1. At W5 it takes
//! one off, and only the last clears the bit. Between the two a thread may have begun to sleep whose bit goes with that
//! of the others. So the last one looks at the count again, behind its W5; if it is not 0, it sets the bit again, and
//! as a sender may have found none meanwhile, it passes a heavy barrier and makes a round itself.
//!
//! Who sets or clears a bit sees what those who did so before had counted (`AcqRel`). So whoever sets the bit again
//! finds a sleeper that has left since, or that one finds the bit. Otherwise the bits may be Relaxed: the barriers
//! order them, and they guard no data.

use cohort_base::LocalRank;
use cohort_base::sync::Barriers;
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const WORD_BITS: u32 = u64::BITS;

/// The set of sleeping workers of a node.
#[derive(Clone, Copy, Debug)]
pub struct IdleSet<'a>(&'a [AtomicU64]);

impl<'a> IdleSet<'a> {
    /// The number of words that a node of `ranks` ranks needs.
    #[must_use]
    pub const fn words(ranks: u32) -> usize {
        ranks.div_ceil(WORD_BITS) as usize
    }

    /// A set kept in `words`, all zero at first.
    #[must_use]
    pub const fn new(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }

    fn place(&self, rank: LocalRank) -> (&'a AtomicU64, u64) {
        (&self.0[(rank / WORD_BITS) as usize], 1 << (rank % WORD_BITS))
    }

    /// Adds a rank that is about to sleep.
    ///
    /// # Panics
    /// If the storage has no bit for `rank`; so do the other methods.
    pub fn insert(&self, rank: LocalRank) {
        let (word, bit) = self.place(rank);
        word.fetch_or(bit, Ordering::AcqRel);
    }

    /// Whether a rank is in the set.
    #[must_use]
    fn contains(&self, rank: LocalRank) -> bool {
        let (word, bit) = self.place(rank);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// Takes a rank out; `false` means that a sender has picked it meanwhile.
    #[must_use = "a picked worker owes a round of stealing, or another pick"]
    pub fn remove(&self, rank: LocalRank) -> bool {
        let (word, bit) = self.place(rank);
        word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Picks a sleeping rank and takes it out of the set: the next one at or after `near`,
    /// around the end. Ranks are numbered along the machine, so that one is mostly near.
    #[must_use]
    pub fn pick(&self, near: LocalRank) -> Option<LocalRank> {
        let start = (near / WORD_BITS) as usize;
        let upper = !0 << (near % WORD_BITS);
        if let [_] = self.0 {
            return (self.pick_in(0, upper)).or_else(|| self.pick_in(0, !upper));
        }
        if let Some(rank) = self.pick_in(start, upper) {
            return Some(rank);
        }
        (start + 1..self.0.len())
            .chain(0..start)
            .find_map(|index| self.pick_in(index, !0))
            .or_else(|| self.pick_in(start, !upper))
    }

    /// Clears and returns the first set bit among `allowed` of one word.
    fn pick_in(&self, index: usize, allowed: u64) -> Option<LocalRank> {
        let word = &self.0[index];
        let mut bits = word.load(Ordering::Relaxed) & allowed;
        while bits != 0 {
            let bit = bits & bits.wrapping_neg();
            let before = word.fetch_and(!bit, Ordering::Relaxed);
            if before & bit != 0 {
                return Some(index as u32 * WORD_BITS + bit.trailing_zeros());
            }
            bits = before & allowed;
        }
        None
    }

    /// Whether no rank sleeps: a hint that may be stale.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }
}

/// How many threads of a rank sleep with its bit in the idle set.
#[derive(Debug)]
pub struct Sleepers(AtomicU32);

impl Default for Sleepers {
    fn default() -> Self {
        Self(AtomicU32::new(0))
    }
}

impl Sleepers {
    /// Whether there is none.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// A thread of `rank` is about to sleep.
    pub fn enter(&self, idle: &IdleSet<'_>, rank: LocalRank) {
        // Relaxed, as the others: the bit orders them.
        self.0.fetch_add(1, Ordering::Relaxed);
        idle.insert(rank);
    }

    /// A thread that has entered sleeps no more. `true`: it owes a round of stealing, or another pick.
    #[must_use = "a picked worker owes a round of stealing, or another pick"]
    pub fn leave(&self, idle: &IdleSet<'_>, rank: LocalRank, barriers: Barriers) -> bool {
        if self.0.fetch_sub(1, Ordering::Relaxed) > 1 {
            return !idle.contains(rank);
        }
        let mut was_picked = !idle.remove(rank);
        while self.0.load(Ordering::Relaxed) != 0 {
            idle.insert(rank);
            if self.0.load(Ordering::Relaxed) != 0 {
                barriers.heavy();
                return true;
            }
            // It has left, perhaps before it could find the bit.
            was_picked |= !idle.remove(rank);
        }
        was_picked
    }
}

#[cfg(test)]
mod tests;

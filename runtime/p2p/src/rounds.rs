//! Who copies which partition, and when a round is over.
//!
//! One side marks partitions ready, by any of its threads; the other opens its buffer once per
//! round, before or after. Each partition is copied by exactly one task: whoever comes second of
//! "this partition is ready" and "the buffer is open".
//!
//! # Protocol
//! Rounds count from 1. The state of a partition names its last round:
//!
//! | state | meaning | next |
//! |---|---|---|
//! | of an earlier round, or 0 | not ready | `READY` by the sender, or `TAKEN` if it sees the buffer open |
//! | `READY` | the data may be read | `TAKEN` by one task that saw the buffer open |
//! | `TAKEN` | is being copied | `DONE` by the same task |
//! | `DONE` | the data has arrived | `READY` of the next round |
//!
//! * A sender that sees the buffer open before it marks anything takes the partition at once: nobody else takes what
//!   was never `READY`. One swap chooses among threads that mark the same partition.
//! * Otherwise it stores `READY`, passes a full fence and loads `opened`; the receiver stores
//!   `opened`, passes a full fence and looks at every state. Of two such pairs at least one load sees
//!   the other's store, so no ready partition stays behind. If both see it, the swap to `TAKEN`
//!   chooses one.
//! * `finished` counts copies; AcqRel, so that who counts the last one has seen all of them. It
//!   resets the count and then publishes the end of the round to both sides (release). A side
//!   begins its next round only after it has seen the end of this one, so nobody counts for two
//!   rounds at once.
//! * `READY` is stored with release after the data, and taken with acquire. `opened` is stored with
//!   release after the receiver's buffer was described, and loaded with acquire.

use cohort_base::sync::atomic::{AtomicU32, Ordering, fence};

const READY: u32 = 1;
const TAKEN: u32 = 2;
const DONE: u32 = 3;

/// The partition was marked ready in this round before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyReady;

/// See the module page. The states are beside it, one per partition of the sender.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// The round for which the receiver has opened its buffer.
    opened: AtomicU32,
    /// Partitions of this round that have been copied.
    finished: AtomicU32,
    /// The last round that is over, for either side.
    over: AtomicU32,
}

/// The state `phase` in `round`.
fn state_in(round: u32, phase: u32) -> u32 {
    round << 2 | phase
}

impl Rounds {
    pub(crate) fn new() -> Self {
        Self {
            opened: AtomicU32::new(0),
            finished: AtomicU32::new(0),
            over: AtomicU32::new(0),
        }
    }

    /// Whether `round` is over.
    #[inline]
    pub(crate) fn is_over(&self, round: u32) -> bool {
        // Acquire pairs with the Release in `finish`.
        self.over.load(Ordering::Acquire) == round
    }

    /// Sender: the data of a partition may be read. `true`: the caller copies it now.
    ///
    /// # Errors
    /// [`AlreadyReady`].
    #[inline]
    pub(crate) fn ready(&self, state: &AtomicU32, round: u32) -> Result<bool, AlreadyReady> {
        let before = state.load(Ordering::Relaxed);
        let is_open = self.opened.load(Ordering::Acquire) == round;
        let marked = state_in(round, if is_open { TAKEN } else { READY });
        let is_first = before >> 2 != marked >> 2
            && state
                .compare_exchange(before, marked, Ordering::Release, Ordering::Relaxed)
                .is_ok();
        if !is_first {
            return Err(AlreadyReady);
        }
        Ok(is_open || self.is_open_now(state, round))
    }

    /// Whether the buffer was opened meanwhile, and the caller takes the partition that it has marked.
    #[inline(never)]
    fn is_open_now(&self, state: &AtomicU32, round: u32) -> bool {
        fence(Ordering::SeqCst);
        self.opened.load(Ordering::Acquire) == round && self.take(state, round)
    }

    /// Receiver: the buffer may be written. It then offers itself for every state by
    /// [`Rounds::take`].
    pub(crate) fn open(&self, round: u32) {
        self.opened.store(round, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// `true`: the partition is ready and the caller copies it now; the buffer is open.
    #[inline]
    pub(crate) fn take(&self, state: &AtomicU32, round: u32) -> bool {
        let (ready, taken) = (state_in(round, READY), state_in(round, TAKEN));
        state
            .compare_exchange(ready, taken, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// The taker has copied the partition. `true`: it was the last of `partitions`, and the
    /// round is over.
    #[inline]
    pub(crate) fn finish(&self, state: &AtomicU32, round: u32, partitions: u32) -> bool {
        state.store(state_in(round, DONE), Ordering::Release);
        if self.finished.fetch_add(1, Ordering::AcqRel) + 1 != partitions {
            return false;
        }
        self.finished.store(0, Ordering::Relaxed);
        // Release pairs with the Acquire in `is_over`.
        self.over.store(round, Ordering::Release);
        true
    }

    /// Receiver: whether the data of a partition has arrived in its round, which the sender may
    /// have left behind already.
    pub(crate) fn has_arrived(&self, state: &AtomicU32, round: u32) -> bool {
        // Acquire pairs with the Release in `finish`; the sender goes on to the next round after it
        // has seen the end of this one.
        let state = state.load(Ordering::Acquire);
        let next = state_in(round.wrapping_add(1), 0);
        state == state_in(round, DONE) || state >> 2 == next >> 2
    }
}

#[cfg(test)]
mod tests;

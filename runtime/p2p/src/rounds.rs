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
//!   was never `READY`. One swap chooses among threads that mark the same partition. A sender with one thread needs no
//!   swap, and does not write `TAKEN`, for which nobody looks.
//! * Otherwise it stores `READY`, passes a full fence and loads `opened`; the receiver stores
//!   `opened`, passes a full fence and looks at every state. Of two such pairs at least one load sees
//!   the other's store, so no ready partition stays behind. If both see it, the swap to `TAKEN`
//!   chooses one.
//! * The sender counts for itself ([`Marks`]) which partitions of the round it has still to mark, and how many it has
//!   left to others. Its threads count those to mark after their copies (AcqRel), so who marks the last one has
//!   seen all copies of the sender's. If nothing was left to others, that ends the round. Else `finished` counts: the
//!   others' copies one by one, the sender's all at once by whoever marks the last one, and one more for that mark, so
//!   that no thread of the sender is still marking when the round is over. AcqRel, so that who counts the last one has
//!   seen all of them.
//! * Who ends the round resets `finished` and then publishes the end to both sides (release). A side
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
    /// Partitions of this round that have been copied, and the sender's last mark.
    finished: AtomicU32,
    /// The last round that is over, for either side.
    over: AtomicU32,
}

/// What the sender counts of a round, where the receiver never looks: it waits for the end of the round beside
/// `finished`, and each write there would take the line from it.
#[derive(Debug)]
pub(crate) struct Marks {
    /// Partitions that are not marked, or not copied by the thread that has marked them.
    left: AtomicU32,
    /// Partitions that were left to whoever opens the buffer.
    others: AtomicU32,
}

impl Marks {
    pub(crate) fn new() -> Self {
        Self { left: AtomicU32::new(0), others: AtomicU32::new(0) }
    }

    /// How many partitions were not marked, while nobody marks or copies one.
    pub(crate) fn left(&self) -> u32 {
        self.left.load(Ordering::Relaxed)
    }

    /// A round begins.
    #[inline]
    pub(crate) fn begin(&self, partitions: u32) {
        self.left.store(partitions, Ordering::Relaxed);
        self.others.store(0, Ordering::Relaxed);
    }
}

/// Adds to a counter of the sender's, in one step if it has `several` threads. Returns the sum.
#[inline(always)]
fn add(counter: &AtomicU32, number: u32, several: bool) -> u32 {
    if several {
        return counter.fetch_add(number, Ordering::AcqRel).wrapping_add(number);
    }
    let sum = counter.load(Ordering::Relaxed).wrapping_add(number);
    counter.store(sum, Ordering::Relaxed);
    sum
}

/// The state `phase` in `round`.
fn state_in(round: u32, phase: u32) -> u32 {
    round << 2 | phase
}

impl Rounds {
    pub(crate) fn new() -> Self {
        Self { opened: AtomicU32::new(0), finished: AtomicU32::new(0), over: AtomicU32::new(0) }
    }

    /// Whether `round` is over.
    #[inline]
    pub(crate) fn is_over(&self, round: u32) -> bool {
        // Acquire pairs with the Release in `finish`.
        self.over.load(Ordering::Acquire) == round
    }

    /// Sender: the data of a partition may be read. `true`: the caller copies it now. Either way it then says
    /// [`Rounds::marked`]. `several`: other threads may mark partitions at the same time.
    ///
    /// # Errors
    /// [`AlreadyReady`].
    #[inline]
    pub(crate) fn ready(&self, state: &AtomicU32, round: u32, several: bool) -> Result<bool, AlreadyReady> {
        let before = state.load(Ordering::Relaxed);
        let is_open = self.opened.load(Ordering::Acquire) == round;
        let marked = state_in(round, if is_open { TAKEN } else { READY });
        if before >> 2 == marked >> 2 {
            return Err(AlreadyReady);
        }
        if several {
            let swapped = state.compare_exchange(before, marked, Ordering::Release, Ordering::Relaxed);
            swapped.map_err(|_| AlreadyReady)?;
        } else if !is_open {
            state.store(marked, Ordering::Release);
        }
        Ok(is_open || self.is_open_now(state, round))
    }

    /// Sender: a partition was marked, and copied by the caller or left to others. `true`: the round is over.
    #[inline]
    pub(crate) fn marked(
        &self,
        marks: &Marks,
        state: &AtomicU32,
        (round, partitions): (u32, u32),
        (is_copied, several): (bool, bool),
    ) -> bool {
        if is_copied {
            state.store(state_in(round, DONE), Ordering::Release);
        } else {
            add(&marks.others, 1, several);
        }
        if add(&marks.left, u32::MAX, several) != 0 {
            return false;
        }
        // Relaxed: who counted there has come to the line above since, or is the caller.
        let others = marks.others.load(Ordering::Relaxed);
        if others == 0 {
            // Release pairs with the Acquire in `is_over`.
            self.over.store(round, Ordering::Release);
            return true;
        }
        self.count(partitions - others + 1, round, partitions)
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
        // A look first: a swap that fails would take the line from the sender too.
        state.load(Ordering::Relaxed) == ready
            && state.compare_exchange(ready, taken, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Somebody else than the sender has copied the partition that it took. `true`: it was the last of `partitions`,
    /// and the round is over.
    #[inline]
    pub(crate) fn finish(&self, state: &AtomicU32, round: u32, partitions: u32) -> bool {
        state.store(state_in(round, DONE), Ordering::Release);
        self.count(1, round, partitions)
    }

    /// So many were copied, or marked as the last. `true`: that was all, and the round is over.
    fn count(&self, number: u32, round: u32, partitions: u32) -> bool {
        if self.finished.fetch_add(number, Ordering::AcqRel) + number != partitions + 1 {
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

//! The state of a request, of which each side changes what is its own.
//!
//! It moves once to an end state:
//!
//! | state | of | meaning | next |
//! |---|---|---|---|
//! | `PENDING` | all | not matched | `MATCHED`, `CANCELLED`, `BUFFERED`, `COMPLETE` |
//! | `MATCHED` | offered sends | a receiver took the RTS and will complete it | `COMPLETE` |
//! | `COMPLETE` | all | the status is valid; the owner may free the request | end, `SPENT` |
//! | `CANCELLED` | offered sends, posted receives | the owner withdrew it; a send's RTS is still on its way | `WITHDRAWN`, `RELEASED` |
//! | `WITHDRAWN` | offered sends | cancelled, and the RTS was dropped by the receiver | end |
//! | `RELEASED` | offered sends | cancelled and released; whoever drops the RTS frees it | end |
//! | `BUFFERED` | lent sends | the owner has copied the data, and does not wait any more; the RTS is on its way | `COMPLETE`, `LEFT` |
//! | `LEFT` | lent sends | the same, and released; whoever receives the message frees it | end |
//! | `SPENT` | plain receives, plain collectives | the program has the outcome; the owner keeps the record | `PENDING`, `COMPLETE` |
//!
//! Whoever moves an offered send out of `PENDING` swaps it: the receiver that takes it, the owner that withdraws it, or
//! the owner that has copied its data. One of them succeeds, and knows what the others may still do. Whoever shares the
//! last steps of a record swaps too: the one that comes second finds what the first has left, and frees the record.

use cohort_base::sync::atomic::{AtomicU32, Ordering};

pub(crate) const PENDING: u32 = 0;
const MATCHED: u32 = 1;
pub(crate) const COMPLETE: u32 = 2;
const CANCELLED: u32 = 3;
const WITHDRAWN: u32 = 4;
const RELEASED: u32 = 5;
const SPENT: u32 = 6;
pub(crate) const BUFFERED: u32 = 7;
const LEFT: u32 = 8;

/// See the module page.
#[derive(Debug)]
pub struct RequestState(AtomicU32);

impl RequestState {
    /// One to begin with.
    #[cfg(not(loom))]
    pub(crate) const fn of(state: u32) -> Self {
        Self(AtomicU32::new(state))
    }

    #[cfg(loom)]
    fn of(state: u32) -> Self {
        Self(AtomicU32::new(state))
    }

    /// Now; what was published with it is visible.
    #[inline]
    pub(crate) fn now(&self) -> u32 {
        // Acquire pairs with the Release in `complete` and `buffer`.
        self.0.load(Ordering::Acquire)
    }

    /// The operation is over, by the only one who works on it.
    #[inline]
    pub(crate) fn complete(&self) {
        // Release pairs with the Acquire in `is_complete`.
        self.0.store(COMPLETE, Ordering::Release);
    }

    /// Owner: what was spent is pending again.
    #[inline]
    pub(crate) fn renew(&self) {
        // Relaxed: whoever completes it finds it under the claim.
        self.0.store(PENDING, Ordering::Relaxed);
    }

    /// Owner: keeps the record of what is complete.
    #[inline]
    pub(crate) fn spend(&self) {
        // Relaxed: only the owner looks at it now.
        self.0.store(SPENT, Ordering::Relaxed);
    }

    /// Owner: whether it keeps the record of what was complete.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == SPENT
    }

    /// Whether nothing has been done for it yet, as far as the caller sees.
    pub fn is_pending(&self) -> bool {
        self.0.load(Ordering::Acquire) == PENDING
    }

    /// Takes an offered send for a receive; `false` when the sender has withdrawn it. One whose data the sender has
    /// copied stays as it is: only the message's receiver comes here, and only once.
    pub fn take_rts(&self) -> bool {
        // Acquire: the buffer was written before the RTS; AcqRel orders against `withdraw` and `buffer`.
        let swapped = self.0.compare_exchange(PENDING, MATCHED, Ordering::AcqRel, Ordering::Acquire);
        matches!(swapped, Ok(_) | Err(BUFFERED | LEFT))
    }

    /// Sender: has copied the data of an offered send, which is complete then. `false`: a receiver has taken it before,
    /// or it was withdrawn.
    pub fn buffer(&self) -> bool {
        // Release: the copy is there for who sees the state; AcqRel orders against `take_rts`.
        self.0.compare_exchange(PENDING, BUFFERED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Receiver of a send that was taken: whether its data is in the sender's copy.
    #[inline]
    pub fn is_buffered(&self) -> bool {
        // Acquire pairs with the Release in `buffer`.
        matches!(self.0.load(Ordering::Acquire), BUFFERED | LEFT)
    }

    /// Receiver: needs nothing more of a send whose data is in a copy. `true`: the handle is gone too, so the caller
    /// frees the request.
    #[must_use]
    pub fn drop_buffered(&self) -> bool {
        let swapped = self.0.compare_exchange(BUFFERED, COMPLETE, Ordering::AcqRel, Ordering::Acquire);
        swapped == Err(LEFT)
    }

    /// Whether the sender has withdrawn this offered send.
    pub fn is_withdrawn(&self) -> bool {
        // Relaxed: a hint; `take_rts` or `drop_rts` decides.
        matches!(self.0.load(Ordering::Relaxed), CANCELLED | RELEASED)
    }

    /// Whether the operation is over, or withdrawn; what it wrote is then visible (acquire).
    #[inline]
    pub fn is_complete(&self) -> bool {
        // Acquire pairs with the Release in `complete_quietly`.
        !matches!(self.0.load(Ordering::Acquire), PENDING | MATCHED)
    }

    /// Sender: withdraws an offered send, unless a receiver has taken it.
    pub fn withdraw(&self) -> bool {
        // Orders against `take_rts`: one of the two swaps fails.
        self.0.compare_exchange(PENDING, CANCELLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Receiver: drops the RTS of a withdrawn send. `true`: the handle is gone too, so the caller frees the request.
    #[must_use]
    pub fn drop_rts(&self) -> bool {
        let swapped = self.0.compare_exchange(CANCELLED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire);
        swapped == Err(RELEASED)
    }

    /// Owner: the handle of a send goes. `true`: its RTS is still on its way, and whoever drops
    /// that frees the request.
    #[must_use]
    pub fn leave_to_receiver(&self) -> bool {
        // Acquire: if the RTS was dropped, its receiver is done with the request.
        let (now, next) = match self.0.load(Ordering::Acquire) {
            CANCELLED => (CANCELLED, RELEASED),
            BUFFERED => (BUFFERED, LEFT),
            _ => return false,
        };
        self.0.compare_exchange(now, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests;

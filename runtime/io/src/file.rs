//! What the members of a node that have opened a file together share.

use crate::order::InOrder;
use cohort_base::heir::{HeirGuard, HeirLock};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// What the members of a node share of a file that they have opened together.
#[derive(Debug, Default)]
pub struct Shared {
    pointer: AtomicU64,
    turn: HeirLock<()>,
    /// Threads that wait for the turn by other means than the lock's.
    awaiting: AtomicU32,
    /// Where members come with what goes to the shared pointer in the order of ranks.
    pub in_order: InOrder<[i32; 4]>,
}

impl Shared {
    /// The shared pointer, in bytes of the view's data.
    #[must_use]
    pub fn pointer(&self) -> u64 {
        // Sequentially consistent, as all of it: a pointer moves once per call of the program, and the order of moves
        // is what the program sees.
        self.pointer.load(Ordering::SeqCst)
    }

    /// Sets the shared pointer; the members have met, and meet again before they use it.
    pub fn set_pointer(&self, position: u64) {
        self.pointer.store(position, Ordering::SeqCst);
    }

    /// Moves the shared pointer on by some bytes, and gives where it was: those bytes are the caller's. `None`: it
    /// would be beyond what an offset can say, and stays.
    #[must_use]
    pub fn take(&self, bytes: u64) -> Option<u64> {
        let next = |at: u64| at.checked_add(bytes).filter(|&next| i64::try_from(next).is_ok());
        self.pointer.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()
    }

    /// Waits until nobody else on the node reads or writes the file in atomic mode; others wait until the guard is
    /// gone.
    pub fn turn(&self) -> HeirGuard<'_> {
        self.turn.hold()
    }

    /// [`Shared::turn`], if it is the caller's at once.
    #[must_use]
    pub fn try_turn(&self) -> Option<HeirGuard<'_>> {
        self.turn.try_hold()
    }

    /// The caller tries [`Shared::try_turn`] from now on, and sleeps meanwhile.
    pub fn begin_to_await(&self) {
        self.awaiting.fetch_add(1, Ordering::Relaxed);
        // Pairs with that of `is_awaited`: the caller finds the turn free, or the one who has had it sees the count.
        fence(Ordering::SeqCst);
    }

    /// The caller does so no more.
    pub fn end_to_await(&self) {
        self.awaiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether somebody does, whom the caller, who has just given its turn back, has to wake.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        fence(Ordering::SeqCst);
        self.awaiting.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_all_offsets_is_not_taken() {
        let shared = Shared::default();
        assert_eq!([10, 5].map(|bytes| shared.take(bytes)), [Some(0), Some(10)]);
        assert_eq!([u64::MAX, i64::MAX as u64].map(|bytes| shared.take(bytes)), [None; 2]);
        assert_eq!(shared.pointer(), 15);
    }
}

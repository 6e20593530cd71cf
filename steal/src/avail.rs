//! Availability: whether stealing from a rank is worth a try (Daps' `net_avail` and
//! `shm_avail`, rule 2).
//!
//! Each is a **counter**, since several receives, windows and collectives may expect
//! messages at once: whoever has reason to expect one raises it and lowers it when the
//! reason is gone. Raised means "a message is likely", never "a message is there".
//!
//! Posted receives are a reason of their own for messages within the node, so that a worker may pass
//! over a rank that expects nothing else.
//!
//! The counters share a line of their own: workers of the whole node poll it, and it is written
//! once per receive, not once per poll. Only the holder of the rank's claim writes them. All accesses are
//! Relaxed: the answer is a hint, and what a worker then reads of the rank is ordered by the claim. A
//! worker that is about to sleep orders its last look by the barrier of [`crate::park`].

use crate::TaskKind;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::sync::{CacheLine, fence_behind_locked};

/// What one rank expects, by kind of task.
#[derive(Debug)]
pub struct Availability(CacheLine<[AtomicU32; TaskKind::COUNT + 1]>);

/// The place of posted receives, behind those of the kinds.
const RECEIVES: usize = TaskKind::COUNT;

impl Default for Availability {
    fn default() -> Self {
        Self::new()
    }
}

impl Availability {
    /// Nothing is expected.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(CacheLine([const { AtomicU32::new(0) }; TaskKind::COUNT + 1]))
    }

    /// Nothing is expected.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(CacheLine([(); TaskKind::COUNT + 1].map(|()| AtomicU32::new(0))))
    }

    /// One more reason to expect messages of this kind. A full barrier: who raises it, and then looks for messages,
    /// sees those of a sender that looked here too early.
    #[inline]
    pub fn raise(&self, kind: TaskKind) {
        self.0[kind.index()].fetch_add(1, Ordering::Relaxed);
        fence_behind_locked();
    }

    /// [`Availability::raise`] that is no barrier.
    #[inline]
    pub fn raise_later(&self, kind: TaskKind) {
        let counter = &self.0[kind.index()];
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// One reason less. Every call undoes one [`Availability::raise`]. No barrier.
    #[inline]
    pub fn lower(&self, kind: TaskKind) {
        self.lower_at(kind.index());
    }

    #[inline]
    fn lower_at(&self, place: usize) {
        let before = self.0[place].load(Ordering::Relaxed);
        debug_assert!(before > 0, "{place} was lowered more often than raised");
        self.0[place].store(before.wrapping_sub(1), Ordering::Relaxed);
    }

    /// Receives are posted from now on. A full barrier, as [`Availability::raise`].
    #[inline]
    pub fn raise_receives(&self) {
        self.0[RECEIVES].fetch_add(1, Ordering::Relaxed);
        fence_behind_locked();
    }

    /// No receive is posted any more. No barrier.
    #[inline]
    pub fn lower_receives(&self) {
        self.lower_at(RECEIVES);
    }

    /// Whether there is any reason to expect messages of this kind.
    #[inline]
    #[must_use]
    pub fn is_raised(&self, kind: TaskKind) -> bool {
        self.is_raised_beyond_receives(kind) || kind == TaskKind::Shm && self.0[RECEIVES].load(Ordering::Relaxed) != 0
    }

    /// Whether there is any reason but receives to expect messages of this kind.
    #[inline]
    #[must_use]
    pub fn is_raised_beyond_receives(&self, kind: TaskKind) -> bool {
        self.0[kind.index()].load(Ordering::Relaxed) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn two_reasons_need_two_withdrawals() {
        let availability = Availability::new();
        availability.raise(TaskKind::Shm);
        availability.raise_later(TaskKind::Shm);
        availability.lower(TaskKind::Shm);
        assert!(availability.is_raised(TaskKind::Shm));
        availability.lower(TaskKind::Shm);
        assert!(!availability.is_raised(TaskKind::Shm));
    }

    #[test]
    fn receives_are_a_reason_of_their_own_within_the_node() {
        let availability = Availability::new();
        availability.raise_receives();
        assert!(availability.is_raised(TaskKind::Shm) && !availability.is_raised(TaskKind::Net));
        assert!(!availability.is_raised_beyond_receives(TaskKind::Shm));
        availability.raise(TaskKind::Shm);
        assert!(availability.is_raised_beyond_receives(TaskKind::Shm));
        availability.lower(TaskKind::Shm);
        availability.lower_receives();
        assert!(!availability.is_raised(TaskKind::Shm));
    }

    #[test]
    fn the_kinds_are_independent() {
        let availability = Availability::new();
        availability.raise(TaskKind::Net);
        assert!(availability.is_raised(TaskKind::Net));
        assert!(!availability.is_raised(TaskKind::Shm));
    }
}

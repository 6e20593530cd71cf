//! The right to do what only a rank's own task may do.
//!
//! A thief, a progress thread and a handler of signals run with a [`Claim`](crate::Claim) at most.
//! They must not allocate from the global allocator of the node image, take locks of the whole
//! node, or call the program: the task that they interrupt or help may be in the middle of just
//! that. Whatever does one of these asks for an [`Owner`], and nothing that a thief is handed leads
//! to one.

pub use super::Owner;
use super::Rank;
use core::marker::PhantomData;

impl<'rank> Owner<'rank> {
    /// The witness of a call of the program.
    ///
    /// # Safety
    /// The caller runs on a task of `rank`, in a call of the program: not in a handler of signals
    /// of the runtime, not on a thread of the runtime, and with no claim that it has stolen. Or it runs on a thread of
    /// the runtime with a [`Block`](crate::threads::Block), and what it calls leads to no function of the program's.
    #[inline]
    #[must_use]
    pub unsafe fn new(rank: &'rank Rank) -> Self {
        Self { rank, not_send: PhantomData }
    }

    /// The rank.
    #[inline]
    #[must_use]
    pub fn rank(self) -> &'rank Rank {
        self.rank
    }

    /// That of a test, whose threads play the ranks.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn for_test(rank: &'rank Rank) -> Self {
        // SAFETY: threads of a test call as the program would.
        unsafe { Self::new(rank) }
    }
}

//! The right to act for a rank, and the state that it opens.
//!
//! A [`Claim`] is the only way to a rank's state: what the subsystems keep for it (its queues, its
//! requests, the consuming ends of its inbound rings and the producing ends of its outbound ones),
//! and its heap. Owners get one by [`Rank::enter`], thieves by [`Rank::try_steal`]; nobody waits
//! while holding a stolen one.

pub use super::{AtRelease, Claim, Releasing};
use super::{Rank, State, hooks};
use crate::threads::Block;
use cohort_alloc::Heap;
use cohort_base::LocalRank;
use cohort_steal::TaskKind;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// Alignment of [`Claim::alloc`].
const ALIGN: usize = 16;

impl Rank {
    /// Takes the claim for somebody who only looks, if nobody has it; nobody hears of it.
    pub(crate) fn try_look(&self) -> bool {
        self.word.try_claim()
    }

    /// The claim that stands for a successful [`Rank::try_look`]. It must not be dropped.
    pub(crate) fn looking(&self) -> Claim<'_> {
        Claim::new(self, self.id, false)
    }
}

impl<'rank> Claim<'rank> {
    /// The value that stands for a claim that was just taken by the owner, or by a task of `caller`
    /// that only tried for it. Subsystems that asked for it are told first: posts that the rank
    /// left to a dedicated worker are done.
    #[inline]
    pub(crate) fn of_taken(rank: &'rank Rank, caller: LocalRank, by_owner: bool) -> Self {
        match rank.is_called_when_claimed() {
            true => Self::told(rank, caller, by_owner),
            false => Self::new(rank, caller, by_owner),
        }
    }

    /// A new claim, of which the subsystems were told. Out of line: a claim whose address is taken here would be
    /// written to memory, and copied from there in pieces of other sizes.
    #[inline(never)]
    fn told(rank: &'rank Rank, caller: LocalRank, by_owner: bool) -> Self {
        let mut claim = Self::new(rank, caller, by_owner && !Block::is_callers());
        hooks::claimed(&mut claim);
        claim
    }

    #[inline]
    fn new(rank: &'rank Rank, caller: LocalRank, by_owner: bool) -> Self {
        Self { rank, caller, by_owner, not_send: PhantomData }
    }

    /// The claimed rank.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> &'rank Rank {
        self.rank
    }

    /// The rank whose task holds the claim.
    #[inline]
    pub fn caller(&self) -> LocalRank {
        self.caller
    }

    /// Whether the claimed rank holds it in a call of its own: not as a thief, nor in a thread of the runtime's or a
    /// signal's handler.
    #[inline]
    pub fn is_by_owner(&self) -> bool {
        self.by_owner
    }

    /// `size` bytes (16-aligned) of the rank's heap, or `None` when it cannot grow. Freed by
    /// [`Heap::free`] from any task.
    #[inline]
    pub fn alloc(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.alloc_aligned(size, ALIGN)
    }

    /// [`Claim::alloc`] with another alignment, a power of two up to a page.
    #[inline]
    pub fn alloc_aligned(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        // SAFETY: we hold the claim.
        unsafe { self.rank.heap().alloc(size, align) }
    }

    /// [`Claim::alloc_aligned`] of zero bytes, for data; of a long block nothing has been touched.
    pub fn alloc_zeroed(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        // SAFETY: we hold the claim.
        unsafe { self.rank.heap().alloc_zeroed_dense(size, align) }
    }

    /// Frees a block of the claimed rank's heap.
    ///
    /// # Safety
    /// The block came from this rank's heap and nobody uses it any more.
    #[inline]
    pub unsafe fn free_local(&mut self, block: NonNull<u8>) {
        // SAFETY: the caller's promise, and we hold the claim.
        unsafe { self.rank.heap().free_local(block) }
    }

    /// The heap of the rank.
    #[inline]
    #[must_use]
    pub fn heap(&self) -> &'rank Heap {
        self.rank.heap()
    }

    #[inline]
    fn state(&mut self) -> &mut State {
        // SAFETY: the claim excludes every other task, and `&mut self` every other borrow.
        unsafe { &mut *self.rank.state() }
    }

    /// What to do in place of just giving the claim back, from now on.
    pub fn set_at_release(&mut self, at_release: Option<AtRelease>) {
        self.state().at_release = at_release;
    }

    /// One more reason for thieves to look at this rank.
    #[inline]
    pub fn expect_more(&mut self, kind: TaskKind) {
        let rank = self.rank;
        let reasons = &mut self.state().reasons[kind.index()];
        *reasons += 1;
        if *reasons == 1 {
            rank.expected().raise(kind);
        }
    }

    /// [`Claim::expect_more`] that others may see as late as the end of this claim: no barrier, and so no wait for the
    /// line that thieves poll.
    #[inline]
    pub fn expect_more_later(&mut self, kind: TaskKind) {
        let rank = self.rank;
        let reasons = &mut self.state().reasons[kind.index()];
        *reasons += 1;
        if *reasons == 1 {
            rank.expected().raise_later(kind);
        }
    }

    /// One reason less.
    #[inline]
    pub fn expect_less(&mut self, kind: TaskKind) {
        let rank = self.rank;
        let reasons = &mut self.state().reasons[kind.index()];
        *reasons -= 1;
        if *reasons == 0 {
            rank.expected().lower(kind);
        }
    }

    /// A reason for which thieves need not look at this rank, as they find at another one what is to be done.
    #[inline]
    pub fn expect_unseen(&mut self, kind: TaskKind) {
        self.state().unseen[kind.index()] += 1;
    }

    /// One such reason less.
    #[inline]
    pub fn expect_less_unseen(&mut self, kind: TaskKind) {
        self.state().unseen[kind.index()] -= 1;
    }

    /// The first receive is posted: a reason that is not counted among those of [`Claim::expect_more`].
    #[inline]
    pub fn expect_receives(&mut self) {
        self.rank.expected().raise_receives();
    }

    /// The last one is not posted any more.
    #[inline]
    pub fn expect_no_receives(&mut self) {
        self.rank.expected().lower_receives();
    }

    /// Whether there is no reason of any kind to expect progress but posted receives, and nothing to do at its end.
    pub(super) fn is_without_reasons(&mut self) -> bool {
        let state = self.state();
        let mut reasons = state.reasons.iter().chain(&state.unseen);
        reasons.all(|&count| count == 0) && state.at_release.is_none()
    }

    /// Whether there is a reason but posted receives to expect progress of this kind.
    #[inline]
    pub fn expects(&mut self, kind: TaskKind) -> bool {
        let state = self.state();
        state.reasons[kind.index()] != 0 || state.unseen[kind.index()] != 0
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.state().at_release {
            // SAFETY: this claim ends.
            None => unsafe { self.rank.release_claim() },
            Some(at_release) => at_release(Releasing(self)),
        }
    }
}

impl<'rank> Releasing<'_, 'rank> {
    /// The claim.
    #[inline]
    pub fn claim(&mut self) -> &mut Claim<'rank> {
        self.0
    }

    /// Gives it back. Returns the rank.
    #[inline]
    pub fn release(self) -> &'rank Rank {
        self.0.rank
    }
}

impl Drop for Releasing<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: the claim ends: this value was made in its `drop`, and only here it is given back.
        unsafe { self.0.rank.release_claim() };
    }
}

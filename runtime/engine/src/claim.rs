//! The right to act for a rank.

use crate::rank::Rank;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// A held claim on `Rank`; see the module page.
#[derive(Debug)]
pub struct Claim<'rank> {
    rank: &'rank Rank,
    /// A claim stays with the task that took it.
    not_send: PhantomData<*mut ()>,
}

impl<'rank> Claim<'rank> {
    /// The claimed rank.
    #[must_use]
    pub fn rank(&self) -> &'rank Rank {
        self.rank
    }

    /// `size` bytes (16-aligned) of the rank's heap, or `None` when it cannot grow.
    pub fn alloc(&mut self, size: usize) -> Option<NonNull<u8>> {
        unimplemented!("{size}")
    }
}

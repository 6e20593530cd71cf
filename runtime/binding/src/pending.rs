//! What a rank has under way: requests, matched messages, buffered sends, and its operations.

use crate::op::UserFunction;
use crate::p2p::BufferPools;
use crate::request::State;
use cohort_engine::{Claim, MessageRef};
use cohort_object::Slots;
use core::cell::UnsafeCell;

/// What a rank has under way.
#[derive(Default)]
pub struct Pending {
    /// By index of their handle.
    pub requests: Slots<State>,
    /// By index of their handle.
    pub messages: Slots<MessageRef>,
    /// The application's reduction operations, by index of their handle.
    pub ops: Slots<UserFunction>,
    buffers: UnsafeCell<BufferPools>,
}

// SAFETY: `buffers` hands out its contents only against the rank's claim.
unsafe impl Sync for Pending {}

impl Pending {
    /// The attached buffers.
    #[allow(clippy::mut_from_ref, reason = "one claim is held at a time")]
    pub fn buffers(&self, _claim: &mut Claim<'_>) -> &mut BufferPools {
        // SAFETY: the claim is held, so no other thread is here; callers use one reference at
        // a time.
        unsafe { &mut *self.buffers.get() }
    }
}

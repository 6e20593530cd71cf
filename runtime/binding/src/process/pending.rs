//! What a rank has under way: requests, matched messages, buffered sends, and its operations.

use super::buffers::BufferPools;
use super::requests::RequestState;
use super::spares::Spares;
use cohort_engine::offload::{NoPoster, Poster};
use cohort_engine::{Claim, MessageRef, Rank};
use cohort_object::Slots;
use core::cell::{Cell, UnsafeCell};

/// What a rank has under way.
#[derive(Default)]
pub struct Pending {
    /// By index of their handle.
    pub requests: Slots<RequestState>,
    /// Of those, what waits for another receive or collective.
    pub spares: Spares,
    /// By index of their handle.
    pub messages: Slots<Matched>,
    /// The application's reduction operations, by index of their handle.
    pub ops: Slots<UserFunction>,
    buffers: UnsafeCell<BufferPools>,
    reserved: UnsafeCell<Reserved>,
}

/// A message that a matched probe has found.
pub struct Matched {
    /// The message.
    pub message: MessageRef,
    /// Neutral handle of its communicator, whose error handler hears of failures.
    pub comm: u32,
}

/// An operation that the application made. It belongs to one rank, whose programs speak one ABI,
/// so the function's type is known again where it is called.
#[derive(Clone, Debug)]
pub struct UserFunction {
    /// Its code.
    pub address: *const (),
    /// Whether it takes counts of 64 bits.
    pub large: bool,
    /// The function is Fortran's: it gets the integer of a handle. Set before the program gets the operation.
    pub fortran: Cell<bool>,
    /// Whether the order of its operands does not matter.
    pub commutes: bool,
}

// SAFETY: the address of a function of the rank's program is valid on all of the rank's tasks.
unsafe impl Send for UserFunction {}

/// Handles that a poster takes from [`Pending::requests`] at once.
const RESERVED: usize = 32;

/// Slots of requests that a poster fills.
#[derive(Default)]
struct Reserved {
    indexes: [u32; RESERVED],
    count: usize,
}

// SAFETY: `buffers` hands out its contents only against the rank's claim, `reserved` against the right to post.
unsafe impl Sync for Pending {}

impl Pending {
    /// The attached buffers.
    #[allow(clippy::mut_from_ref, reason = "one claim is held at a time")]
    pub fn buffers(&self, _claim: &mut Claim<'_>) -> &mut BufferPools {
        // SAFETY: the claim is held, so no other thread is here; callers use one reference at
        // a time.
        unsafe { &mut *self.buffers.get() }
    }

    /// Calls `look` with the neutral handle of the object whose error handler hears of each request, and of the receive
    /// of each matched message.
    pub fn each_listener(&self, rank: &Rank, look: &mut dyn FnMut(u32)) {
        let no_poster = NoPoster::of(rank);
        let claim = rank.enter();
        // SAFETY: the claim is held. Posters, who fill slots without it, are kept away.
        unsafe {
            self.requests.each(|state| {
                if !state.is_spent() {
                    look(state.comm());
                }
                true
            });
            self.messages.each(|matched| {
                look(matched.comm);
                true
            });
        }
        drop(claim);
        drop(no_poster);
    }

    /// A slot of [`Pending::requests`] for a poster, which takes the rank's claim once for many; `None` when
    /// no index is left.
    pub fn reserve_request(&self, poster: &mut Poster<'_>) -> Option<u32> {
        // SAFETY: there is one poster at a time.
        let reserved = unsafe { &mut *self.reserved.get() };
        if reserved.count == 0 {
            let claim = &mut poster.rank().enter();
            reserved.count = self.requests.reserve(claim, &mut reserved.indexes);
        }
        reserved.count = reserved.count.checked_sub(1)?;
        Some(reserved.indexes[reserved.count])
    }

    /// Gives back a slot that was not filled.
    pub fn unreserve_request(&self, _poster: &mut Poster<'_>) {
        // SAFETY: there is one poster at a time. The index is still in its place.
        unsafe { (*self.reserved.get()).count += 1 };
    }
}

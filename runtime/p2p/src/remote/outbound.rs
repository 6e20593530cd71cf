//! A send that waits for its receiver, and its stages.
//!
//! ```text
//! Held (while many are offered)
//!    ▼
//! Offered ──Done──────────────────────────► Over   (read by the receiver, or synchronous)
//!    │ ────Clear──► Streaming ⇄ Leaving ───► Over   (all packets have left)
//!    └ ────Retracted, not matched──────────► Over   (MPI_Cancel)
//! ```

use super::Remote;
use crate::operation::Operation;
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links};
use cohort_core::message::Envelope;
use cohort_core::subsystem::Mark;
use cohort_fabric::Region;
use cohort_net::link::link_to;
use cohort_net::names::{self, Name, What};
use cohort_steal::TaskKind;
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// Data packets of one message that may be on their way at a time.
const STREAM_DEPTH: u32 = 8;

/// [`Links`] of the lists of sends.
pub(super) const IN_SENDS: u8 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is not offered for now; in a list of `offers.rs`.
    Held,
    /// The receiver has not answered.
    Offered,
    /// The receiver takes the data in packets, of which more may be lined up.
    Streaming,
    /// All of these are lined up that may be for now. No turn looks at it before one of them has left.
    Leaving,
    /// The data is with the receiver, or nobody wants it.
    Over,
}

/// A send that waits for its receiver. In the list that its stage names.
#[derive(Debug)]
pub(crate) struct Outbound {
    /// Null when nobody waits for the send.
    pub(super) request: *mut Operation,
    pub(super) peer: Peer,
    pub(super) stage: Stage,
    /// Whether the receiver has been asked to forget the offer and has not answered.
    pub(super) is_retracted: bool,
    pub(super) is_cancelled: bool,
    pub(super) is_synchronous: bool,
    /// What an offer says of the message, and its number of a timeline.
    pub(super) envelope: Envelope,
    pub(super) message: u32,
    pub(super) region: Option<Region>,
    /// The data if it is one run, else null: the request has the buffer.
    pub(super) data: *const u8,
    /// A block of the heap that holds the data, if it is the engine's.
    pub(super) block: *mut u8,
    pub(super) bytes: u64,
    /// By which the receiver answers.
    pub(super) name: Name,
    /// The receiver's operation.
    pub(super) receive: Name,
    /// The part of the data that the receiver wants, and how much of it was lined up.
    pub(super) wanted: u64,
    pub(super) next: u64,
    /// Packets that have not left.
    pub(super) packets: u32,
    /// What the policy remembers of it.
    pub(super) mark: Mark,
    links: Links<Self>,
}

impl Linked<IN_SENDS> for Outbound {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

impl Outbound {
    /// A send that is offered.
    pub(super) fn make(
        claim: &mut Claim<'_>,
        request: *mut Operation,
        peer: Peer,
        data: *const u8,
        bytes: u64,
    ) -> Option<*mut Self> {
        let block = claim.alloc(size_of::<Self>())?.cast::<Self>();
        let Ok(name) = names::name(claim, What::Send, peer, block) else {
            // SAFETY: the block is fresh.
            unsafe { claim.free_local(block.cast()) };
            return None;
        };
        let outbound = Self {
            request,
            name,
            peer,
            stage: Stage::Offered,
            is_retracted: false,
            is_cancelled: false,
            is_synchronous: false,
            envelope: Envelope { context: 0, source: 0, tag: 0 },
            message: 0,
            region: None,
            data,
            block: null_mut(),
            bytes,
            receive: 0,
            wanted: 0,
            next: 0,
            packets: 0,
            mark: Mark::NONE,
            links: Links::NONE,
        };
        // SAFETY: a fresh block of the right size, in no list.
        unsafe {
            block.write(outbound);
            Self::join_offered(block, claim);
        }
        claim.expect_more(TaskKind::Net);
        Some(block.as_ptr())
    }

    /// Forgets a send that was never offered.
    ///
    /// # Safety
    /// It is the claimed rank's, and nobody has heard of it.
    pub(super) unsafe fn unmake(this: NonNull<Self>, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            Self::leave_offered(this, claim);
            names::forget(claim, this.as_ref().name);
            claim.free_local(this.cast());
        }
        claim.expect_less(TaskKind::Net);
    }

    /// Puts a send that is in no list into that of offers, and counts it.
    ///
    /// # Safety
    /// It is the claimed rank's.
    pub(super) unsafe fn join_offered(this: NonNull<Self>, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise; links belong to the claim's holder.
        unsafe {
            (*this.as_ptr()).stage = Stage::Offered;
            claim.of::<Remote>().offered.push(this.as_ptr());
            if let Ok(mut link) = link_to(claim, this.as_ref().peer) {
                link.as_mut().offered += 1;
            }
        }
    }

    /// Undoes [`Outbound::join_offered`].
    ///
    /// # Safety
    /// It is in that list of the claimed rank.
    pub(super) unsafe fn leave_offered(this: NonNull<Self>, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise; links belong to the claim's holder.
        unsafe {
            claim.of::<Remote>().offered.remove(this.as_ptr());
            if let Ok(mut link) = link_to(claim, this.as_ref().peer) {
                link.as_mut().offered -= 1;
            }
        }
    }

    /// Moves a send to another stage behind its offer, and so to another list.
    ///
    /// # Safety
    /// It is the claimed rank's and in the list of its stage, or in none if it was held.
    pub(super) unsafe fn enter(this: NonNull<Self>, claim: &mut Claim<'_>, stage: Stage) {
        // SAFETY: the caller's promise.
        unsafe {
            if (*this.as_ptr()).stage == Stage::Offered {
                Self::leave_offered(this, claim);
            }
            let state = claim.of::<Remote>();
            match (*this.as_ptr()).stage {
                Stage::Held | Stage::Offered => {}
                Stage::Streaming => state.streaming.remove(this.as_ptr()),
                Stage::Leaving => state.leaving.remove(this.as_ptr()),
                Stage::Over => state.over.remove(this.as_ptr()),
            }
            (*this.as_ptr()).stage = stage;
            match stage {
                Stage::Held | Stage::Offered => unreachable!("offers join by themselves"),
                Stage::Streaming => state.streaming.push(this.as_ptr()),
                Stage::Leaving => state.leaving.push(this.as_ptr()),
                Stage::Over => state.over.push(this.as_ptr()),
            }
        }
    }

    /// Whether more packets may be lined up.
    pub(super) fn may_go_on(&self) -> bool {
        self.next < self.wanted && self.packets < STREAM_DEPTH
    }
}

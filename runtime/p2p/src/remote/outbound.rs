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
use cohort_core::error::EngineError;
use cohort_core::list::{Linked, Links};
use cohort_core::message::Envelope;
use cohort_core::record::RecordRef;
use cohort_core::subsystem::Mark;
use cohort_fabric::Region;
use cohort_net::link::link_to;
use cohort_net::names::{self, Name, Named, What};
use cohort_steal::TaskKind;
use core::cell::Cell;
use core::ptr::null_mut;

/// Data packets of one message that may be on their way at a time.
const STREAM_DEPTH: u32 = 8;

/// [`Links`] of the lists of sends.
pub(super) const IN_SENDS: u8 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is not offered for now; in a list of `rts.rs`.
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
    /// None when nobody waits for the send.
    pub(super) request: Cell<Option<RecordRef<Operation>>>,
    pub(super) peer: Peer,
    pub(super) stage: Cell<Stage>,
    /// Whether the receiver has been asked to forget the RTS and has not answered.
    pub(super) is_retracted: Cell<bool>,
    pub(super) is_cancelled: Cell<bool>,
    /// Why it fails, if it does.
    pub(super) error: Cell<Option<EngineError>>,
    pub(super) is_synchronous: Cell<bool>,
    /// What an RTS says of the message, and its number of a timeline.
    pub(super) envelope: Cell<Envelope>,
    pub(super) message: Cell<u32>,
    pub(super) region: Cell<Option<Region>>,
    /// The data if it is one run, else null: the request has the buffer.
    pub(super) data: *const u8,
    /// A block of the heap that holds the data, if it is the engine's.
    pub(super) block: Cell<*mut u8>,
    pub(super) bytes: u64,
    /// By which the receiver answers.
    pub(super) name: Cell<Name>,
    /// The receiver's operation.
    pub(super) receive: Cell<Name>,
    /// The part of the data that the receiver wants, and how much of it was lined up.
    pub(super) wanted: Cell<u64>,
    pub(super) next: Cell<u64>,
    /// Packets that have not left.
    pub(super) packets: Cell<u32>,
    /// What the policy remembers of it.
    pub(super) mark: Cell<Mark>,
    links: Links<Self>,
}

impl Linked<IN_SENDS> for Outbound {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

// SAFETY: no other type has names of sends.
unsafe impl Named for Outbound {
    const WHAT: What = What::Send;
}

impl Outbound {
    /// A send that is offered.
    ///
    /// # Safety
    /// The data is there until the send is over; it is null only if there is a request. This is a pending send, which
    /// nobody else completes.
    pub(super) unsafe fn make(
        claim: &mut Claim<'_>,
        request: Option<RecordRef<Operation>>,
        peer: Peer,
        data: *const u8,
        bytes: u64,
    ) -> Option<RecordRef<Self>> {
        let outbound = Self {
            request: Cell::new(request),
            name: Cell::new(0),
            peer,
            stage: Cell::new(Stage::Offered),
            is_retracted: Cell::new(false),
            is_cancelled: Cell::new(false),
            error: Cell::new(None),
            is_synchronous: Cell::new(false),
            envelope: Cell::new(Envelope { context: 0, source: 0, tag: 0 }),
            message: Cell::new(0),
            region: Cell::new(None),
            data,
            block: Cell::new(null_mut()),
            bytes,
            receive: Cell::new(0),
            wanted: Cell::new(0),
            next: Cell::new(0),
            packets: Cell::new(0),
            mark: Cell::new(Mark::NONE),
            links: Links::none(),
        };
        let this = RecordRef::make(claim, outbound)?;
        let Ok(name) = names::name(claim, peer, this) else {
            // SAFETY: nobody knows it.
            unsafe { this.free(claim) };
            return None;
        };
        this.name.set(name);
        Self::join_offered(this, claim);
        claim.expect_more(TaskKind::Net);
        Some(this)
    }

    /// Forgets a send that was never offered.
    ///
    /// # Safety
    /// It is the claimed rank's, and nobody has heard of it.
    pub(super) unsafe fn unmake(this: RecordRef<Self>, claim: &mut Claim<'_>) {
        Self::leave_offered(this, claim);
        names::forget(claim, this.name.get());
        // SAFETY: it has no name any more, and is in no list.
        unsafe { this.free(claim) };
        claim.expect_less(TaskKind::Net);
    }

    /// Puts a send of the claimed rank that is in no list into that of RTS messages, and counts it.
    pub(super) fn join_offered(this: RecordRef<Self>, claim: &mut Claim<'_>) {
        this.stage.set(Stage::Offered);
        claim.of::<Remote>().offered.push(this);
        if let Ok(link) = link_to(claim, this.peer) {
            link.offered.set(link.offered.get() + 1);
        }
    }

    /// Undoes [`Outbound::join_offered`].
    pub(super) fn leave_offered(this: RecordRef<Self>, claim: &mut Claim<'_>) {
        claim.of::<Remote>().offered.remove(this);
        if let Ok(link) = link_to(claim, this.peer) {
            link.offered.set(link.offered.get() - 1);
        }
    }

    /// Moves a send of the claimed rank to another stage behind its RTS, and so to another list. It is in the list of
    /// its stage, or in none if it was held.
    pub(super) fn enter(this: RecordRef<Self>, claim: &mut Claim<'_>, stage: Stage) {
        if this.stage.get() == Stage::Offered {
            Self::leave_offered(this, claim);
        }
        let state = claim.of::<Remote>();
        match this.stage.get() {
            Stage::Held | Stage::Offered => {}
            Stage::Streaming => state.streaming.remove(this),
            Stage::Leaving => state.leaving.remove(this),
            Stage::Over => state.over.remove(this),
        }
        this.stage.set(stage);
        match stage {
            Stage::Held | Stage::Offered => unreachable!("offers join by themselves"),
            Stage::Streaming => state.streaming.push(this),
            Stage::Leaving => state.leaving.push(this),
            Stage::Over => state.over.push(this),
        }
    }

    /// Whether more packets may be lined up.
    pub(super) fn may_go_on(&self) -> bool {
        self.next.get() < self.wanted.get() && self.packets.get() < STREAM_DEPTH
    }
}

//! Sends and receives that are under way: requests of this subsystem.

use crate::P2p;
use crate::matching::Want;
use crate::protocol::job::Job;
use crate::remote;
use crate::state::unpost_receive;
use cohort_alloc::Heap;
use cohort_base::sync::atomic::AtomicPtr;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links};
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::request::{Request, RequestKind, RequestRef};
use cohort_core::subsystem::{Mark, Subsystem};
use cohort_datatype::{Buffer, OwnedBuffer};
use core::ptr::{NonNull, null_mut};

/// [`Links`] of the queue of posted receives.
pub(crate) const IN_POSTED: u8 = 0;
/// [`Links`] of the owner's list of sends that are offered.
pub(crate) const IN_OFFERS: u8 = 1;

/// What an operation is.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// A receive.
    Receive,
    /// A send that its receiver copies from the sender's buffer.
    Offer,
    /// A send to another node.
    Remote,
}

impl RequestKind for Kind {
    fn subsystem(&self) -> Option<usize> {
        Some(P2p::SLOT)
    }

    unsafe fn leave(&self, request: NonNull<Request>, claim: &mut Claim<'_>) {
        let this = request.as_ptr().cast::<Operation>();
        // SAFETY: requests of this kind begin an operation.
        unsafe {
            if (*this).is_offered {
                Operation::leave_offers(this, claim);
            }
        }
    }

    unsafe fn cancel(&self, request: NonNull<Request>, claim: &mut Claim<'_>) {
        let this = request.as_ptr().cast::<Operation>();
        // SAFETY: as above.
        unsafe {
            match self {
                Self::Receive if (*this).is_posted => {
                    unpost_receive(claim, this);
                    let cancelled = Status {
                        cancelled: true,
                        ..Status::EMPTY
                    };
                    Operation::complete(this, cancelled);
                }
                Self::Receive => {}
                // One that is in the owner's list no more is complete.
                Self::Offer => {
                    let _ = (*this).is_offered && (*this).request.withdraw();
                }
                Self::Remote => remote::cancel(claim, this),
            }
        }
    }

    unsafe fn end(&self, request: NonNull<Request>, _claim: &mut Claim<'_>) -> bool {
        let this = request.as_ptr().cast::<Operation>();
        // SAFETY: as above; nobody else uses it, unless its offer is on its way.
        unsafe {
            if let Some(job) = NonNull::new(*(*this).job.get_mut()) {
                Job::release(job);
            }
            let is_ours = !request.as_ref().leave_to_receiver();
            if is_ours {
                this.drop_in_place();
            }
            is_ours
        }
    }
}

/// A send or a receive. Its request is the first field, so that the address of one is that of the other.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Operation {
    pub(crate) request: Request,
    /// Whether it is in the queue of posted receives.
    pub is_posted: bool,
    /// Whether it is in the list of sends that are offered.
    is_offered: bool,
    /// Whether, and how, the policy watches for this receive's message; it is posted then.
    pub mark: Mark,
    /// What a receive takes.
    pub want: Want,
    pub(crate) sequence: u64,
    /// The copy job of a matched rendezvous send: the sender's reference to it.
    pub(crate) job: AtomicPtr<Job>,
    buffer: OwnedBuffer,
    posted_links: Links<Self>,
    offered_links: Links<Self>,
}

impl Linked<IN_POSTED> for Operation {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).posted_links }
    }
}

impl Linked<IN_OFFERS> for Operation {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).offered_links }
    }
}

impl Operation {
    /// A pending operation on `buffer`; `None` when memory is short.
    #[inline]
    pub(crate) fn make(
        claim: &mut Claim<'_>,
        kind: &'static Kind,
        buffer: Buffer<'_>,
        want: Want,
    ) -> Option<NonNull<Self>> {
        let block = Self::room(claim)?;
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { block.write(Self::new(claim.rank(), kind, buffer, want)) };
        Some(block)
    }

    /// Room for an operation of the claimed rank; `None` when memory is short.
    #[inline]
    pub fn room(claim: &mut Claim<'_>) -> Option<NonNull<Self>> {
        let block = claim.alloc_aligned(size_of::<Self>(), align_of::<Self>())?;
        Some(block.cast())
    }

    /// A pending operation of `owner`, to be written into its heap.
    #[inline]
    pub fn new(owner: &Rank, kind: &'static Kind, buffer: Buffer<'_>, want: Want) -> Self {
        Self {
            request: Request::new(owner, kind),
            is_posted: false,
            is_offered: false,
            mark: Mark::NONE,
            want,
            sequence: 0,
            job: AtomicPtr::new(null_mut()),
            buffer: buffer.to_owned(),
            posted_links: Links::NONE,
            offered_links: Links::NONE,
        }
    }

    /// The operation of a request, if it is one.
    #[inline]
    pub fn of(request: &RequestRef) -> Option<NonNull<Self>> {
        let request = NonNull::new(request.as_ptr())?;
        // SAFETY: the reference is not released.
        let kind = unsafe { request.as_ref() }.kind();
        (kind.subsystem() == Some(P2p::SLOT)).then(|| request.cast())
    }

    /// What the layers above hold of it.
    ///
    /// # Safety
    /// It is not released, and of all that are made of it one at the most is released.
    #[inline]
    pub unsafe fn handle(this: NonNull<Self>) -> RequestRef {
        // SAFETY: the caller gives the same promise.
        unsafe { RequestRef::new(this.cast()) }
    }

    /// The user's buffer.
    #[inline]
    pub fn buffer(&self) -> Buffer<'_> {
        self.buffer.as_buffer()
    }

    /// Receiver: drops the offer of a withdrawn send.
    ///
    /// # Safety
    /// `this` is withdrawn, and the offer is not used any more.
    pub(crate) unsafe fn drop_offer(this: *mut Self) {
        // SAFETY: the operation lives until both the offer and the handle are gone.
        unsafe {
            if (*this).request.drop_offer() {
                this.drop_in_place();
                Heap::free(NonNull::new_unchecked(this.cast()));
            }
        }
    }

    /// [`Request::complete`]
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub unsafe fn complete(this: *mut Self, status: Status) {
        // SAFETY: the caller's promise.
        unsafe { Request::complete(this.cast(), status) };
    }

    /// [`Request::complete_quietly`]
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(crate) unsafe fn complete_quietly(this: *mut Self, status: Status) {
        // SAFETY: the caller's promise.
        unsafe { Request::complete_quietly(this.cast(), status) };
    }

    /// Puts a rendezvous send into its owner's list.
    ///
    /// # Safety
    /// It is the claimed rank's and not in that list.
    pub(crate) unsafe fn join_offers(this: *mut Self, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            (*this).is_offered = true;
            claim.of::<P2p>().offers.push(this);
        }
    }

    /// Takes a rendezvous send out of its owner's list.
    ///
    /// # Safety
    /// It is in that list of the claimed rank.
    pub(crate) unsafe fn leave_offers(this: *mut Self, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            (*this).is_offered = false;
            claim.of::<P2p>().offers.remove(this);
        }
    }
}

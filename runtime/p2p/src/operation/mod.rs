//! Sends and receives that are under way: requests of this subsystem.

mod job;
mod mend;
mod side;

pub(crate) use job::{IN_JOBS, Job, JobRef, Mends, MendsOf};
pub(crate) use mend::Mend;
pub(crate) use side::Side;

use crate::found::Found;
use crate::relay::Relay;
use crate::want::Want;
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use cohort_core::claim::Claim;
use cohort_core::guard::guarded;
use cohort_core::list::{Linked, Links};
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::request::{Request, RequestRef};
use cohort_core::subsystem::Mark;
use cohort_datatype::{Buffer, OwnedBuffer};
use core::ptr::{NonNull, null_mut};

/// [`Links`] of the queue of posted receives.
pub(crate) const IN_POSTED: u8 = 0;
/// [`Links`] of the owner's list of sends that are offered.
pub(crate) const IN_OFFERS: u8 = 1;

/// The place of the subsystem whose requests these are ([`cohort_core::Subsystem::SLOT`]).
pub(crate) const SLOT: usize = 1;

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

/// A send or a receive. Its request is the first field, so that the address of one is that of the other.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Operation {
    pub(crate) request: Request,
    /// Whether it is in the queue of posted receives.
    pub is_posted: bool,
    /// Whether it is in the list of sends that are offered.
    pub(crate) is_offered: bool,
    /// Whether, and how, the policy watches for this receive's message; it is posted then.
    pub mark: Mark,
    /// What a receive takes.
    pub want: Want,
    pub(crate) sequence: u64,
    /// The copy job of a matched rendezvous send: the sender's reference to it.
    pub(crate) job: AtomicPtr<Job>,
    /// A [`Found`], for the sender.
    found: AtomicU8,
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
        let new = Self::new(claim.rank(), kind, buffer, want);
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { block.write(new) };
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
        let buffer = buffer.to_owned();
        let is_plain = *kind == Kind::Receive && buffer.datatype().is_static();
        Self {
            request: Request::new(owner, kind).plain(is_plain),
            is_posted: false,
            is_offered: false,
            mark: Mark::NONE,
            want,
            sequence: 0,
            job: AtomicPtr::new(null_mut()),
            found: AtomicU8::new(Found::Nothing as u8),
            buffer,
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
        (kind.subsystem() == Some(SLOT)).then(|| request.cast())
    }

    /// Makes of a spent receive a pending one.
    ///
    /// # Safety
    /// `this` is the record of a plain receive of the claimed rank that is spent, and so is in no list; `datatype`
    /// is predefined.
    #[inline(always)]
    pub(crate) unsafe fn renew(this: *mut Self, buffer: OwnedBuffer, want: Want) {
        debug_assert!(buffer.datatype().is_static());
        // SAFETY: the caller's promise. The type before was predefined too, so no reference is lost.
        unsafe {
            (&raw mut (*this).buffer).write(buffer);
            (*this).want = want;
            (*this).request.renew();
        }
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

    /// Receiver: what it has found out about the data of a send that it has taken.
    pub(crate) fn tell_sender(&self, found: Found) {
        // Relaxed: a hint.
        self.found.store(found as u8, Ordering::Relaxed);
    }

    /// Sender: what the receiver has found out about the data.
    pub(crate) fn found(&self) -> Found {
        match self.found.load(Ordering::Relaxed) {
            0 => Found::Nothing,
            1 => Found::AsItWas,
            _ => Found::Written,
        }
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
}

/// Payload of a message that the sender keeps in its buffer until the receiver has copied it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The sender's request, valid until it is completed or its offer dropped.
    pub(crate) request: *mut Operation,
    pub(crate) bytes: u64,
    /// The data if it is one run, else null: the request has the buffer.
    pub(crate) data: *const u8,
    /// What the data passes through while the sender is in a call, or null.
    pub(crate) relay: *mut Relay,
}

/// Copies bytes `[from, to)` of the offered message into the buffer of `receive`.
///
/// # Safety
/// The offer was taken for `receive` and neither request is complete.
pub(crate) unsafe fn copy_range(offer: &Offer, receive: *mut Operation, from: u64, to: u64) {
    // SAFETY: the requests keep their datatypes and their owners keep the buffers until
    // completion; MPI forbids that they overlap.
    unsafe {
        let destination = (*receive).buffer();
        if !offer.data.is_null() {
            cohort_datatype::unpack(destination, from, offer.data.add(from as usize), to - from);
        } else {
            cohort_datatype::copy(destination, (*offer.request).buffer(), from, to);
        }
    }
}

/// [`copy_range`], unless memory of one of the two may not be accessed by everybody: the `Err` says whose.
///
/// # Safety
/// As there.
pub(crate) unsafe fn copy_guarded(offer: &Offer, receive: *mut Operation, from: u64, to: u64) -> Result<(), Side> {
    // SAFETY: the caller's promise; the function only copies.
    let copied = unsafe { guarded(|| copy_range(offer, receive, from, to)) };
    // SAFETY: the caller's promise.
    copied.map_err(|fault| Side::of(fault, unsafe { (*receive).buffer().base() }))
}

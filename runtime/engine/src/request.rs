//! Requests: operations that are under way.
//!
//! A request lives in the heap of the rank that made it, its *owner*, and is made and released
//! under the owner's claim. Its state moves once to an end state:
//!
//! | state | of | meaning | next |
//! |---|---|---|---|
//! | `PENDING` | all | not matched | `MATCHED`, `CANCELLED`, `COMPLETE` |
//! | `MATCHED` | rendezvous send | a receiver took the offer and will complete it | `COMPLETE` |
//! | `COMPLETE` | all | the status is valid; the owner may free the request | end |
//! | `CANCELLED` | rendezvous send, posted receive | the owner withdrew it; a send's offer is still on its way | `WITHDRAWN`, `RELEASED` |
//! | `WITHDRAWN` | rendezvous send | cancelled, and the offer was dropped by the receiver | end |
//! | `RELEASED` | rendezvous send | cancelled and released; whoever drops the offer frees it | end |
//!
//! Whoever completes a request writes the status first and `COMPLETE` last (release), and does not
//! touch the request again.

use crate::claim::Claim;
use crate::coll::schedule::{self, Membership};
use crate::datatype::{Layout, TypeRef};
use crate::list::{Linked, Links};
use crate::matching::Want;
use crate::message::Status;
use crate::protocol::job::Job;
use crate::rank::Rank;
use crate::watch::Watch;
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};

const PENDING: u32 = 0;
const MATCHED: u32 = 1;
const COMPLETE: u32 = 2;
const CANCELLED: u32 = 3;
const WITHDRAWN: u32 = 4;
const RELEASED: u32 = 5;

/// [`Links`] of the posted queue.
pub(crate) const IN_POSTED: u8 = 0;
/// [`Links`] of the owner's list of rendezvous sends, or of its released requests.
pub(crate) const IN_OWNED: u8 = 1;

/// Which list of the owner a request is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owned {
    /// None.
    No,
    /// None, and the request is never freed.
    Permanent,
    /// Rendezvous sends that are not complete.
    Offers,
    /// Nonblocking collectives with steps left.
    Schedules,
    /// None: the network's part of the engine knows a send that is not complete.
    Net,
    /// Released before they were complete.
    Released,
}

/// A request. The layers above see only [`RequestRef`].
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Request {
    state: AtomicU32,
    /// Whether it is in the queue of posted receives.
    pub(crate) is_posted: bool,
    pub(crate) owned: Owned,
    /// Whether the policy watches for this receive's message; it is posted then.
    pub(crate) watch: Watch,
    status: UnsafeCell<Status>,
    /// The copy job of a matched rendezvous send: the sender's reference to it.
    pub(crate) job: AtomicPtr<Job>,
    /// Of a nonblocking collective: the request's reference to its schedule.
    pub(crate) membership: Option<Membership>,
    owner: *const Rank,
    pub(crate) want: Want,
    pub(crate) sequence: u64,
    buffer: *mut u8,
    count: u64,
    datatype: Option<TypeRef>,
    posted_links: Links<Self>,
    owned_links: Links<Self>,
}

impl Linked<IN_POSTED> for Request {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).posted_links }
    }
}

impl Linked<IN_OWNED> for Request {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).owned_links }
    }
}

/// The buffer of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Buffer<'a> {
    pub(crate) base: *mut u8,
    pub(crate) count: u64,
    pub(crate) datatype: &'a TypeRef,
}

impl<'a> Buffer<'a> {
    #[inline]
    pub(crate) fn layout(&self) -> Layout<'a> {
        Layout::new(self.base, self.count, self.datatype)
    }
}

impl Request {
    /// A pending request for `buffer`; `None` when memory is short.
    #[inline]
    pub(crate) fn make(
        claim: &mut Claim<'_>,
        buffer: Option<Buffer<'_>>,
        want: Want,
    ) -> Option<NonNull<Self>> {
        let block = Self::room(claim)?;
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { block.write(Self::new(claim.rank(), buffer, want)) };
        Some(block)
    }

    /// Room for a request of the claimed rank; `None` when memory is short.
    #[inline]
    pub(crate) fn room(claim: &mut Claim<'_>) -> Option<NonNull<Self>> {
        let block = claim.alloc_aligned(size_of::<Self>(), align_of::<Self>())?;
        Some(block.cast())
    }

    /// A pending request of `owner`, to be written into its heap.
    #[inline]
    pub(crate) fn new(owner: &Rank, buffer: Option<Buffer<'_>>, want: Want) -> Self {
        let (base, count) = buffer.map_or((null_mut(), 0), |it| (it.base, it.count));
        Self {
            state: AtomicU32::new(PENDING),
            is_posted: false,
            owned: Owned::No,
            watch: Watch::No,
            status: UnsafeCell::new(Status::EMPTY),
            job: AtomicPtr::new(null_mut()),
            membership: None,
            owner,
            want,
            sequence: 0,
            buffer: base,
            count,
            datatype: buffer.map(|it| it.datatype.clone()),
            posted_links: Links::NONE,
            owned_links: Links::NONE,
        }
    }

    /// The user's buffer; empty for a request without one.
    #[inline]
    pub(crate) fn layout(&self) -> Option<Layout<'_>> {
        let datatype = self.datatype.as_ref()?;
        Some(Layout::new(self.buffer, self.count, datatype))
    }

    /// Whether this is a rendezvous send that is not known to be complete.
    pub(crate) fn is_offer(&self) -> bool {
        self.owned == Owned::Offers
    }

    /// A complete send without a buffer, which every eager send of a rank gives out.
    pub(crate) const fn sent() -> Self {
        Self {
            state: AtomicU32::new(COMPLETE),
            is_posted: false,
            owned: Owned::Permanent,
            watch: Watch::No,
            status: UnsafeCell::new(Status::EMPTY),
            job: AtomicPtr::new(null_mut()),
            membership: None,
            owner: core::ptr::null(),
            want: Want::NOTHING,
            sequence: 0,
            buffer: null_mut(),
            count: 0,
            datatype: None,
            posted_links: Links::NONE,
            owned_links: Links::NONE,
        }
    }

    /// The rank that made the request.
    pub(crate) fn owner(&self) -> &Rank {
        // SAFETY: ranks are never unmade.
        unsafe { &*self.owner }
    }

    /// Takes a rendezvous send for a receive; `false` when the sender has withdrawn it.
    pub(crate) fn take_offer(&self) -> bool {
        // Acquire: the buffer was written before the offer; AcqRel orders against `withdraw`.
        self.state
            .compare_exchange(PENDING, MATCHED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Whether the sender has withdrawn this rendezvous send.
    pub(crate) fn is_withdrawn(&self) -> bool {
        // Relaxed: a hint; `take_offer` or `drop_offer` decides.
        matches!(self.state.load(Ordering::Relaxed), CANCELLED | RELEASED)
    }

    /// Sender: withdraws a rendezvous send, unless a receiver has taken it.
    pub(crate) fn withdraw(&self) -> bool {
        // Orders against `take_offer`: one of the two swaps fails.
        self.state
            .compare_exchange(PENDING, CANCELLED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Receiver: drops the offer of a withdrawn send.
    ///
    /// # Safety
    /// `this` is withdrawn, and the offer is not used any more.
    pub(crate) unsafe fn drop_offer(this: *mut Self) {
        // SAFETY: the request lives until both the offer and the handle are gone.
        unsafe {
            let swapped = (*this).state.compare_exchange(
                CANCELLED,
                WITHDRAWN,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if swapped == Err(RELEASED) {
                this.drop_in_place();
                Heap::free(NonNull::new_unchecked(this.cast()));
            }
        }
    }

    /// Completes a request that only the caller works on: status first, state last. Wakes its
    /// owner.
    ///
    /// # Safety
    /// `this` is a valid request that is not complete; nobody else completes it. It may be gone
    /// when this returns.
    #[inline]
    pub(crate) unsafe fn complete(this: *mut Self, status: Status) {
        // SAFETY: the caller's promise; the owner outlives its requests.
        unsafe {
            let owner = &*(*this).owner;
            Self::complete_quietly(this, status);
            if !owner.wake() {
                owner.ring();
            }
        }
    }

    /// [`Request::complete`] for an owner that is not waiting.
    ///
    /// # Safety
    /// As for [`Request::complete`].
    #[inline]
    pub(crate) unsafe fn complete_quietly(this: *mut Self, status: Status) {
        // SAFETY: the caller's promise.
        unsafe {
            *(*this).status.get() = status;
            // Release pairs with the Acquire in `is_complete`.
            (*this).state.store(COMPLETE, Ordering::Release);
        }
    }

    /// Takes a rendezvous send out of its owner's list.
    ///
    /// # Safety
    /// It is in that list of the claimed rank.
    pub(crate) unsafe fn leave_offers(this: *mut Self, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            (*this).owned = Owned::No;
            claim.state().offers.remove(this);
        }
    }

    /// Frees a request whose handle is gone.
    ///
    /// # Safety
    /// It is the claimed rank's, complete, and in no list.
    unsafe fn free(this: *mut Self, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(job) = NonNull::new(*(*this).job.get_mut()) {
                Job::release(job);
            }
            if let Some(membership) = (*this).membership {
                membership.end();
            }
            // Acquire: if the offer was dropped, its receiver is done with the request.
            let state = (*this).state.load(Ordering::Acquire);
            let still_offered = state == CANCELLED
                && (*this)
                    .state
                    .compare_exchange(CANCELLED, RELEASED, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok();
            if !still_offered {
                this.drop_in_place();
                claim.free_local(NonNull::new_unchecked(this.cast()));
            }
        }
    }
}

/// A reference to a request. Copies refer to the same one; whoever holds the last use of it
/// calls [`RequestRef::release`] once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct RequestRef(pub(crate) NonNull<Request>);

// SAFETY: the parts of a request that others touch are atomic or published by its state.
unsafe impl Send for RequestRef {}
// SAFETY: as above.
unsafe impl Sync for RequestRef {}

impl RequestRef {
    /// A request that is complete from the start, with this status; `None` when memory is short.
    pub fn completed(claim: &mut Claim<'_>, status: Status) -> Option<Self> {
        let request = Request::make(claim, None, Want::NOTHING)?;
        // SAFETY: nobody else knows it.
        unsafe { Request::complete_quietly(request.as_ptr(), status) };
        Some(Self(request))
    }

    fn get(&self) -> &Request {
        // SAFETY: a reference is used only before `release`.
        unsafe { self.0.as_ref() }
    }

    /// Whether this is the request of all eager sends of a rank: complete, with an empty status,
    /// and releasing it does nothing.
    #[inline]
    #[must_use]
    pub fn is_shared(self) -> bool {
        self.get().owned == Owned::Permanent
    }

    /// Whether the operation is complete; what it wrote is then visible (acquire).
    #[inline]
    #[must_use]
    pub fn is_complete(self) -> bool {
        // Acquire pairs with the Release in `complete_quietly`.
        !matches!(self.get().state.load(Ordering::Acquire), PENDING | MATCHED)
    }

    /// The outcome of a complete request.
    #[inline]
    #[must_use]
    pub fn status(self) -> Status {
        debug_assert!(self.is_complete());
        match self.get().state.load(Ordering::Acquire) {
            // SAFETY: published by the state, and never written again.
            COMPLETE => unsafe { *self.get().status.get() },
            _ => Status {
                cancelled: true,
                ..Status::EMPTY
            },
        }
    }

    /// Gives the request back. One that is not complete goes on and is freed
    /// on completion (`MPI_Request_free`).
    #[inline]
    pub fn release(self, claim: &mut Claim<'_>) {
        let request = self.0.as_ptr();
        // SAFETY: the request is the claimed rank's and in the list that `owned` names.
        unsafe {
            if (*request).owned == Owned::Permanent {
                return;
            }
            debug_assert!(core::ptr::eq((*request).owner, claim.rank()));
            match (*request).owned {
                Owned::Offers => Request::leave_offers(request, claim),
                Owned::Schedules => schedule::delist(claim, request),
                _ => {}
            }
            if self.is_complete() {
                Request::free(request, claim);
            } else {
                (*request).owned = Owned::Released;
                claim.state().released.push(request);
            }
        }
    }

    /// The request's address, to keep in a handle.
    #[must_use]
    pub fn as_ptr(self) -> *mut Request {
        self.0.as_ptr()
    }

    /// The inverse of [`RequestRef::as_ptr`]; `None` for null.
    ///
    /// # Safety
    /// `pointer` came from `as_ptr` of a request that was not released since.
    #[must_use]
    pub unsafe fn from_ptr(pointer: *mut Request) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }
}

/// Frees the claimed rank's requests that were released early and are complete now.
pub(crate) fn free_released(claim: &mut Claim<'_>) {
    let mut request = claim.state().released.first();
    while !request.is_null() {
        // SAFETY: elements of the list are valid requests of this rank; the next one is
        // taken before this one is freed.
        unsafe {
            let next = claim.state().released.next(request);
            if RequestRef(NonNull::new_unchecked(request)).is_complete() {
                claim.state().released.remove(request);
                Request::free(request, claim);
            }
            request = next;
        }
    }
}

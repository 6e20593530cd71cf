//! Sends and receives that are under way: requests of this subsystem.

mod job;
mod retry;
mod side;

pub(crate) use job::{CopyJob, IN_JOBS, JobRef, Retries, RetriesOf};
pub(crate) use retry::Retry;
pub(crate) use side::Side;

use crate::pipeline::Pipeline;
use crate::reuse::Reuse;
use crate::want::Want;
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use cohort_core::claim::Claim;
use cohort_core::guard::guarded;
use cohort_core::list::{Linked, Links};
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::{Request, RequestRef};
use cohort_core::subsystem::Mark;
use cohort_datatype::{Buffer, OwnedBuffer};
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};

/// [`Links`] of the queue of posted receives.
pub(crate) const IN_POSTED: u8 = 0;
/// [`Links`] of the owner's list of sends that are offered.
pub(crate) const IN_OFFERED: u8 = 1;

/// The place of the subsystem whose requests these are ([`cohort_core::Subsystem::SLOT`]).
pub(crate) const SLOT: usize = 1;

/// What an operation is.
#[derive(Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A receive.
    Receive,
    /// A send that its receiver copies from the sender's buffer.
    Rts,
    /// A send to another node.
    Remote,
}

/// A send or a receive. Its request is the first field, so that the address of one is that of the other.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Operation {
    pub(crate) request: Request,
    /// Whether it is in the queue of posted receives.
    pub is_posted: Cell<bool>,
    /// Whether it is in the list of sends that are offered.
    pub(crate) is_offered: Cell<bool>,
    /// Whether, and how, the policy watches for this receive's message; it is posted then.
    pub mark: Cell<Mark>,
    /// What a receive takes.
    pub want: Want,
    pub(crate) sequence: Cell<u64>,
    /// The copy job of a matched rendezvous send: the sender's reference to it.
    pub(crate) job: AtomicPtr<CopyJob>,
    /// Whether it is lent, and its sender has not looked yet what has become of it. Under the owner's claim.
    pub(crate) is_lent: Cell<bool>,
    /// The sender's copy of the data of a lent one; published by the request's state.
    pub(crate) copy: AtomicPtr<u8>,
    buffer: OwnedBuffer,
    posted_links: Links<Self>,
    offered_links: Links<Self>,
    /// A [`Reuse`], for the sender. Behind the lines that its receiver reads.
    found: AtomicU8,
}

impl Linked<IN_POSTED> for Operation {
    fn links(&self) -> &Links<Self> {
        &self.posted_links
    }
}

impl Linked<IN_OFFERED> for Operation {
    fn links(&self) -> &Links<Self> {
        &self.offered_links
    }
}

impl Operation {
    /// A pending operation on `buffer`; `None` when memory is short.
    #[inline]
    pub(crate) fn make(
        claim: &mut Claim<'_>,
        kind: &'static OperationKind,
        buffer: Buffer<'_>,
        want: Want,
    ) -> Option<RecordRef<Self>> {
        let block = Self::room(claim)?;
        let new = Self::new(claim.rank(), kind, buffer, want);
        // SAFETY: a fresh block of the right size and alignment. The request's end frees it.
        unsafe {
            block.write(new);
            Some(RecordRef::new(block))
        }
    }

    /// Room for an operation of the claimed rank; `None` when memory is short.
    #[inline]
    pub fn room(claim: &mut Claim<'_>) -> Option<NonNull<Self>> {
        let block = claim.alloc_aligned(size_of::<Self>(), align_of::<Self>())?;
        Some(block.cast())
    }

    /// A pending operation of `owner`, to be written into its heap.
    #[inline]
    pub fn new(owner: &Rank, kind: &'static OperationKind, buffer: Buffer<'_>, want: Want) -> Self {
        let buffer = buffer.to_owned();
        let is_plain = *kind == OperationKind::Receive && buffer.datatype().is_static();
        Self {
            request: Request::new(owner, kind).plain(is_plain),
            is_posted: Cell::new(false),
            is_offered: Cell::new(false),
            mark: Cell::new(Mark::NONE),
            want,
            sequence: Cell::new(0),
            job: AtomicPtr::new(null_mut()),
            is_lent: Cell::new(false),
            copy: AtomicPtr::new(null_mut()),
            buffer,
            posted_links: Links::none(),
            offered_links: Links::none(),
            found: AtomicU8::new(Reuse::Nothing as u8),
        }
    }

    /// The operation of a request, if it is one.
    #[inline]
    pub fn of(request: &RequestRef) -> Option<&Self> {
        // SAFETY: the reference is not released, and requests of this subsystem begin an operation.
        (request.kind().subsystem() == Some(SLOT)).then(|| unsafe { &*request.as_ptr().cast() })
    }

    /// Makes of a spent receive a pending one.
    ///
    /// # Safety
    /// `this` is the record of a plain receive of the claimed rank that is spent, and so is in no list and used by
    /// nobody else; `datatype` is predefined.
    #[inline(always)]
    pub(crate) unsafe fn renew(this: RecordRef<Self>, buffer: OwnedBuffer, want: Want) {
        debug_assert!(buffer.datatype().is_static());
        // SAFETY: the caller's promise. The type before was predefined too, so no reference is lost.
        unsafe {
            (&raw mut (*this.as_ptr()).buffer).write(buffer);
            (*this.as_ptr()).want = want;
        }
        this.request.renew();
    }

    /// What the layers above hold of it.
    ///
    /// # Safety
    /// It is not released, and of all that are made of it one at the most is released.
    #[inline]
    pub unsafe fn handle(this: RecordRef<Self>) -> RequestRef {
        // SAFETY: the caller gives the same promise.
        unsafe { RequestRef::new(this.as_non_null().cast()) }
    }

    /// Its request.
    #[inline]
    pub(crate) fn request(this: RecordRef<Self>) -> RecordRef<Request> {
        // SAFETY: it is the first field, and there as long as the operation is.
        unsafe { RecordRef::new(this.as_non_null().cast()) }
    }

    /// The user's buffer.
    #[inline]
    pub fn buffer(&self) -> Buffer<'_> {
        self.buffer.as_buffer()
    }

    /// Receiver: what it has found out about the data of a send that it has taken.
    pub(crate) fn tell_sender(&self, found: Reuse) {
        // Relaxed: a hint.
        self.found.store(found as u8, Ordering::Relaxed);
    }

    /// Sender: what the receiver has found out about the data.
    pub(crate) fn found(&self) -> Reuse {
        match self.found.load(Ordering::Relaxed) {
            0 => Reuse::Nothing,
            1 => Reuse::AsItWas,
            2 => Reuse::Written,
            _ => Reuse::Near,
        }
    }

    /// Receiver: reads a line of a send that it has taken, which its sender has written last.
    pub(crate) fn look_at_line(&self) {
        const { assert!(core::mem::offset_of!(Self, found) >= 128, "the first two lines come together") };
        core::hint::black_box(self.found.load(Ordering::Relaxed));
    }

    /// Receiver: drops the RTS of a withdrawn send.
    ///
    /// # Safety
    /// `this` is withdrawn, and the RTS is not used any more.
    pub(crate) unsafe fn drop_rts(this: RecordRef<Self>) {
        if this.request.drop_rts() {
            // SAFETY: both the RTS and the handle are gone.
            unsafe { Self::free(this) };
        }
    }

    /// Receiver: takes over the copy of a send that its sender has buffered.
    ///
    /// # Safety
    /// `this` was taken and is buffered, and the RTS is not used any more.
    pub(crate) unsafe fn take_copy(this: RecordRef<Self>) -> *mut u8 {
        // Relaxed: published by the request's state.
        let copy = this.copy.load(Ordering::Relaxed);
        if this.request.drop_buffered() {
            // SAFETY: as in `drop_rts`.
            unsafe { Self::free(this) };
        }
        copy
    }

    /// # Safety
    /// Nobody knows it any more.
    unsafe fn free(this: RecordRef<Self>) {
        // SAFETY: the caller's promise; the block came from a rank's heap.
        unsafe {
            this.as_ptr().drop_in_place();
            Heap::free(this.as_non_null().cast());
        }
    }

    /// [`Request::complete`]
    ///
    /// # Safety
    /// As there. From then on nobody but the owner uses `this`, nor its buffer.
    #[inline]
    pub unsafe fn complete(this: RecordRef<Self>, status: Status) {
        // SAFETY: the caller's promise.
        unsafe { Request::complete(this.as_ptr().cast(), status) };
    }

    /// [`Request::complete_quietly`]
    ///
    /// # Safety
    /// As for [`Operation::complete`].
    #[inline]
    pub(crate) unsafe fn complete_quietly(this: RecordRef<Self>, status: Status) {
        // SAFETY: the caller's promise.
        unsafe { Request::complete_quietly(this.as_ptr().cast(), status) };
    }
}

/// Payload of a message that the sender keeps in its buffer until the receiver has copied it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rts {
    /// The sender's request, valid until it is completed or its RTS dropped; none if the data is in a block that goes
    /// with the message.
    pub(crate) request: Option<RecordRef<Operation>>,
    pub(crate) bytes: u64,
    /// The data if it is one run, else null: the request has the buffer.
    pub(crate) data: *const u8,
    /// What the data passes through while the sender is in a call, if through anything.
    pub(crate) pipeline: Option<RecordRef<Pipeline>>,
}

impl Rts {
    /// One of so many bytes.
    ///
    /// # Safety
    /// `data`, if it is not null, are as many bytes, which may be read until the operation of the RTS is complete; it
    /// is null only if there is a request.
    pub(crate) unsafe fn new(
        request: Option<RecordRef<Operation>>,
        bytes: u64,
        data: *const u8,
        pipeline: Option<RecordRef<Pipeline>>,
    ) -> Self {
        Self { request, bytes, data, pipeline }
    }
}

/// Copies bytes `[from, to)` of the offered message into the buffer of `receive`, for which it was taken.
pub(crate) fn copy_range(rts: &Rts, receive: &Operation, from: u64, to: u64) {
    let destination = receive.buffer();
    match rts.request.filter(|_| rts.data.is_null()) {
        Some(request) => {
            cohort_datatype::copy(destination, request.buffer(), from, to);
        }
        // SAFETY: by `Offer::new`, the data is as long as it says, and there until the RTS's operation is complete.
        None => unsafe {
            cohort_datatype::unpack(destination, from, rts.data.add(from as usize), to - from);
        },
    }
}

/// [`copy_range`], unless memory of one of the two may not be accessed by everybody: the `Err` says whose.
pub(crate) fn copy_guarded(rts: &Rts, receive: &Operation, from: u64, to: u64) -> Result<(), Side> {
    // SAFETY: the function only copies.
    let copied = unsafe { guarded(|| copy_range(rts, receive, from, to)) };
    copied.map_err(|fault| Side::of(fault, receive.buffer().base()))
}

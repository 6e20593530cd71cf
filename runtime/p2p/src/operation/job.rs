//! A long message copied by several ranks at once.
//!
//! # Life
//! The holder of the receiver's claim makes a job when a long RTS has met its receive. It has
//! two references from the start: one of the receiver's list of jobs, one of the sender's
//! request. So the receiver and its thieves find it under the receiver's claim, and the sender in its
//! own request; each takes a reference of its own and copies outside of any claim.
//!
//! The requests, the datatypes and the buffers are used only for chunks that were taken and not
//! finished, and by the one that finishes the last chunk. It completes both requests, and
//! touches neither afterwards.
//!
//! When memory of one side is protected, its chunk is not copied, nor those that are taken later. Whoever finishes the
//! last one then hands the whole message over to that side's rank (`retry.rs`).
//!
//! # Handing over
//! Each rank has a stack of such jobs ([`Retries`]). A job that is handed over has one holder: first whoever found the
//! memory protected when nobody else copied any more, then the stack with a reference, then who takes it from there.
//! Any task pushes; a task of the rank takes all at once, keeps one and pushes the others again, so nobody pops a
//! single one, and there is no ABA problem. The push is Release, the taking Acquire. After the push the rank is woken,
//! which passes the barrier that a waiting rank passes before its last look.
//!
//! The list lets go of a job when somebody with the claim finds it exhausted; the sender's
//! reference goes with its request.

use super::side::Side;
use super::{Operation, Rts, copy_guarded};
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use cohort_core::Piece;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links};
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::shares::Shares;
use core::mem::ManuallyDrop;
use core::ptr::{NonNull, null_mut};

/// Bytes of the smallest and largest chunk.
const CHUNK_MIN: u64 = 32 << 10;
const CHUNK_MAX: u64 = 128 << 10;

/// Chunks that a message of medium length is cut into.
const CHUNKS: u64 = 8;

/// Chunks are multiples of this many bytes.
const GRAIN: u64 = 4096;

/// [`Links`] of the receiver's list of jobs.
pub(crate) const IN_JOBS: u8 = 0;

/// See the module page.
#[derive(Debug)]
pub(crate) struct CopyJob {
    shares: Shares,
    /// An eager message's has no request, and its data is in a block that goes with the job.
    pub(super) rts: Rts,
    sender: &'static Rank,
    /// Where the job goes when a side's memory is protected.
    retries: RetriesOf,
    pub(super) receive: RecordRef<Operation>,
    pub(super) status: Status,
    /// Sides whose memory was found protected, as [`Side`]'s bits. Relaxed: the shares, or who hands over, order it.
    pub(super) protected: AtomicU32,
    /// The next job that was handed over to the same rank.
    pub(super) next: AtomicPtr<Self>,
    links: Links<Self>,
}

impl Linked<IN_JOBS> for CopyJob {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

/// The stacks of the two ranks of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetriesOf {
    pub(crate) sender: &'static Retries,
    pub(crate) receiver: &'static Retries,
}

/// Jobs that were handed over to a rank.
#[derive(Debug)]
pub(crate) struct Retries(AtomicPtr<CopyJob>);

impl Retries {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Whether none was handed over yet.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    fn push(&self, job: JobRef) {
        let job = job.into_raw();
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            job.next.store(first, Ordering::Relaxed);
            match self.0.compare_exchange_weak(first, job.as_ptr(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// One of them, by a task of the rank.
    pub(crate) fn take(&self) -> Option<JobRef> {
        if self.is_empty() {
            return None;
        }
        let first = NonNull::new(self.0.swap(null_mut(), Ordering::Acquire))?;
        // SAFETY: the stack had a reference to each.
        unsafe {
            let first = RecordRef::new(first);
            let mut rest = first.next.load(Ordering::Relaxed);
            while let Some(job) = NonNull::new(rest) {
                let job = RecordRef::new(job);
                rest = job.next.load(Ordering::Relaxed);
                self.push(JobRef::from_raw(job));
            }
            Some(JobRef::from_raw(first))
        }
    }
}

/// A reference to a job.
#[derive(Debug)]
pub(crate) struct JobRef(RecordRef<CopyJob>);

impl CopyJob {
    /// Makes a job with so many references; `None` when memory is short.
    ///
    /// # Safety
    /// `rts` was taken for `receive`, a pending receive of the claimed rank in no queue; or it has no request.
    pub(crate) unsafe fn make(
        claim: &mut Claim<'_>,
        rts: Rts,
        receive: RecordRef<Operation>,
        status: Status,
        retries: RetriesOf,
        references: u32,
    ) -> Option<RecordRef<Self>> {
        let job = claim.alloc_aligned(size_of::<Self>(), 64)?.cast::<Self>();
        let sender = rts.request.unwrap_or(receive).request.owner();
        let bytes = status.bytes as u64;
        let chunk = (bytes / CHUNKS).next_multiple_of(GRAIN).clamp(CHUNK_MIN, CHUNK_MAX);
        let fresh = Self {
            shares: Shares::new(bytes, chunk, references),
            rts,
            sender,
            retries,
            receive,
            status,
            protected: AtomicU32::new(0),
            next: AtomicPtr::new(null_mut()),
            links: Links::none(),
        };
        // SAFETY: a fresh block of the right size and alignment, which the last reference frees.
        unsafe {
            job.write(fresh);
            Some(RecordRef::new(job))
        }
    }

    /// Shows the job to its sender, and wakes whoever may help.
    ///
    /// # Safety
    /// It was just made with a reference for the request of its RTS, and is in the list of the claimed rank.
    pub(crate) unsafe fn publish(this: RecordRef<Self>, claim: &Claim<'_>) {
        let sender = this.sender;
        if let Some(request) = this.rts.request {
            // Release pairs with the Acquire in `of_rts`.
            request.job.store(this.as_ptr(), Ordering::Release);
        }
        if sender.wake() || sender.node().wake_worker(claim.rank().id()) {
            claim.rank().counters().count_wake();
        }
    }

    /// Memory of a side is protected.
    pub(crate) fn found_protected(&self, side: Side) {
        self.protected.fetch_or(side as u32, Ordering::Relaxed);
    }

    /// Completes the message.
    ///
    /// # Safety
    /// It is copied, and nobody else completes it.
    pub(super) unsafe fn complete(&self) {
        // SAFETY: the caller's promise; a job without a sender's request has a block of its own.
        unsafe {
            let rts = self.rts;
            Operation::complete(self.receive, self.status);
            match rts.request {
                Some(request) => Operation::complete(request, Status::EMPTY),
                None => Heap::free(NonNull::new_unchecked(rts.data.cast_mut())),
            }
        }
    }

    /// The rank of a side, before the message is complete.
    pub(super) fn rank_of(&self, side: Side) -> &'static Rank {
        match side {
            Side::Sender => self.sender,
            Side::Receiver => self.receive.request.owner(),
        }
    }

    /// Hands the message to the rank of a side whose memory is protected.
    ///
    /// # Safety
    /// Nobody else copies it, or hands it over; the caller has a reference.
    #[cold]
    pub(crate) unsafe fn hand_over(&self) {
        let side = Side::first_of(self.protected.load(Ordering::Relaxed));
        let retries = match side {
            Side::Sender => self.retries.sender,
            Side::Receiver => self.retries.receiver,
        };
        // Once it is pushed the message may be completed, but ranks are never unmade.
        let rank = self.rank_of(side);
        retries.push(self.retain());
        rank.wake();
    }

    /// One reference more, by the holder of one.
    fn retain(&self) -> JobRef {
        self.shares.retain();
        // SAFETY: the reference keeps it.
        JobRef(unsafe { RecordRef::new(NonNull::from_ref(self)) })
    }

    /// Gives back one reference.
    ///
    /// # Safety
    /// The caller has it, and does not use it any more.
    pub(crate) unsafe fn release(job: RecordRef<Self>) {
        if job.shares.release() {
            // SAFETY: it was the last reference.
            unsafe { Heap::free(job.as_non_null().cast()) };
        }
    }

    /// A reference to a job that has chunks left, by the holder of another.
    pub(crate) fn reference(job: RecordRef<Self>) -> Option<JobRef> {
        if job.shares.is_exhausted() {
            return None;
        }
        job.shares.retain();
        Some(JobRef(job))
    }

    /// The job of a rendezvous send of the claimed rank, if it has one with chunks left.
    pub(crate) fn of_rts(request: &Operation) -> Option<JobRef> {
        // Acquire pairs with the Release in `publish`.
        let job = NonNull::new(request.job.load(Ordering::Acquire))?;
        // SAFETY: the request has a reference to its job.
        Self::reference(unsafe { RecordRef::new(job) })
    }
}

impl JobRef {
    /// The job, with this reference.
    fn into_raw(self) -> RecordRef<CopyJob> {
        ManuallyDrop::new(self).0
    }

    /// # Safety
    /// The reference is the caller's to give: that of a job that was just made, or of [`JobRef::into_raw`].
    pub(crate) unsafe fn from_raw(job: RecordRef<CopyJob>) -> Self {
        Self(job)
    }

    /// The job.
    pub(crate) fn job(&self) -> &CopyJob {
        &self.0
    }
}

impl Piece for JobRef {
    fn is_of_a_waiting_sender(&self) -> bool {
        self.0.sender.is_claimed()
    }

    fn is_left(&self) -> bool {
        !self.0.shares.is_exhausted()
    }

    /// Copies up to `chunks` chunks, and completes the message after the last.
    fn run(&self, chunks: u32) -> u64 {
        let job = &*self.0;
        let mut bytes = 0;
        for _ in 0..chunks {
            let Some(chunk) = job.shares.take() else {
                break;
            };
            let length = chunk.end - chunk.start;
            if job.protected.load(Ordering::Relaxed) == 0 {
                // We took a chunk, so that neither operation is complete.
                let copied = copy_guarded(&job.rts, &job.receive, chunk.start, chunk.end);
                if let Err(side) = copied {
                    job.found_protected(side);
                }
            }
            bytes += length;
            if job.shares.finish(length) {
                // SAFETY: all chunks are finished, and only we know it; we have a reference.
                unsafe {
                    match job.protected.load(Ordering::Relaxed) {
                        0 => job.complete(),
                        _ => job.hand_over(),
                    }
                }
            }
        }
        bytes
    }
}

impl Drop for JobRef {
    fn drop(&mut self) {
        // SAFETY: our reference.
        unsafe { CopyJob::release(self.0) };
    }
}

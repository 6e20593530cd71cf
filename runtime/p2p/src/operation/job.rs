//! A long message copied by several ranks at once.
//!
//! # Life
//! The holder of the receiver's claim makes a job when a long offer has met its receive. It has
//! two references from the start: one of the receiver's list of jobs, one of the sender's
//! request. So the receiver and its thieves find it under the receiver's claim, and the sender in its
//! own request; each takes a reference of its own and copies outside of any claim.
//!
//! The requests, the datatypes and the buffers are used only for chunks that were taken and not
//! finished, and by the one that finishes the last chunk. It completes both requests, and
//! touches neither afterwards.
//!
//! The list lets go of a job when somebody with the claim finds it exhausted; the sender's
//! reference goes with its request.

use super::{Offer, Operation, copy_range};
use cohort_alloc::Heap;
use cohort_base::sync::atomic::Ordering;
use cohort_core::Piece;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links};
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::shares::Shares;
use core::ptr::NonNull;

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
pub(crate) struct Job {
    shares: Shares,
    offer: Offer,
    sender: &'static Rank,
    receive: *mut Operation,
    status: Status,
    links: Links<Self>,
}

impl Linked<IN_JOBS> for Job {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

/// A reference to a job.
#[derive(Debug)]
pub(crate) struct JobRef(NonNull<Job>);

impl Job {
    /// Makes a job that the caller puts into the rank's list, and then shows to the sender
    /// ([`Job::publish`]); `None` when memory is short.
    ///
    /// # Safety
    /// `offer` was taken for `receive`, a pending receive of the claimed rank in no queue.
    pub(crate) unsafe fn make(
        claim: &mut Claim<'_>,
        offer: Offer,
        receive: *mut Operation,
        status: Status,
    ) -> Option<NonNull<Self>> {
        let job = claim.alloc_aligned(size_of::<Self>(), 64)?.cast::<Self>();
        let bytes = status.bytes as u64;
        let chunk = (bytes / CHUNKS)
            .next_multiple_of(GRAIN)
            .clamp(CHUNK_MIN, CHUNK_MAX);
        // SAFETY: the block is fresh; the offer's request is pending, so that it and its
        // owner are valid, until the job's last chunk is finished.
        unsafe {
            let sender = (*offer.request).request.owner();
            job.write(Self {
                shares: Shares::new(bytes, chunk, 2),
                offer,
                sender,
                receive,
                status,
                links: Links::NONE,
            });
        }
        Some(job)
    }

    /// Shows the job to its sender, and wakes whoever may help.
    ///
    /// # Safety
    /// It was just made, and is in the list of the claimed rank.
    pub(crate) unsafe fn publish(this: NonNull<Self>, claim: &Claim<'_>) {
        // SAFETY: the caller's promise; the offer's request is pending, so that it is valid.
        unsafe {
            let (sender, offer) = (this.as_ref().sender, this.as_ref().offer);
            // Release pairs with the Acquire in `of_offer`.
            (*offer.request).job.store(this.as_ptr(), Ordering::Release);
            if sender.wake() || sender.node().wake_worker(claim.rank().id()) {
                claim.rank().counters().count_wake();
            }
        }
    }

    /// Gives back one reference.
    ///
    /// # Safety
    /// The caller has it, and does not use it any more.
    pub(crate) unsafe fn release(job: NonNull<Self>) {
        // SAFETY: the reference keeps the job; the last one frees it.
        unsafe {
            if job.as_ref().shares.release() {
                Heap::free(job.cast());
            }
        }
    }

    /// A reference to a job that has chunks left.
    ///
    /// # Safety
    /// The caller has a reference.
    pub(crate) unsafe fn reference(job: NonNull<Self>) -> Option<JobRef> {
        // SAFETY: the caller's promise.
        let shares = unsafe { &job.as_ref().shares };
        if shares.is_exhausted() {
            return None;
        }
        shares.retain();
        Some(JobRef(job))
    }

    /// The job of a rendezvous send of the claimed rank, if it has one with chunks left.
    ///
    /// # Safety
    /// `request` is such a send, and not released.
    pub(crate) unsafe fn of_offer(request: *mut Operation) -> Option<JobRef> {
        // SAFETY: the request has a reference to its job; Acquire pairs with the Release in `start`.
        unsafe {
            let job = NonNull::new((*request).job.load(Ordering::Acquire))?;
            if job.as_ref().shares.is_exhausted() {
                return None;
            }
            job.as_ref().shares.retain();
            Some(JobRef(job))
        }
    }
}

impl Piece for JobRef {
    fn is_of_a_waiting_sender(&self) -> bool {
        // SAFETY: we have a reference.
        unsafe { self.0.as_ref() }.sender.is_claimed()
    }

    fn is_left(&self) -> bool {
        // SAFETY: we have a reference.
        !unsafe { self.0.as_ref() }.shares.is_exhausted()
    }

    /// Copies up to `chunks` chunks, and completes the message after the last.
    fn run(&self, chunks: u32) -> u64 {
        // SAFETY: we have a reference.
        let job = unsafe { self.0.as_ref() };
        let mut bytes = 0;
        for _ in 0..chunks {
            let Some(chunk) = job.shares.take() else {
                break;
            };
            let length = chunk.end - chunk.start;
            // SAFETY: we took a chunk, so both requests and their buffers are valid.
            unsafe { copy_range(&job.offer, job.receive, chunk.start, chunk.end) };
            bytes += length;
            if job.shares.finish(length) {
                // SAFETY: all chunks are finished, and only we know it.
                unsafe {
                    Operation::complete(job.receive, job.status);
                    Operation::complete(job.offer.request, Status::EMPTY);
                }
            }
        }
        bytes
    }
}

impl Drop for JobRef {
    fn drop(&mut self) {
        // SAFETY: our reference.
        unsafe { Job::release(self.0) };
    }
}

//! Posts that a dedicated worker does for a rank (`COHORT_PROGRESS=ghost`, CasperII).
//!
//! A long `MPI_Isend` or `MPI_Irecv` becomes a [`Post`] in a channel of the rank, and returns. No
//! claim is taken, so the call waits for nobody: neither for the ghost that progresses the rank,
//! nor for the rings and queues, whose lines are in the ghost's cache. The ghost matches, publishes
//! and completes it.
//!
//! # Order
//! MPI's order of messages is that of the calls. *Whoever takes the rank's claim takes the rank's
//! posts out of the channel first* ([`cohort_core::claim::Claim::of_taken`]), and everything that
//! matches, probes, cancels, frees or posts directly needs the claim. So posts of both ways are
//! done in the order of their calls, and no call sees a state in which an earlier post is missing.
//! A thief takes a bounded number only, which keeps the order just as well: what it leaves is
//! younger than what it took.
//!
//! # One producer
//! Only the holder of the rank's [`Poster`] sends into the channel. There is one at a time; a
//! thread that finds it taken posts directly. Two threads that post at the same time have no order,
//! and those that are ordered by the program see each other's posts. The consumer is the holder of
//! the claim.
//!
//! # When posts are not left to the ghost
//! When it sleeps (to wake it costs more than to post), when there is none, when the channel is full, for short
//! messages (`COHORT_OFFLOAD_MIN`), and for messages that may cross the network.

use crate::parts::OfRank as _;
use crate::posts::{Offload, Post, SPARES};
use crate::watch;
use crate::worker::DedicatedWorker;
use cohort_base::Peer;
use cohort_base::settings::Progress;
use cohort_base::sync::atomic::Ordering;
use cohort_core::claim::Claim;
use cohort_core::message::{Envelope, SendMode, Source, Tag};
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_datatype::Buffer;
use cohort_p2p::matching::Want;
use cohort_p2p::messages::{start_posted, start_receive};
use cohort_p2p::operation::{Operation, OperationKind};
use cohort_p2p::protocol::choice::Protocol;
use cohort_p2p::sender_of;
use cohort_steal::policy::{DedicatedWorkers, policy};
use core::marker::PhantomData;
use core::ptr::NonNull;

/// Posts that one look of a thief does.
const POSTS_PER_STEAL: u32 = 8;

/// The right to leave posts to the rank's ghost. One thread of the rank at a time has it.
#[derive(Debug)]
pub struct Poster<'rank> {
    rank: &'rank Rank,
    offload: &'static Offload,
    worker: &'static DedicatedWorker,
    /// The policy of the communicator.
    progress: Progress,
    not_send: PhantomData<*mut ()>,
}

impl Drop for Poster<'_> {
    fn drop(&mut self) {
        // Release pairs with the Acquire in `of`.
        self.offload.is_taken.store(false, Ordering::Release);
    }
}

/// Whether posts of the rank may be left to a ghost at all.
#[inline]
#[must_use]
pub fn may_leave(rank: &Rank) -> bool {
    rank.offload().is_some()
}

/// Nobody is a rank's poster as long as this lives.
#[derive(Debug)]
pub struct NoPoster(Option<&'static Offload>);

impl NoPoster {
    /// Waits until no thread of the rank has the right to leave posts. By a thread of the rank that does not hold its
    /// claim.
    #[must_use]
    pub fn of(rank: &Rank) -> Self {
        let offload = rank.offload();
        if let Some(offload) = offload {
            // Acquire pairs with the Release of the poster before.
            while offload.is_taken.swap(true, Ordering::Acquire) {
                core::hint::spin_loop();
            }
        }
        Self(offload)
    }
}

impl Drop for NoPoster {
    fn drop(&mut self) {
        if let Some(offload) = self.0 {
            // Release pairs with the Acquire of the next poster.
            offload.is_taken.store(false, Ordering::Release);
        }
    }
}

impl<'rank> Poster<'rank> {
    /// The right to leave a message of so many bytes, of a communicator with this policy, to the
    /// rank's ghost: `None` if it is to be posted directly. By threads of the rank, which do not
    /// hold its claim.
    #[inline]
    pub fn of(rank: &'rank Rank, bytes: u64, progress: impl FnOnce() -> Progress) -> Option<Self> {
        let offload = rank.offload()?;
        let is_long = bytes >= rank.node().settings().offload_min as u64;
        if !is_long {
            return None;
        }
        let progress = progress();
        if !policy(progress).capabilities().offloads_posts() {
            return None;
        }
        let worker = rank.worker_of(DedicatedWorkers::Ghosts)?;
        if !worker.is_awake() {
            return None;
        }
        // Acquire pairs with the Release of the poster before.
        if offload.is_taken.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(Self { rank, offload, worker, progress, not_send: PhantomData })
    }

    /// The rank.
    #[must_use]
    pub fn rank(&self) -> &'rank Rank {
        self.rank
    }

    /// Leaves a send to the ghost; `None`: nothing was done, post it directly.
    pub fn isend(&mut self, buffer: Buffer<'_>, to: Peer, envelope: Envelope, mode: SendMode) -> Option<RequestRef> {
        let to = self.rank.node().local(to)?;
        let protocol = Protocol::of(self.rank, buffer.bytes(), &envelope, mode);
        self.post(&OperationKind::Rts, buffer, Want::NOTHING, |request| Post::Send { request, to, envelope, protocol })
    }

    /// Leaves a receive to the ghost; `None`: nothing was done, post it directly.
    pub fn irecv(&mut self, buffer: Buffer<'_>, from: Source, context: u32, tag: Tag) -> Option<RequestRef> {
        let node = self.rank.node();
        let want = Want::new(node, from, context, tag);
        if node.has_network() && want.may_be_remote() {
            return None;
        }
        let from = sender_of(from);
        let progress = self.progress;
        self.post(&OperationKind::Receive, buffer, want, |request| Post::Receive { request, from, progress })
    }

    fn post(
        &mut self,
        kind: &'static OperationKind,
        buffer: Buffer<'_>,
        want: Want,
        post: impl FnOnce(RecordRef<Operation>) -> Post,
    ) -> Option<RequestRef> {
        // SAFETY: we are the only poster, and so the only producer.
        if !unsafe { self.offload.posts.has_room() } {
            return None;
        }
        let request = self.spare()?;
        // SAFETY: the block is ours and fits a request; there is room, and we are the only producer. This is the only
        // reference.
        let handle = unsafe {
            request.write(Operation::new(self.rank, kind, buffer, want));
            let request = RecordRef::new(request);
            self.offload.posts.send(post(request));
            Operation::handle(request)
        };
        self.worker.wake();
        self.rank.counters().count_offloaded();
        Some(handle)
    }

    /// A block for a request; takes the claim once for many.
    fn spare(&mut self) -> Option<NonNull<Operation>> {
        // SAFETY: we are the only poster.
        let spares = unsafe { &mut *self.offload.spares.get() };
        if spares.count == 0 {
            let mut claim = self.rank.enter();
            while spares.count < SPARES {
                let Some(block) = Operation::room(&mut claim) else {
                    break;
                };
                spares.blocks[spares.count] = block.as_ptr();
                spares.count += 1;
            }
        }
        spares.count = spares.count.checked_sub(1)?;
        NonNull::new(spares.blocks[spares.count])
    }
}

/// Does the claimed rank's posts, for its owner.
#[cold]
pub(crate) fn drain(claim: &mut Claim<'_>) {
    drain_up_to(claim, u32::MAX);
}

/// Does some of the claimed rank's posts, for a thief.
#[cold]
pub(crate) fn drain_some(claim: &mut Claim<'_>) {
    drain_up_to(claim, POSTS_PER_STEAL);
}

fn drain_up_to(claim: &mut Claim<'_>, limit: u32) {
    let Some(offload) = claim.rank().offload() else {
        return;
    };
    for _ in 0..limit {
        // SAFETY: we hold the claim, so we are the only consumer.
        let Some(post) = (unsafe { offload.posts.take() }) else {
            break;
        };
        // SAFETY: the poster made the request, which is pending until the post is carried out.
        unsafe { carry_out(claim, post) };
    }
}

/// # Safety
/// The post was not carried out, and its request is pending.
unsafe fn carry_out(claim: &mut Claim<'_>, post: Post) {
    // SAFETY: the caller's promise.
    unsafe {
        match post {
            Post::Receive { request, from, progress } => {
                start_receive(claim, request, from);
                let request = Operation::handle(request);
                watch::leave_behind(claim, &request, progress);
            }
            Post::Send { request, to, envelope, protocol } => start_posted(claim, request, protocol, to, envelope),
        }
    }
}

#[cfg(test)]
mod tests;

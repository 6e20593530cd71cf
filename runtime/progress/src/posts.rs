//! What a rank has left to dedicated workers to post, on its way to them. What is done with it is in `offload.rs`.

use cohort_base::settings::Progress;
use cohort_base::sync::atomic::AtomicBool;
use cohort_base::{LocalRank, Peer};
use cohort_core::message::Envelope;
use cohort_core::record::RecordRef;
use cohort_p2p::operation::Operation;
use cohort_p2p::protocol::choice::Protocol;
use cohort_steal::channel::SpscQueue;
use core::cell::UnsafeCell;

/// Posts of one rank that no ghost has done.
const POSTS: usize = 64;

/// Blocks for requests that a poster takes from the heap at once.
pub(crate) const SPARES: usize = 32;

/// A message to post. Its request is pending and in no list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Post {
    Send { request: RecordRef<Operation>, to: LocalRank, envelope: Envelope, protocol: Protocol },
    Receive { request: RecordRef<Operation>, from: Option<Peer>, progress: Progress },
}

// SAFETY: a request may be used by whoever holds its rank's claim.
unsafe impl Send for Post {}

/// The part of a rank that its posters and its ghost share.
#[derive(Debug)]
pub(crate) struct Offload {
    pub(crate) posts: SpscQueue<Post, POSTS>,
    /// Whether there is a [poster](crate::offload::Poster).
    pub(crate) is_taken: AtomicBool,
    /// The poster's.
    pub(crate) spares: UnsafeCell<Spares>,
}

/// Blocks of the rank's heap, each for one request.
#[derive(Debug)]
pub(crate) struct Spares {
    pub(crate) blocks: [*mut Operation; SPARES],
    pub(crate) count: usize,
}

// SAFETY: `spares` is the poster's; successive ones are ordered by `is_taken`.
unsafe impl Sync for Offload {}

impl Offload {
    pub(crate) fn new() -> Self {
        Self {
            posts: SpscQueue::new(),
            is_taken: AtomicBool::new(false),
            spares: UnsafeCell::new(Spares { blocks: [core::ptr::null_mut(); SPARES], count: 0 }),
        }
    }

    /// Whether there are posts to do. Exact for tasks that the poster's calls are ordered before.
    #[inline]
    pub(crate) fn has_posts(&self) -> bool {
        !self.posts.is_empty()
    }
}

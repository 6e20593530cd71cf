//! What members post, and what follows from all posts.

use super::Terms;
use super::cover::{CHUNK, COVER};
use crate::layout::View;
use crate::transfer::STRAIGHT;
use cohort_datatype::Buffer;
use core::sync::atomic::{AtomicU64, Ordering};

/// One member's arguments, and, of the first member on the node, the counter of the chunks.
pub(super) struct Post<'a> {
    pub(super) view: &'a View,
    pub(super) position: u64,
    pub(super) buffer: Buffer<'a>,
    /// Whether there is data, all of which has a place in ascending order.
    is_regular: bool,
    /// Whether all pieces are long.
    is_long: bool,
    /// The place in the file behind all chunks that were taken.
    next: AtomicU64,
}

impl<'a> Post<'a> {
    pub(super) fn new(view: &'a View, position: u64, buffer: Buffer<'a>) -> Self {
        let bytes = buffer.bytes();
        let is_regular = bytes > 0 && view.is_ordered() && view.pieces(position, bytes).is_ok();
        // Data that is short is no long piece, whatever the view.
        let is_long = view.typical_piece().min(bytes) >= STRAIGHT;
        Self { view, position, buffer, is_regular, is_long, next: AtomicU64::new(0) }
    }

    /// Whether there is data, all of which has a place in ascending order.
    pub(super) fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Where the data begins and ends in the file; an empty range if it has no order.
    pub(super) fn range(&self) -> core::ops::Range<u64> {
        match (self.is_regular, self.view.offset(self.position), self.view.offset(self.end().saturating_sub(1))) {
            (true, Ok(first), Ok(last)) => first..last + 1,
            _ => 0..0,
        }
    }

    /// The first position behind the data.
    fn end(&self) -> u64 {
        self.position + self.buffer.bytes()
    }

    /// Where the first byte of the data at `offset` or behind it lies.
    pub(super) fn data_from(&self, offset: u64) -> Option<u64> {
        let position = self.view.position_from(offset).max(self.position);
        if position < self.end() { self.view.offset(position).ok() } else { None }
    }

    /// The positions of the data between two places of the file.
    pub(super) fn between(&self, low: u64, high: u64) -> core::ops::Range<u64> {
        let within = |offset| self.view.position_from(offset).clamp(self.position, self.end());
        within(low)..within(high)
    }

    /// Bytes of the data before a place of the file.
    pub(super) fn bytes_before(&self, offset: u64) -> u64 {
        self.between(0, offset).end - self.position
    }
}

/// The counter of a node's chunks.
pub(super) struct Next<'a>(&'a AtomicU64);

impl Next<'_> {
    /// Takes the next chunk with data: where its data begins, and where the chunk ends. Relaxed: the members' meetings
    /// order all else.
    pub(super) fn take(&self, posts: &[&Post<'_>], plan: &Plan) -> Option<(u64, u64)> {
        let mut from = self.0.load(Ordering::Relaxed);
        loop {
            let regular = posts.iter().filter(|post| plan.is_common(post));
            let low = regular.filter_map(|post| post.data_from(from)).min()?;
            let high = (low / CHUNK + 1) * CHUNK;
            match self.0.compare_exchange_weak(from, high, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some((low, high)),
                Err(other) => from = other,
            }
        }
    }

    /// Leaves all further chunks out. Relaxed: who does not see it yet moves one chunk more.
    pub(super) fn stop(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Who moves what: the same at all members of the node, since all see the same posts.
pub(super) struct Plan<'a> {
    /// Data in ascending order is moved in chunks.
    has_chunks: bool,
    /// The members that take them.
    workers: &'a [&'a Post<'a>],
}

impl<'a> Plan<'a> {
    pub(super) fn of(posts: &'a [&'a Post<'a>], terms: Terms) -> Self {
        let regular = || posts.iter().filter(|post| post.is_regular);
        let has_chunks = regular().count() > 1 && (terms.is_atomic || !regular().all(|post| post.is_long));
        let most = (terms.memory / (CHUNK + COVER)).max(1) as usize;
        Self { has_chunks, workers: &posts[..posts.len().min(most)] }
    }

    /// Whether a member's data is moved in chunks.
    pub(super) fn is_common(&self, post: &Post<'_>) -> bool {
        self.has_chunks && post.is_regular
    }

    /// Whether the member moves its data itself.
    pub(super) fn is_own(&self, post: &Post<'_>) -> bool {
        !self.is_common(post)
    }

    /// The counter, if the member takes chunks.
    pub(super) fn next(&self, own: &Post<'_>) -> Option<Next<'a>> {
        let is_worker = self.workers.iter().any(|post| core::ptr::eq(*post, own));
        (self.has_chunks && is_worker).then(|| Next(&self.workers[0].next))
    }
}

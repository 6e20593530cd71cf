//! Remote frees: how a block returns to its heap from a task that may not touch the heap.
//!
//! # State
//! Each slab (or run) is a [`RemoteFreeList`] with a stack of freed blocks; the heap has a
//! [`RemoteFreeQueue`] queue, a stack of the sources whose stack is not empty.
//!
//! # Protocol
//! ```text
//! any task: give(block)                        allocator: drain (holds the claim)
//! G1 push block on its source's stack          D1 take the whole queue
//! G2 was it empty? push the source on          D2 of each source: read its link, then
//!    the heap's queue                          D3 take its whole stack
//! ```
//!
//! # Why it holds
//! *No ABA.* Only pushes and take-all: a push compares with the head that it links to,
//! and a head that comes back after a take-all is just as good a successor.
//! *A source is queued at most once.* Only the push that finds the stack empty queues it, and
//! the stack gets empty only by D3, after D1 took the source out of the queue.
//! *Its link is not overwritten early.* The next G2 comes after a G1 that read D3's
//! empty stack, and D2 precedes D3; both are read-modify-writes with Acquire and Release.
//! *No block is lost.* A block on a stack has a G1 that found it empty below it, whose G2
//! has come or will.
//! *A source may be unmapped when all its blocks are back.* A giver's last access to the source
//! is the push that makes its block reachable: G1's if the stack was not empty, else G2's,
//! before which no drain finds the source.
//!
//! Blocks are written with Release by G1 and read with Acquire by D3, so the allocator
//! also sees every access that the freeing task made to the block.

use cohort_base::sync::atomic::{AtomicPtr, Ordering};
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

/// First word of a freed block, and of a [`RemoteFreeList`].
#[repr(C)]
#[derive(Debug)]
pub struct Link {
    next: AtomicPtr<Link>,
}

impl Link {
    /// The end of a list.
    #[must_use]
    pub fn new() -> Self {
        Self { next: AtomicPtr::new(null_mut()) }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

/// A stack that any task pushes to and one takes away whole.
#[derive(Debug)]
struct Stack {
    head: AtomicPtr<Link>,
}

impl Stack {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self { head: AtomicPtr::new(null_mut()) }
    }

    #[cfg(loom)]
    fn new() -> Self {
        Self { head: AtomicPtr::new(null_mut()) }
    }

    /// Pushes and says whether the stack was empty.
    ///
    /// # Safety
    /// `link` is valid, and the caller's alone until the push.
    unsafe fn push(&self, link: NonNull<Link>) -> bool {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: valid by the caller's promise; atomic since a failed push writes again.
            unsafe { link.as_ref() }.next.store(head, Ordering::Relaxed);
            // Release pairs with the Acquire in `take`; Acquire with the Release there (an
            // empty stack that is read here was emptied after its source's link was read).
            match self.head.compare_exchange_weak(head, link.as_ptr(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return head.is_null(),
                Err(current) => head = current,
            }
        }
    }

    /// Takes all links away.
    fn take(&self) -> FreedBlocks<'_> {
        // Acquire and Release pair with their opposites in `push`.
        FreedBlocks { next: self.head.swap(null_mut(), Ordering::AcqRel), taken: PhantomData }
    }

    fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }
}

/// Links that were taken away: the caller's alone, and not for longer than where they came from.
#[derive(Debug)]
pub struct FreedBlocks<'stack> {
    next: *mut Link,
    taken: PhantomData<&'stack Stack>,
}

impl Iterator for FreedBlocks<'_> {
    type Item = NonNull<Link>;

    /// The next link. It is read before it is returned, so the caller may reuse it.
    fn next(&mut self) -> Option<NonNull<Link>> {
        let link = NonNull::new(self.next)?;
        // SAFETY: a taken link stays valid until it is returned to the caller.
        self.next = unsafe { link.as_ref() }.next.load(Ordering::Relaxed);
        Some(link)
    }
}

/// What blocks return to; first field of a slab's header.
#[repr(C)]
#[derive(Debug)]
pub struct RemoteFreeList {
    link: Link,
    blocks: Stack,
}

impl Default for RemoteFreeList {
    fn default() -> Self {
        Self::new()
    }
}

impl RemoteFreeList {
    /// A source to which no block has returned.
    #[must_use]
    pub fn new() -> Self {
        Self { link: Link::new(), blocks: Stack::new() }
    }
}

/// The queue through which a heap's blocks return.
#[derive(Debug)]
pub struct RemoteFreeQueue(Stack);

impl Default for RemoteFreeQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl RemoteFreeQueue {
    /// An empty queue.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(Stack::new())
    }

    /// An empty queue.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(Stack::new())
    }

    /// Gives a block back. Lock-free; from any task.
    ///
    /// # Safety
    /// `block` is a block of `source` that nobody uses any more, at least a [`Link`] long and
    /// initialised as one; `source` belongs to this queue, and is not freed before its
    /// blocks were drained.
    pub unsafe fn give(&self, source: NonNull<RemoteFreeList>, block: NonNull<Link>) {
        // SAFETY: the source outlives its block; the block is ours to give.
        if unsafe { source.as_ref().blocks.push(block) } {
            // SAFETY: `RemoteFreeList` begins with its link, and only the push that found the stack empty
            // comes here, so the link is ours.
            unsafe { self.0.push(source.cast()) };
        }
    }

    /// Whether nothing has come back: one load. May be stale.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes back all blocks that were given, by source.
    ///
    /// # Safety
    /// The caller is the queue's only drainer now. `accept` may free the source and its blocks, but
    /// not before it has seen the last of them.
    pub unsafe fn drain(&self, mut accept: impl FnMut(NonNull<RemoteFreeList>, FreedBlocks<'_>)) {
        for link in self.0.take() {
            let source: NonNull<RemoteFreeList> = link.cast();
            // SAFETY: a queued source is valid: its blocks are not all back. Its link has been
            // read by the iterator before its stack is emptied here.
            let blocks = unsafe { source.as_ref() }.blocks.take();
            accept(source, blocks);
        }
    }
}

#[cfg(test)]
mod tests;

//! Blocks that a sender keeps for its messages of medium length, and uses again and again.
//!
//! A block of the heap goes back to it by way of lists that both ranks write, and when it is used again all others of
//! its slab have been, so it has left the first-level caches. An eager buffer goes back by one store, and the one that
//! was used last is used again. When all that a rank keeps are under way, its messages take blocks of the heap.
//!
//! # Protocol
//! ```text
//! holder of the sender's claim             whoever receives the message
//! K1 is it free? (Acquire)
//! K2 marks it as used
//! K3 writes the data, sends the message    K4 reads the data
//!                                          K5 marks it as free (Release)
//! ```
//! * Only K2 marks it as used, under the claim, so K1 and K2 need not be one step.
//! * K5 is the receiver's last access, and pairs with K1: K3 comes after all of K4.
//! * K2 comes before K5: the message's way from K3 to K4 orders them.
//! * A message is received once, so there is one K5 for each K2.
//!
//! # Where the data lies
//! As far from the beginning of a cache line as the bytes that the sender copies: else each vector of a copy is in two
//! lines, on one side or the other, which costs a message of 16 KB an eighth of its time. Most programs have their
//! buffers alike at both ends, so the receiver's copy is as good. If there is room before it in its first line, as for
//! what `malloc` gives, the mark is in there, which the next message writes anyway.

use cohort_base::sync::atomic::{AtomicU32, Ordering};

/// Whether a block carries a message.
#[repr(C, align(16))]
#[derive(Debug)]
struct Mark(AtomicU32);

impl Mark {
    /// K1 and K2: takes the block, if it is free. By the holder of the sender's claim.
    #[inline]
    fn take(&self) -> bool {
        let is_free = self.0.load(Ordering::Acquire) == 0;
        if is_free {
            self.0.store(1, Ordering::Relaxed);
        }
        is_free
    }

    /// K5: the message has been received.
    #[inline]
    fn give_back(&self) {
        self.0.store(0, Ordering::Release);
    }
}

#[cfg(not(loom))]
pub(crate) use blocks::{EagerBuffers, give_back};

#[cfg(not(loom))]
mod blocks {
    use super::{AtomicU32, Mark};
    use cohort_alloc::Heap;
    use core::ptr::null_mut;

    /// Long blocks that a rank keeps at most.
    const LONG_BLOCKS: usize = 4;

    /// Data of the longest message that an eager buffer carries.
    const LONG: usize = 16 << 10;

    /// Short blocks that a rank keeps at most: a burst of messages.
    const SHORT_BLOCKS: usize = 64;

    /// Data of the longest message in a short block.
    const SHORT: usize = 2 << 10;

    /// Bytes of a cache line.
    const LINE: usize = 64;

    /// An eager buffer. The data begins in its first [`ALIGN`] bytes, behind the mark.
    #[repr(C, align(128))]
    struct Block<const DATA: usize> {
        mark: Mark,
        /// Where the data may begin.
        begin: [u8; LINE],
        data: [u8; DATA],
    }

    /// A place in the first half of this tells where the block begins.
    const ALIGN: usize = align_of::<Block<LONG>>();
    const _: () = assert!(size_of::<Mark>() + LINE <= ALIGN);

    /// Where data begins in its block that is copied from an address: at least behind the mark.
    #[inline]
    fn offset_for(from: usize) -> usize {
        const MARK: usize = size_of::<Mark>();
        MARK + (from.wrapping_sub(MARK)) % LINE
    }

    /// Blocks of one length: made when they are first needed, never freed.
    #[derive(Debug)]
    struct Stock<const DATA: usize, const BLOCKS: usize> {
        blocks: [*mut Block<DATA>; BLOCKS],
        /// The one behind that which was taken last.
        next: usize,
    }

    impl<const DATA: usize, const BLOCKS: usize> Stock<DATA, BLOCKS> {
        const NONE: Self = Self { blocks: [null_mut(); BLOCKS], next: 0 };

        /// Takes a block that is free: the first one, which a message that is answered finds in the caches, or the
        /// next one, as in a burst those come back in the order in which they were taken. `None`: neither is.
        #[inline]
        fn take(&mut self, heap: &Heap) -> Option<*mut u8> {
            for at in [0, self.next] {
                let block = &mut self.blocks[at];
                if block.is_null() {
                    *block = make(heap)?;
                }
                // SAFETY: eager buffers are never freed.
                if unsafe { (**block).mark.take() } {
                    self.next = if at + 1 < BLOCKS { at + 1 } else { 0 };
                    return Some(block.cast());
                }
            }
            None
        }
    }

    /// What a rank keeps.
    #[derive(Debug)]
    pub(crate) struct EagerBuffers {
        long: Stock<LONG, LONG_BLOCKS>,
        short: Stock<SHORT, SHORT_BLOCKS>,
    }

    impl EagerBuffers {
        /// No blocks yet.
        pub(crate) const NONE: Self = Self { long: Stock::NONE, short: Stock::NONE };

        /// Room for a message of `bytes` bytes, copied from `from`, in an eager buffer. `None`: none is free, or the
        /// message is too long. By the holder of the claim of the rank whose heap this is.
        #[inline]
        pub(crate) fn take(&mut self, heap: &Heap, bytes: u64, from: *const u8) -> Option<*mut u8> {
            let block = if bytes <= SHORT as u64 {
                self.short.take(heap)
            } else if bytes <= LONG as u64 {
                self.long.take(heap)
            } else {
                None
            };
            // SAFETY: inside the block.
            block.map(|block| unsafe { block.byte_add(offset_for(from.addr())) })
        }
    }

    /// Makes a block, which is free; `None` when memory is short.
    #[cold]
    fn make<const DATA: usize>(heap: &Heap) -> Option<*mut Block<DATA>> {
        // SAFETY: blocks are made under the claim, which allows the heap's use.
        let block = unsafe { heap.alloc(size_of::<Block<DATA>>(), ALIGN)? };
        let block = block.cast::<Block<DATA>>().as_ptr();
        // SAFETY: a fresh block that is large enough.
        unsafe { (&raw mut (*block).mark).write(Mark(AtomicU32::new(0))) };
        Some(block)
    }

    /// Gives a block back to its sender. From any task.
    ///
    /// # Safety
    /// `data` came from [`EagerBuffers::take`], and nobody uses it any more.
    #[inline]
    pub(crate) unsafe fn give_back(data: *mut u8) {
        let block = data.map_addr(|it| it & !(ALIGN - 1));
        // SAFETY: the caller's promise; each block begins with its mark, and eager buffers are never freed.
        unsafe { (*block.cast::<Mark>()).give_back() };
    }
}

#[cfg(test)]
mod tests;

//! Slabs and the headers of all blocks.
//!
//! Every block lies within the first 64 KB after a 64 KB boundary at which its [`Header`] is:
//! that of its slab, or its own if the block is large. Masking the address finds it.

use super::Heap;
use crate::class::{self, SLAB_SIZE};
use crate::remote::{Link, RemoteFreeList};
use core::ptr::{NonNull, null_mut};

/// What a 64 KB boundary begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlabKind {
    /// A [`Slab`] of blocks of one class.
    Slab { class: u8 },
    /// One block that fills a run of this many slabs.
    Run { slabs: u32 },
    /// One block in a mapping of its own of this many bytes.
    Huge { length: usize },
}

/// Begins every slab, run and huge mapping. It has a cache line of its own: tasks that free blocks write to it, and
/// what follows it is written with each block that is allocated.
#[repr(C, align(64))]
pub(crate) struct Header {
    /// Where its blocks return to; first, since the heap finds the header by it.
    pub(crate) source: RemoteFreeList,
    /// The heap that allocated it.
    pub(crate) heap: *const Heap,
    pub(crate) kind: SlabKind,
}

impl Header {
    pub(crate) fn new(heap: &Heap, kind: SlabKind) -> Self {
        Self { source: RemoteFreeList::new(), heap, kind }
    }

    /// The header of a block: where the slab of the byte before it begins. A block at the beginning of a slab, which
    /// only its alignment can bring about, has it a slab before.
    ///
    /// # Safety
    /// `block` is a block of some heap.
    #[inline]
    pub(crate) unsafe fn of(block: NonNull<u8>) -> NonNull<Self> {
        let address = block.as_ptr().map_addr(|address| (address - 1) & !(SLAB_SIZE - 1));
        // SAFETY: blocks lie above the first 64 KB of the address space.
        unsafe { NonNull::new_unchecked(address.cast()) }
    }
}

/// A local free block.
pub(crate) struct Block {
    pub(crate) next: *mut Block,
}

/// In which of its class's lists a slab is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlabState {
    /// The one that allocations come from.
    Current,
    /// Has a free block.
    Partial,
    /// Has none; in no list.
    Full,
}

/// 64 KB of blocks of one class. All but `header.source` belongs to the claim's holder.
#[repr(C)]
pub(crate) struct Slab {
    pub(crate) header: Header,
    /// Blocks that were used and came back.
    pub(crate) free: *mut Block,
    /// Offset of the first block that was never used: its page has no memory yet.
    pub(crate) fresh: u32,
    pub(crate) block_size: u32,
    /// Blocks given out, including those on the way back.
    pub(crate) used: u32,
    pub(crate) listed: SlabState,
    pub(crate) prev: *mut Slab,
    pub(crate) next: *mut Slab,
}

/// Offset of the first block of a class's slabs.
const fn first_offset(align: usize) -> u32 {
    size_of::<Slab>().next_multiple_of(align) as u32
}

impl Slab {
    pub(crate) fn new(heap: &Heap, class: usize) -> Self {
        Self {
            header: Header::new(heap, SlabKind::Slab { class: class as u8 }),
            free: null_mut(),
            fresh: first_offset(class::block_align(class)),
            block_size: class::SIZES[class],
            used: 0,
            listed: SlabState::Current,
            prev: null_mut(),
            next: null_mut(),
        }
    }

    /// Takes a block, if one is left.
    ///
    /// # Safety
    /// `slab` is valid and its heap's claim is the caller's; so for all functions here.
    #[inline]
    pub(crate) unsafe fn pop(slab: *mut Self) -> Option<NonNull<u8>> {
        // SAFETY: free blocks are valid and nobody's; fresh ones lie within the slab.
        unsafe {
            let block = (*slab).free;
            if !block.is_null() {
                (*slab).free = (*block).next;
                (*slab).used += 1;
                return Some(NonNull::new_unchecked(block.cast()));
            }
            if (*slab).fresh + (*slab).block_size > SLAB_SIZE as u32 {
                return None;
            }
            let block = slab.cast::<u8>().add((*slab).fresh as usize);
            (*slab).fresh += (*slab).block_size;
            (*slab).used += 1;
            Some(NonNull::new_unchecked(block))
        }
    }

    /// Puts a block back.
    ///
    /// # Safety
    /// As for `pop`; the block is of this slab and nobody uses it.
    #[inline]
    pub(crate) unsafe fn push(slab: *mut Self, block: NonNull<u8>) {
        let block = block.cast::<Block>();
        // SAFETY: every block holds at least a pointer and is aligned for one.
        unsafe {
            block.write(Block { next: (*slab).free });
            (*slab).free = block.as_ptr();
            (*slab).used -= 1;
        }
    }

    /// Asserts the slab's invariants: **used + free + never used = all blocks**.
    ///
    /// # Safety
    /// As for `pop`.
    pub(crate) unsafe fn check(slab: *mut Self) {
        // SAFETY: the caller's promise; free blocks are valid.
        unsafe {
            let first = first_offset(class::block_align((*slab).class()));
            let size = (*slab).block_size;
            let given = ((*slab).fresh - first) / size;
            let mut free = 0;
            let mut block = (*slab).free;
            while !block.is_null() {
                let offset = (block.addr() - slab.addr()) as u32;
                assert!(offset < (*slab).fresh, "a free block was used before");
                assert_eq!((offset - first) % size, 0, "a free block begins where blocks begin");
                free += 1;
                assert!(free <= given, "the free list has no cycle");
                block = (*block).next;
            }
            assert_eq!((*slab).used + free, given, "no block is lost");
            let exhausted = free == 0 && (*slab).fresh + size > SLAB_SIZE as u32;
            match (*slab).listed {
                SlabState::Full => assert!(exhausted, "an unlisted slab has no block"),
                SlabState::Partial => {
                    assert!(!exhausted && (*slab).used > 0, "a listed slab is partial")
                }
                SlabState::Current => {}
            }
        }
    }

    /// The class of the slab's blocks.
    pub(crate) fn class(&self) -> usize {
        match self.header.kind {
            SlabKind::Slab { class } => usize::from(class),
            SlabKind::Run { .. } | SlabKind::Huge { .. } => unreachable!("a slab's header says so"),
        }
    }
}

// A freed block holds a `Link` (remote) or a `Block` (local).
const _: () = assert!(size_of::<Link>() <= 16 && size_of::<Block>() <= 16);

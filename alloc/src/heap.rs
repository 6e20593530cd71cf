//! A rank's heap.

mod slab;

use crate::class::{self, CLASSES, SLAB_SIZE};
use crate::kept::{Item, Kept};
use crate::map::{self, page};
use crate::remote::{FreedBlocks, Link, RemoteFreeList, RemoteFreeQueue};
use crate::segment::{Pool, RUN_MAX};
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use slab::{Header, Slab, SlabKind, SlabState};

/// Offset of a large block whose alignment does not ask for more.
const LARGE_OFFSET: usize = 128;

/// The largest alignment of a block in a slab's run. One that asks for more is a mapping of its own.
const LARGE_ALIGN_MAX: usize = SLAB_SIZE / 2;

/// The least block of zero bytes that is a mapping of its own.
const MAPPED_LEAST: usize = 256 << 10;

/// The least mapping for which the kernel is asked for pages of [`HUGE_PAGE`] bytes: they waste less than a half of it.
const HUGE_LEAST: usize = 2 * HUGE_PAGE;
const HUGE_PAGE: usize = 2 << 20;

/// What of a long block will be touched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touched {
    /// All of it.
    All,
    /// Here and there a place: a table with room for many that few will use. Huge pages would take memory for the rest.
    Here,
}

/// A heap: one task at a time allocates, any task frees.
///
/// A new heap owns no memory. *The claim* below is whatever the user of this type excludes
/// other allocating tasks with: for a rank's heap the rank's progress claim.
///
/// Conservation laws, asserted by [`Heap::check`]: each slab of each segment is free,
/// in use or part of a run; each block of a slab is used, free or never used; the live bytes are
/// the sum of the used blocks'.
pub struct Heap {
    returns: CacheLine<RemoteFreeQueue>,
    /// Bytes of blocks in slabs and runs; written under the claim only.
    live: AtomicU64,
    /// Bytes of segments; written under the claim only.
    segments: AtomicU64,
    /// Bytes of huge mappings that are blocks; written by any task.
    huge: AtomicU64,
    /// Huge mappings that were freed.
    kept: Kept<Header>,
    inner: UnsafeCell<Inner>,
}

/// What belongs to the claim's holder.
struct Inner {
    classes: [Class; CLASSES],
    pool: Pool,
}

/// The slabs of one class.
#[derive(Clone, Copy)]
struct Class {
    current: *mut Slab,
    partial: *mut Slab,
}

/// How much memory a heap has and uses. Recent values, not one consistent cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of all blocks given out, rounded up to their class, including blocks that were
    /// freed remotely and not taken back yet.
    pub live_bytes: u64,
    /// Bytes of address space. A page of it costs memory only when it was written.
    pub mapped_bytes: u64,
}

// SAFETY: `inner` is touched only by functions whose contract is that the caller holds the
// claim, which orders one holder after the other; the rest is atomic.
unsafe impl Sync for Heap {}
// SAFETY: nothing of a heap is bound to a task. Moving it is excluded while blocks live.
unsafe impl Send for Heap {}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

impl Heap {
    /// A heap without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self::keeping(0)
    }

    /// A heap without memory, which keeps so many bytes of freed blocks that are mappings of their own.
    #[must_use]
    pub const fn keeping(bytes: u64) -> Self {
        Self {
            returns: CacheLine(RemoteFreeQueue::new()),
            live: AtomicU64::new(0),
            segments: AtomicU64::new(0),
            huge: AtomicU64::new(0),
            kept: Kept::new(bytes),
            inner: UnsafeCell::new(Inner {
                classes: [Class { current: null_mut(), partial: null_mut() }; CLASSES],
                pool: Pool::new(),
            }),
        }
    }

    /// Allocates `size` bytes (0 is served as 1) aligned to `align`, a power of two; the content is arbitrary.
    /// `None`: the kernel has no memory.
    ///
    /// # Safety
    /// The caller holds the claim: nobody else is in a function of this heap that asks for it.
    /// The heap is neither moved nor dropped before the block was freed.
    #[inline]
    pub unsafe fn alloc(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        debug_assert!(align.is_power_of_two());
        let Some(class) = class::of_layout(size, align) else {
            // SAFETY: the caller's promise.
            return unsafe { self.alloc_large(size, align) };
        };
        // SAFETY: the claim makes `inner` ours; a current slab is valid.
        unsafe {
            let current = (&(*self.inner.get()).classes)[class].current;
            let block = if current.is_null() { None } else { Slab::pop(current) };
            let block = block.or_else(|| self.alloc_slow(class))?;
            self.add_live(u64::from(class::SIZES[class]));
            Some(block)
        }
    }

    /// [`Heap::alloc`] of zero bytes. A long block is a mapping of its own, of which only what is touched takes memory.
    ///
    /// # Safety
    /// As for [`Heap::alloc`].
    pub unsafe fn alloc_zeroed(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise.
        unsafe { self.alloc_zeros(size, align, Touched::Here) }
    }

    /// [`Heap::alloc_zeroed`] of a block all of which will be touched.
    ///
    /// # Safety
    /// As for [`Heap::alloc`].
    pub unsafe fn alloc_zeroed_dense(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise.
        unsafe { self.alloc_zeros(size, align, Touched::All) }
    }

    /// # Safety
    /// As for [`Heap::alloc`].
    unsafe fn alloc_zeros(&self, size: usize, align: usize, touched: Touched) -> Option<NonNull<u8>> {
        if size >= MAPPED_LEAST {
            return self.map_huge(size, align, touched);
        }
        // SAFETY: the caller's promise.
        let block = unsafe { self.alloc(size, align) }?;
        // SAFETY: fresh, and so long.
        unsafe { block.write_bytes(0, size) };
        Some(block)
    }

    /// Frees a block. From any task at any time; never waits. The block's memory is used
    /// again when the heap's next allocator runs short.
    ///
    /// # Safety
    /// `block` came from [`Heap::alloc`] of some heap and nobody uses it any more.
    pub unsafe fn free(block: NonNull<u8>) {
        // SAFETY: the caller's promise.
        let header = unsafe { Header::of(block) };
        // SAFETY: a live block's header is valid and its fixed part does not change; its heap
        // outlives it.
        unsafe {
            let heap = &*(*header.as_ptr()).heap;
            if let SlabKind::Huge { length } = (*header.as_ptr()).kind {
                heap.free_huge(header, length);
                return;
            }
            let link = block.cast::<Link>();
            link.write(Link::new());
            heap.returns.give(header.cast::<RemoteFreeList>(), link);
        }
    }

    /// Frees a block of this heap at once.
    ///
    /// # Safety
    /// As for [`Heap::free`] and the caller holds the claim, as for [`Heap::alloc`]; the block
    /// is of this heap.
    #[inline]
    pub unsafe fn free_local(&self, block: NonNull<u8>) {
        // SAFETY: the caller's promise.
        let header = unsafe { Header::of(block) };
        // SAFETY: a live block's header is valid; the claim makes its slab ours.
        unsafe {
            debug_assert!(core::ptr::eq((*header.as_ptr()).heap, self));
            match (*header.as_ptr()).kind {
                SlabKind::Slab { .. } => {
                    let slab = header.cast::<Slab>().as_ptr();
                    Slab::push(slab, block);
                    self.sub_live(u64::from((*slab).block_size));
                    if (*slab).listed == SlabState::Full || (*slab).used == 0 {
                        self.relist(slab);
                    }
                }
                SlabKind::Run { slabs } => self.free_run(header, slabs),
                SlabKind::Huge { length } => self.free_huge(header, length),
            }
        }
    }

    /// The bytes a block really has, at least as many as were asked for.
    ///
    /// # Safety
    /// `block` is a live block of some heap.
    #[must_use]
    pub unsafe fn usable_size(block: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        let header = unsafe { Header::of(block) };
        let offset = block.addr().get() - header.addr().get();
        // SAFETY: a live block's header is valid and this part of it does not change.
        match unsafe { (*header.as_ptr()).kind } {
            SlabKind::Slab { class } => class::SIZES[usize::from(class)] as usize,
            SlabKind::Run { slabs } => slabs as usize * SLAB_SIZE - offset,
            SlabKind::Huge { length } => length - offset,
        }
    }

    /// Takes back what other tasks freed and returns all unused memory to the kernel.
    ///
    /// # Safety
    /// The caller holds the claim, as for [`Heap::alloc`].
    pub unsafe fn trim(&self) {
        // SAFETY: the claim makes `inner` and all slabs ours.
        unsafe {
            self.drain();
            for class in 0..CLASSES {
                let current = (&(*self.inner.get()).classes)[class].current;
                if !current.is_null() && (*current).used == 0 {
                    (&mut (*self.inner.get()).classes)[class].current = null_mut();
                    self.retire(current);
                }
            }
            (*self.inner.get()).pool.trim();
            self.note_segments();
        }
        self.let_go();
    }

    /// Returns the mappings to the kernel that are kept, and says how many bytes they had. From any task.
    pub(crate) fn let_go(&self) -> u64 {
        self.kept.clear()
    }

    /// Memory in use. From any task.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let huge = self.huge.load(Ordering::Relaxed);
        Stats {
            live_bytes: self.live.load(Ordering::Relaxed) + huge,
            mapped_bytes: self.segments.load(Ordering::Relaxed) + huge + self.kept.bytes(),
        }
    }

    /// Asserts the conservation laws. For tests: visits everything.
    ///
    /// # Safety
    /// The caller holds the claim, as for [`Heap::alloc`].
    ///
    /// # Panics
    /// If a law is broken.
    pub unsafe fn check(&self) {
        let mut live = 0;
        let mut listed = 0;
        // SAFETY: the claim makes `inner` and all slabs ours; used slabs have valid headers.
        unsafe {
            (*self.inner.get()).pool.check(|start| {
                let header = start.cast::<Header>().as_ptr();
                assert!(core::ptr::eq((*header).heap, self), "a slab knows its heap");
                match (*header).kind {
                    SlabKind::Slab { .. } => {
                        let slab = header.cast::<Slab>();
                        Slab::check(slab);
                        live += u64::from((*slab).used) * u64::from((*slab).block_size);
                        listed += u32::from((*slab).listed != SlabState::Full);
                        1
                    }
                    SlabKind::Run { slabs } => {
                        live += u64::from(slabs) * SLAB_SIZE as u64;
                        slabs
                    }
                    SlabKind::Huge { .. } => panic!("a huge block has its own mapping"),
                }
            });
            for class in &(*self.inner.get()).classes {
                listed -= class.check();
            }
            assert_eq!((*self.inner.get()).pool.mapped_bytes(), self.segments.load(Ordering::Relaxed));
        }
        assert_eq!(listed, 0, "every slab with a free block is listed");
        assert_eq!(live, self.live.load(Ordering::Relaxed), "live bytes are counted");
    }

    /// The current slab has no block left: blocks that came back, another slab, a new one.
    #[cold]
    unsafe fn alloc_slow(&self, class: usize) -> Option<NonNull<u8>> {
        // SAFETY: the claim makes `inner` and all slabs ours.
        unsafe {
            if !self.returns.is_empty() {
                self.drain();
            }
            let lists = &mut (&mut (*self.inner.get()).classes)[class];
            if !lists.current.is_null() {
                if let Some(block) = Slab::pop(lists.current) {
                    return Some(block);
                }
                (*lists.current).listed = SlabState::Full;
                lists.current = null_mut();
            }
            if !lists.partial.is_null() {
                let slab = lists.partial;
                lists.unlink(slab);
                (*slab).listed = SlabState::Current;
                lists.current = slab;
                return Slab::pop(slab);
            }
            let slab = (*self.inner.get()).pool.take(1)?.cast::<Slab>();
            self.note_segments();
            slab.write(Slab::new(self, class));
            lists.current = slab.as_ptr();
            Slab::pop(slab.as_ptr())
        }
    }

    #[cold]
    unsafe fn alloc_large(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if align > LARGE_ALIGN_MAX {
            return self.map_huge(size, align, Touched::All);
        }
        let offset = align.max(LARGE_OFFSET);
        let total = size.checked_add(offset)?;
        let start = if total <= RUN_MAX as usize * SLAB_SIZE {
            let slabs = total.div_ceil(SLAB_SIZE) as u32;
            // SAFETY: the claim makes `inner` ours.
            let start = unsafe {
                self.drain();
                let start = (*self.inner.get()).pool.take(slabs)?;
                self.note_segments();
                start
            };
            self.add_live(u64::from(slabs) * SLAB_SIZE as u64);
            // SAFETY: the run is ours, aligned to a slab.
            unsafe { start.cast().write(Header::new(self, SlabKind::Run { slabs })) };
            start
        } else {
            return self.take_kept(total, offset).or_else(|| self.map_huge(size, align, Touched::All));
        };
        // SAFETY: the offset lies within the run, which is longer.
        Some(unsafe { start.add(offset) })
    }

    /// A block that begins so many bytes behind the beginning of a mapping that was kept, which has so many, and not
    /// many more.
    fn take_kept(&self, total: usize, offset: usize) -> Option<NonNull<u8>> {
        let start = self.kept.take(total as u64..=(total as u64).saturating_mul(2))?;
        // SAFETY: it is ours now, and its header is as it was.
        let length = unsafe { Header::length(start) };
        self.huge.fetch_add(length, Ordering::Relaxed);
        // SAFETY: the offset lies within the mapping, which is longer.
        Some(unsafe { start.cast().add(offset) })
    }

    /// A block that is a mapping of its own; its bytes are zero. Its header is in the slab that begins the mapping.
    fn map_huge(&self, size: usize, align: usize, touched: Touched) -> Option<NonNull<u8>> {
        let offset = align.clamp(LARGE_OFFSET, SLAB_SIZE);
        let length = size.checked_add(offset)?.checked_next_multiple_of(page())?;
        let is_huge = length >= HUGE_LEAST && touched == Touched::All;
        let start = if align > LARGE_ALIGN_MAX {
            map::map_aligned_behind(offset, length, align)?
        } else {
            map::map_aligned(length, if is_huge { HUGE_PAGE } else { SLAB_SIZE })?
        };
        if is_huge {
            // SAFETY: the mapping just made.
            unsafe { map::advise_huge(start, length) };
        }
        self.huge.fetch_add(length as u64, Ordering::Relaxed);
        // SAFETY: a fresh mapping, aligned to a slab.
        unsafe { start.cast().write(Header::new(self, SlabKind::Huge { length })) };
        // SAFETY: the offset lies within the mapping, which is longer.
        Some(unsafe { start.add(offset) })
    }

    /// Takes back the blocks that other tasks freed.
    unsafe fn drain(&self) {
        // SAFETY: the claim makes us the only drainer and the slabs ours.
        unsafe {
            self.returns.drain(|source, blocks| {
                let header = source.cast::<Header>();
                match (*header.as_ptr()).kind {
                    SlabKind::Slab { .. } => self.take_back(header.cast().as_ptr(), blocks),
                    SlabKind::Run { slabs } => self.free_run(header, slabs),
                    SlabKind::Huge { .. } => unreachable!("a huge block is unmapped by who frees it"),
                }
            });
        }
    }

    unsafe fn take_back(&self, slab: *mut Slab, blocks: FreedBlocks<'_>) {
        // SAFETY: the claim makes the slab ours; the blocks are its.
        unsafe {
            let before = (*slab).used;
            for link in blocks {
                Slab::push(slab, link.cast());
            }
            self.sub_live(u64::from(before - (*slab).used) * u64::from((*slab).block_size));
            self.relist(slab);
        }
    }

    /// Lists a slab to which blocks came back where it belongs now.
    unsafe fn relist(&self, slab: *mut Slab) {
        // SAFETY: the claim makes the slab and the lists ours.
        unsafe {
            let lists = &mut (&mut (*self.inner.get()).classes)[(*slab).class()];
            match ((*slab).listed, (*slab).used) {
                (SlabState::Current, _) => {}
                (SlabState::Partial, 0) => {
                    lists.unlink(slab);
                    self.retire(slab);
                }
                (SlabState::Full, 0) => self.retire(slab),
                (SlabState::Partial, _) => {}
                (SlabState::Full, _) => lists.link(slab),
            }
        }
    }

    /// Gives an empty, unlisted slab to the pool.
    unsafe fn retire(&self, slab: *mut Slab) {
        // SAFETY: none of its blocks is used or on its way back: each was drained.
        unsafe {
            (*self.inner.get()).pool.put(NonNull::new_unchecked(slab.cast()), 1);
            self.note_segments();
        }
    }

    unsafe fn free_run(&self, header: NonNull<Header>, slabs: u32) {
        self.sub_live(u64::from(slabs) * SLAB_SIZE as u64);
        // SAFETY: the run's only block is free; the claim makes the pool ours.
        unsafe {
            (*self.inner.get()).pool.put(header.cast(), slabs);
            self.note_segments();
        }
    }

    unsafe fn free_huge(&self, header: NonNull<Header>, length: usize) {
        self.huge.fetch_sub(length as u64, Ordering::Relaxed);
        // SAFETY: the mapping holds nothing but the block that is freed and its header.
        unsafe { self.kept.put(header) };
    }

    // The claim's holder is the only writer of the two counters, so load and store suffice.

    #[inline]
    fn add_live(&self, bytes: u64) {
        self.live.store(self.live.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    #[inline]
    fn sub_live(&self, bytes: u64) {
        self.live.store(self.live.load(Ordering::Relaxed) - bytes, Ordering::Relaxed);
    }

    /// Tells everybody how much is mapped.
    ///
    /// # Safety
    /// The caller holds the claim.
    unsafe fn note_segments(&self) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { (*self.inner.get()).pool.mapped_bytes() };
        self.segments.store(bytes, Ordering::Relaxed);
    }
}

/// A mapping whose block was freed.
impl Item for Header {
    unsafe fn length(this: NonNull<Self>) -> u64 {
        // SAFETY: the caller's promise.
        match unsafe { (*this.as_ptr()).kind } {
            SlabKind::Huge { length } => length as u64,
            SlabKind::Slab { .. } | SlabKind::Run { .. } => unreachable!("only mappings are kept"),
        }
    }

    unsafe fn release(this: NonNull<Self>) {
        // SAFETY: the caller's promise: nobody uses the mapping, which the header begins.
        unsafe { map::unmap(this.as_ptr().cast(), Self::length(this) as usize) };
    }
}

impl Drop for Heap {
    /// Unmaps the segments and what is kept. By [`Heap::alloc`]'s contract no block lives.
    fn drop(&mut self) {
        self.let_go();
        // SAFETY: we own the heap, and nobody uses a block of it.
        unsafe { self.inner.get_mut().pool.unmap_all() };
    }
}

impl Class {
    /// Adds a slab to the partial ones.
    unsafe fn link(&mut self, slab: *mut Slab) {
        // SAFETY: the caller holds the claim; listed slabs are valid.
        unsafe {
            (*slab).listed = SlabState::Partial;
            (*slab).prev = null_mut();
            (*slab).next = self.partial;
            if !self.partial.is_null() {
                (*self.partial).prev = slab;
            }
        }
        self.partial = slab;
    }

    /// Takes a slab out of the partial ones.
    unsafe fn unlink(&mut self, slab: *mut Slab) {
        // SAFETY: the caller holds the claim; a listed slab's neighbours are valid.
        unsafe {
            let (prev, next) = ((*slab).prev, (*slab).next);
            if prev.is_null() {
                self.partial = next;
            } else {
                (*prev).next = next;
            }
            if !next.is_null() {
                (*next).prev = prev;
            }
        }
    }

    /// Asserts that the lists are consistent and counts their slabs.
    unsafe fn check(&self) -> u32 {
        let mut count = u32::from(!self.current.is_null());
        let (mut slab, mut prev) = (self.partial, null_mut());
        while !slab.is_null() {
            // SAFETY: the caller holds the claim; listed slabs are valid.
            unsafe {
                assert_eq!((*slab).prev, prev, "the slab list is consistent");
                assert_eq!((*slab).listed, SlabState::Partial);
                prev = slab;
                slab = (*slab).next;
            }
            count += 1;
        }
        count
    }
}

// Large blocks lie behind their header; a segment's slabs have a bit each in a `u32`.
const _: () = assert!(size_of::<Header>() <= LARGE_OFFSET && RUN_MAX < u32::BITS);

#[cfg(test)]
mod tests;

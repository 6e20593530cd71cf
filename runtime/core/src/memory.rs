//! The one mapping that holds a node, its ranks and the tables of its subsystems.
//!
//! The kernel's pages are zero, and those that nobody touches cost nothing, so tables with an entry
//! for each pair of ranks are only address space.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;

/// What the size of tables depends on.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Ranks of the node.
    pub ranks: usize,
    /// Dedicated workers.
    pub workers: usize,
}

/// A part of the mapping, dealt out from its beginning.
#[derive(Debug)]
pub struct Table<T> {
    next: *mut T,
    left: usize,
}

impl<T> Table<T> {
    /// The next `count` elements, which are zero and nobody else's. Panics when there are not so many.
    ///
    /// Of a [`Cursor`] that only measures the address means nothing.
    pub fn take(&mut self, count: usize) -> *mut T {
        assert!(count <= self.left, "a table of the node is too short");
        let start = self.next;
        self.left -= count;
        self.next = start.wrapping_add(count);
        start
    }
}

/// Lays tables out one behind the other; a first pass, over no memory, measures.
#[derive(Debug)]
pub struct Cursor {
    base: *mut u8,
    offset: usize,
}

impl Cursor {
    /// A table of `count` elements, on a cache line of its own.
    pub fn table<T>(&mut self, count: usize) -> Table<T> {
        self.offset = self.offset.next_multiple_of(align_of::<T>().max(64));
        let next = self.base.wrapping_add(self.offset).cast::<T>();
        self.offset += count * size_of::<T>();
        Table { next, left: count }
    }

    /// One that measures.
    pub(crate) fn measuring() -> Self {
        Self { base: core::ptr::without_provenance_mut(4096), offset: 0 }
    }

    /// One over fresh memory with as much room as `measured` has laid out; `None` when the kernel has none. The memory
    /// is never unmapped.
    pub(crate) fn over_fresh(measured: &Self) -> Option<Self> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap_anonymous(
                null_mut(),
                measured.offset.next_multiple_of(cohort_arch::page()),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let base = base.ok()?;
        // Tables are laid out for more ranks than there are: a huge page would be mostly empty. A kernel without them
        // refuses the advice, which is as good.
        // SAFETY: the advice changes no content.
        let _ = unsafe { madvise(base, measured.offset, Advice::LinuxNoHugepage) };
        Some(Self { base: base.cast(), offset: 0 })
    }
}

/// Subsystems that there may be.
pub const SLOTS: usize = 8;

/// Where one subsystem's part of a rank or a node lies: null until it is made, with the node.
pub(crate) struct Room(UnsafeCell<*mut c_void>);

impl Room {
    pub(crate) const fn empty() -> Self {
        Self(UnsafeCell::new(null_mut()))
    }

    /// # Safety
    /// Nobody else sees the room yet.
    pub(crate) unsafe fn fill<T>(&self, part: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { *self.0.get() = part.cast() };
    }

    #[inline]
    pub(crate) fn get<T>(&self) -> *mut T {
        // SAFETY: it is written before anybody else sees it.
        unsafe { (*self.0.get()).cast() }
    }
}

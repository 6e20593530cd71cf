//! A heap behind a lock.

use crate::heap::{Heap, Stats};
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::sync::{futex, pause};
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and somebody may sleep for it.
const CONTENDED: u32 = 2;

/// Looks before a locker sleeps.
const SPINS: u32 = 100;

/// A heap that any task may allocate from: for what belongs to the node and not to a rank,
/// and as the node image's `#[global_allocator]`.
///
/// Allocation takes a lock (held for one allocation, never across a call out of this crate;
/// a waiter sleeps). Freeing never waits: if the lock is taken, the block goes the
/// remote way. Not for signal handlers, which could interrupt the lock's holder.
#[derive(Default)]
pub struct SharedHeap {
    lock: AtomicU32,
    heap: Heap,
}

/// The held lock.
struct Guard<'a>(&'a AtomicU32);

impl SharedHeap {
    /// A heap without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            lock: AtomicU32::new(FREE),
            heap: Heap::new(),
        }
    }

    /// Memory in use.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.heap.stats()
    }

    /// Returns unused memory to the kernel.
    pub fn trim(&self) {
        let _guard = self.lock();
        // SAFETY: the lock is this heap's claim.
        unsafe { self.heap.trim() };
    }

    fn try_lock(&self) -> Option<Guard<'_>> {
        // Acquire pairs with the Release of the guard's end.
        self.lock
            .compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| Guard(&self.lock))
    }

    fn lock(&self) -> Guard<'_> {
        for _ in 0..SPINS {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            pause();
        }
        // Acquire pairs with the Release of the guard's end.
        while self.lock.swap(CONTENDED, Ordering::Acquire) != FREE {
            futex::wait(&self.lock, CONTENDED, None);
        }
        Guard(&self.lock)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // Release pairs with the Acquire of the next locker.
        if self.0.swap(FREE, Ordering::Release) == CONTENDED {
            futex::wake(self.0, 1);
        }
    }
}

// SAFETY: blocks are those of `Heap`, which gives every live block its own memory of at least
// the asked size and alignment; the lock is the heap's claim. A `SharedHeap` that is a global
// allocator is a static: it is neither moved nor dropped.
unsafe impl GlobalAlloc for SharedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _guard = self.lock();
        // SAFETY: the lock is this heap's claim; the heap is a static.
        let block = unsafe { self.heap.alloc(layout.size(), layout.align()) };
        block.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        let Some(block) = NonNull::new(block) else {
            return;
        };
        // SAFETY: the caller frees a block of ours; the local way only under the lock.
        unsafe {
            match self.try_lock() {
                Some(_guard) => self.heap.free_local(block),
                None => Heap::free(block),
            }
        }
    }
}

#[cfg(test)]
mod tests;

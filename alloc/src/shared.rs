//! A heap behind a lock.

use crate::heap::{Heap, Stats};
use cohort_base::lock::FutexLock;
use cohort_base::sync::atomic::{AtomicBool, Ordering};
use cohort_base::sync::pause;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};

/// A heap that any task may allocate from: for what belongs to the node and not to a rank,
/// and as the node image's `#[global_allocator]`.
///
/// Allocation takes a lock (held for one allocation, never across a call out of this crate;
/// a waiter sleeps). Freeing never waits: if the lock is taken, the block goes the
/// remote way. Not for signal handlers, which could interrupt the lock's holder.
pub struct SharedHeap {
    /// Who has it has the heap's claim.
    lock: FutexLock<()>,
    heap: Heap,
    /// Whether tasks may die with the lock while others go on.
    is_guarded: AtomicBool,
    /// More of the same, for those who find the lock taken then.
    spares: [(FutexLock<()>, Heap); SPARES],
}

/// Bytes of freed long blocks that stay for the next ones: what operations on long data need in each call.
const KEPT: u64 = 32 << 20;

/// So many tasks may die in the middle of an allocation while others go on.
const SPARES: usize = 7;

/// How often somebody looks at all of them before it waits for the first one.
const ROUNDS: u32 = 1000;

impl SharedHeap {
    /// A heap without memory.
    ///
    /// # Safety
    /// It is neither moved nor dropped while a block of it lives: it is a static, or all blocks are freed before.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self {
            lock: FutexLock::new(()),
            heap: Heap::keeping(KEPT),
            is_guarded: AtomicBool::new(false),
            spares: [const { (FutexLock::new(()), Heap::new()) }; SPARES],
        }
    }

    /// From now on tasks may die at any instruction, and others go on: who finds a lock taken takes another heap, so
    /// that what somebody has died with is never touched again.
    pub fn guard(&self) {
        self.is_guarded.store(true, Ordering::Release);
    }

    /// Does `work` with a heap whose claim it has.
    #[inline]
    fn with<R>(&self, work: impl FnOnce(&Heap) -> R) -> R {
        if let Some(_guard) = self.lock.try_lock() {
            return work(&self.heap);
        }
        self.with_another(work)
    }

    #[cold]
    fn with_another<R>(&self, work: impl FnOnce(&Heap) -> R) -> R {
        let rounds = if self.is_guarded.load(Ordering::Acquire) { ROUNDS } else { 0 };
        for _ in 0..rounds {
            for (lock, heap) in &self.spares {
                if let Some(_guard) = lock.try_lock() {
                    return work(heap);
                }
            }
            pause();
        }
        let _guard = self.lock.lock();
        work(&self.heap)
    }

    /// Memory in use.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.heap.stats()
    }

    /// Returns unused memory to the kernel.
    pub fn trim(&self) {
        let _guard = self.lock.lock();
        // SAFETY: the lock is this heap's claim.
        unsafe { self.heap.trim() };
    }
}

/// The kernel has refused memory: tries again without what the heap keeps, and with the reserve.
#[cold]
fn at_the_end(heap: &Heap, layout: Layout, again: impl Fn() -> Option<NonNull<u8>>) -> Option<NonNull<u8>> {
    if heap.let_go() > 0
        && let Some(block) = again()
    {
        return Some(block);
    }
    #[cfg(not(miri))]
    {
        use crate::{map, reserve};
        map::note_refusal(layout.size());
        // Somebody else may have spent it a moment ago.
        reserve::spend();
        again()
    }
    #[cfg(miri)]
    {
        let _ = (layout, again);
        None
    }
}

// SAFETY: blocks are those of `Heap`, which gives every live block its own memory of at least
// the asked size and alignment; the lock is the heap's claim. The heap stays where it is
// while blocks live, by the promise of `SharedHeap::new`.
unsafe impl GlobalAlloc for SharedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|heap| {
            // SAFETY: we have this heap's claim; the heap stays where it is.
            let alloc = || unsafe { heap.alloc(layout.size(), layout.align()) };
            alloc().or_else(|| at_the_end(heap, layout, alloc)).map_or(null_mut(), NonNull::as_ptr)
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.with(|heap| {
            // SAFETY: as above.
            let alloc = || unsafe { heap.alloc_zeroed(layout.size(), layout.align()) };
            alloc().or_else(|| at_the_end(heap, layout, alloc)).map_or(null_mut(), NonNull::as_ptr)
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        let Some(block) = NonNull::new(block) else {
            return;
        };
        // SAFETY: the caller frees a block of ours; the local way only under the lock of the only heap.
        unsafe {
            match self.lock.try_lock().filter(|_| !self.is_guarded.load(Ordering::Relaxed)) {
                Some(_guard) => self.heap.free_local(block),
                None => Heap::free(block),
            }
        }
    }
}

#[cfg(test)]
mod tests;

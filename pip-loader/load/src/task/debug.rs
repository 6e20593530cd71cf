//! A table for debuggers: `gdb/cohort-gdb.py` finds it by name.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// What a debugger needs to find a rank's symbols. Three words, read by the script.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugRank {
    /// Process id.
    pub pid: usize,
    /// Base of its dynamic linker.
    pub linker: usize,
    /// Its `struct r_debug`, or 0 if the linker exports none.
    pub debug: usize,
}

/// Where the records are and how many.
#[repr(C)]
pub struct DebugTable {
    first: AtomicPtr<DebugRank>,
    len: AtomicUsize,
}

/// The table; empty until [`publish`].
#[used]
#[unsafe(no_mangle)]
pub static COHORT_DEBUG_RANKS: DebugTable =
    DebugTable { first: AtomicPtr::new(ptr::null_mut()), len: AtomicUsize::new(0) };

/// Makes the records visible to debuggers.
pub fn publish(ranks: &'static [DebugRank]) {
    COHORT_DEBUG_RANKS.first.store(ranks.as_ptr().cast_mut(), Ordering::Relaxed);
    // Release: whoever reads the length finds the records.
    COHORT_DEBUG_RANKS.len.store(ranks.len(), Ordering::Release);
}

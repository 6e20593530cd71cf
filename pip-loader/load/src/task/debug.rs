//! A table for debuggers: `gdb/cohort-gdb.py` finds it by name.

use crate::image::reserve;
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

/// The records of all ranks that there may be, in memory that stays where it is.
#[derive(Debug)]
pub struct DebugRanks {
    first: *mut DebugRank,
    capacity: usize,
}

impl DebugRanks {
    /// Room for so many: address space, until they are published.
    ///
    /// # Errors
    /// There is none.
    pub fn reserve(capacity: usize) -> std::io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let room = reserve(capacity.max(1) * size_of::<DebugRank>(), protection, libc::MAP_NORESERVE)?;
        Ok(Self { first: room.cast(), capacity })
    }

    /// Makes the records of the ranks from `first` on visible to debuggers, beside those that are.
    ///
    /// # Panics
    /// There is no room for so many.
    pub fn publish(&mut self, first: usize, records: impl IntoIterator<Item = DebugRank>) {
        let mut len = first;
        for record in records {
            assert!(len < self.capacity, "no room for so many ranks");
            // SAFETY: the mapping has `capacity` records and stays. A debugger reads it while this process is stopped.
            unsafe { self.first.add(len).write_volatile(record) };
            len += 1;
        }
        COHORT_DEBUG_RANKS.first.store(self.first, Ordering::Relaxed);
        // Release: whoever reads the length finds the records.
        COHORT_DEBUG_RANKS.len.fetch_max(len, Ordering::Release);
    }
}

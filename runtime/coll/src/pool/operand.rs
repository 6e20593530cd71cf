//! Operands that members read, and copies of those that a result may overwrite too early.

use cohort_alloc::Heap;
use core::ptr::{NonNull, null_mut};

/// What others read of a member in place of its buffer.
#[derive(Clone, Copy)]
pub(crate) struct Operand {
    /// The operand of a reducing operation; the packed blocks of an alltoall in place.
    pub(crate) data: *const u8,
    /// The block of the member's heap that holds the copy, or null.
    pub(crate) block: *mut u8,
}

impl Operand {
    /// None.
    pub(crate) const NONE: Self = Self { data: null_mut(), block: null_mut() };

    /// Frees the copy, if there is one.
    ///
    /// # Safety
    /// Nobody reads it any more.
    pub(crate) unsafe fn free(&self) {
        if let Some(block) = NonNull::new(self.block) {
            // SAFETY: a block of a rank's heap, and the caller's promise.
            unsafe { Heap::free(block) };
        }
    }

    /// The packed block for `member` of an alltoall in place.
    ///
    /// # Safety
    /// The operand is of such an operation, with more than `member` members.
    pub(crate) unsafe fn packed_block(&self, member: usize) -> *const u8 {
        // SAFETY: the block begins with one offset for each member.
        unsafe {
            let offset = self.block.cast::<u64>().add(member).read();
            self.data.add(offset as usize)
        }
    }
}

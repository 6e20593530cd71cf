//! Packed bytes in a block of a rank's heap, which go with a message.

use cohort_alloc::Heap;
use cohort_core::claim::Claim;
use cohort_datatype::{self as datatype, Buffer};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// Packed bytes in a block of their own, which goes with them.
#[derive(Debug)]
pub struct PackedBlock {
    block: NonNull<u8>,
    bytes: u64,
}

impl PackedBlock {
    /// The packed data of a buffer, in the claimed rank's heap; `None` when memory is short. Data of no bytes has an
    /// address of its own too: the ends of a message are known by it.
    pub fn of(claim: &mut Claim<'_>, buffer: Buffer<'_>) -> Option<Self> {
        let bytes = buffer.bytes();
        let block = claim.alloc(usize::try_from(bytes.max(1)).ok()?)?;
        // SAFETY: the block is fresh and has so many bytes.
        unsafe { datatype::pack(buffer, 0, block.as_ptr(), bytes) };
        Some(Self { block, bytes })
    }

    /// A plain value as a message.
    pub(crate) fn of_value<T: Copy>(claim: &mut Claim<'_>, value: T) -> Option<Self> {
        let block = claim.alloc(size_of::<T>())?;
        // SAFETY: the block is fresh and has room for the value.
        unsafe { block.cast::<T>().write(value) };
        Some(Self { block, bytes: size_of::<T>() as u64 })
    }

    /// How many there are.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where they are.
    pub(crate) fn data(&self) -> *mut u8 {
        self.block.as_ptr()
    }

    /// The block, which is the caller's to free.
    pub(crate) fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self).block
    }
}

impl Drop for PackedBlock {
    fn drop(&mut self) {
        // SAFETY: it came from a rank's heap, and nobody else has it.
        unsafe { Heap::free(self.block) };
    }
}

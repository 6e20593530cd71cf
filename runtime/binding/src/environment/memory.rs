//! Memory (MPI-4.1 section 9.2).

use crate::arguments::on_process;
use cohort_abi::{Abi, neutral};
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

/// Alignment of memory that `MPI_Alloc_mem` gives: a cache line.
const ALIGNMENT: usize = 64;

/// `MPI_Alloc_mem`: from the rank's own heap.
///
/// # Safety
/// MPI's: `base` points to a pointer; `caller` is the calling rank.
pub unsafe extern "C" fn alloc_mem<A: Abi>(
    caller: *const c_void,
    size: isize,
    _info: A::Info,
    base: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Alloc_mem", |call| {
            call.output(base, "baseptr")?;
            let size = usize::try_from(size).map_err(|_| neutral::ERR_ARG)?;
            let block = call.rank().enter().alloc_aligned(size.max(1), ALIGNMENT);
            let block = block.ok_or(neutral::ERR_NO_MEM)?;
            base.cast::<*mut c_void>().write(block.as_ptr().cast());
            Ok(())
        })
    }
}

/// `MPI_Free_mem`.
///
/// # Safety
/// MPI's: `base` came from `MPI_Alloc_mem` and was not freed; `caller` is the calling rank.
pub unsafe extern "C" fn free_mem<A: Abi>(caller: *const c_void, base: *mut c_void) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Free_mem", |_| {
            let block = NonNull::new(base.cast::<u8>()).ok_or(neutral::ERR_BASE)?;
            cohort_alloc::Heap::free(block);
            Ok(())
        })
    }
}

//! Memory (MPI-4.1 section 9.2).

use crate::arguments::{Call, Outcome};
use cohort_abi::parameters::{Base, Out};
use cohort_abi::{Abi, neutral};
use core::ffi::c_void;
use core::ptr::NonNull;

/// Alignment of memory that `MPI_Alloc_mem` gives: a cache line.
const ALIGNMENT: usize = 64;

/// `MPI_Alloc_mem`: from the rank's own heap, at the alignment that the program asks for, if it does.
pub fn alloc_mem<A: Abi>(call: &Call<'_, A>, size: isize, info: A::Info, base: Out<'_, *mut c_void>) -> Outcome<()> {
    let base = call.output(base, "baseptr")?;
    let size = usize::try_from(size).map_err(|_| neutral::ERR_ARG)?;
    let hints = crate::info::given(call, info)?;
    let align = crate::info::alignment(call, &hints)?.max(ALIGNMENT);
    let block = call.rank().enter().alloc_aligned(size.max(1), align);
    let block = block.ok_or_else(|| {
        let what = format_args!("no room for {size} bytes at a multiple of {align}");
        call.blame(neutral::ERR_NO_MEM, what)
    })?;
    base.write(block.as_ptr().cast());
    Ok(())
}

/// `MPI_Free_mem`. NULL is nothing to free, as for `free` and in other MPIs.
pub fn free_mem<A: Abi>(_call: &Call<'_, A>, base: Base) -> Outcome<()> {
    let Some(block) = NonNull::new(base.as_ptr().cast::<u8>()) else {
        return Ok(());
    };
    // SAFETY: MPI's promise: the program got the block from MPI_Alloc_mem and frees it once.
    unsafe { cohort_alloc::Heap::free(block) };
    Ok(())
}

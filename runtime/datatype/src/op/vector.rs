//! The loop of reductions, and that of many elements in the widest vectors of the machine.
//!
//! The loop is the same as for few elements, compiled once more for each width. It makes the same additions and
//! products in the same order, and none is contracted, so results are the same bit for bit whatever the machine.

use cohort_arch::prefetch;
use core::mem::MaybeUninit;

mod arch;

pub(super) use arch::apply;

/// Elements that the loop for every machine does as fast.
pub(super) const FEW: usize = 64;

/// Bytes of operands that are not in the first-level cache when they are longer.
const NEAR: usize = 24 << 10;

/// What is asked for at a time, so far ahead of what is combined. Loads that cross lines, as those of blocks of C
/// libraries do, keep the processor from looking ahead far enough by itself.
const BLOCK: usize = 256;
const AHEAD: usize = 1024;
const LINE: usize = 64;

/// A binary operation on values of one type.
pub(super) trait Combine<T> {
    fn of(input: T, inout: T) -> T;
}

/// The loop of one operation, in the instructions of the function around it.
///
/// # Safety
/// As [`Kernel`], for elements of type `T`.
#[inline(always)]
pub(super) unsafe fn each<T: Copy, O: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    let (input, inout) = (input.cast::<T>(), inout.cast::<T>());
    for index in 0..count {
        // SAFETY: `index` is below `count`; unaligned accesses need no alignment.
        unsafe {
            let value = O::of(input.add(index).read_unaligned(), inout.add(index).read_unaligned());
            inout.add(index).write_unaligned(value);
        }
    }
}

/// The loop, which asks for memory ahead if there is much.
///
/// # Safety
/// As [`apply`].
#[inline(always)]
unsafe fn ahead<T: Copy, O: Combine<T>>(mut input: *const u8, mut inout: *mut u8, mut count: usize) {
    let block = const {
        assert!(BLOCK.is_multiple_of(size_of::<T>()));
        BLOCK / size_of::<T>()
    };
    if count * size_of::<T>() > NEAR {
        while count >= block {
            for line in 0..BLOCK / LINE {
                let at = AHEAD + line * LINE;
                prefetch(input.wrapping_add(at));
                prefetch(inout.wrapping_add(at));
            }
            // SAFETY: the caller's promise: so many elements are left.
            unsafe {
                one_block::<T, O>(input, inout);
                input = input.add(BLOCK);
                inout = inout.add(BLOCK);
            }
            count -= block;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { each::<T, O>(input, inout, count) }
}

/// Combines a block. The operands are in registers before anything is stored, so nothing must be found out about
/// where the two lie.
///
/// # Safety
/// As [`apply`], for [`BLOCK`] bytes.
#[inline(always)]
unsafe fn one_block<T: Copy, O: Combine<T>>(input: *const u8, inout: *mut u8) {
    let mut operands = MaybeUninit::<[u8; BLOCK]>::uninit();
    let operands = (&raw mut operands).cast::<u8>();
    // SAFETY: the caller's promise; there is room for a block.
    unsafe {
        operands.copy_from_nonoverlapping(input, BLOCK);
        each::<T, O>(operands, inout, BLOCK / size_of::<T>());
    }
}

//! The pages of a program that Miri runs: it knows no kernel, but checks every access to what it has allocated itself.

extern crate std;

use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed};

/// More than this is refused; Miri would end the program.
const LIMIT: usize = 1 << 30;

/// As of the kernel.
pub(crate) fn map_aligned(length: usize, align: usize) -> Option<NonNull<u8>> {
    if length > LIMIT {
        return None;
    }
    let layout = Layout::from_size_align(length, align).ok()?;
    // SAFETY: callers ask for at least a page.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// As of the kernel.
pub(crate) fn map_aligned_behind(head: usize, length: usize, align: usize) -> Option<NonNull<u8>> {
    let start = map_aligned(length.checked_add(align)?, align)?;
    let skipped = head.next_multiple_of(align) - head;
    // SAFETY: less than `align`, which the block has beyond `length`.
    Some(unsafe { start.add(skipped) })
}

/// Nothing: Miri has no pages.
///
/// # Safety
/// None; as of the kernel.
pub(crate) unsafe fn advise_huge(_start: NonNull<u8>, _length: usize) {}

/// Keeps the pages: their alignment is not known any more, and Miri's programs are short.
///
/// # Safety
/// None; as of the kernel.
pub(crate) unsafe fn unmap(_start: *mut u8, _length: usize) {}

/// As of the kernel.
///
/// # Safety
/// As of the kernel.
pub(crate) unsafe fn discard(start: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { start.write_bytes(0, length) };
}

//! The allocator: the C library's of the rank's own program.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

#[link(name = "c")]
unsafe extern "C" {
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

struct Libc;

#[global_allocator]
static ALLOCATOR: Libc = Libc;

// SAFETY: the C library's memory is aligned as asked, of the size asked for, and its own until it is freed.
unsafe impl GlobalAlloc for Libc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size().next_multiple_of(layout.align());
        // SAFETY: the alignment is a power of two, and divides the size.
        unsafe { aligned_alloc(layout.align(), size) }.cast()
    }

    unsafe fn dealloc(&self, memory: *mut u8, _layout: Layout) {
        // SAFETY: it is of `alloc`.
        unsafe { free(memory.cast()) };
    }
}

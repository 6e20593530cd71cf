//! `libcohort_malloc.so`: jemalloc under the C library's names, for ranks of jobs with `COHORT_MALLOC=jemalloc`.
//!
//! The loader has each rank's dynamic linker preload it, so that the program, its libraries and the C library itself
//! find `malloc` and what goes with it here. Each rank has a copy of its own, with its own state. The settings are
//! those for many ranks in one address space, where each call that takes pages away interrupts all other ranks' CPUs.
//! Users add to them by `_RJEM_MALLOC_CONF` (jemalloc's `MALLOC_CONF`).
//!
//! Each function here calls jemalloc's of the same name, which the build gives a prefix. Those that jemalloc lacks are
//! made of others.
#![no_std]

use cohort_arch::page;
use core::ffi::{c_int, c_void};
use core::ptr;
use tikv_jemalloc_sys as jemalloc;

/// What jemalloc reads before its first allocation.
///
/// Freed blocks of 8 MB and more are kept like shorter ones; as jemalloc comes, their pages go back to the kernel at
/// once. The limit is one that no block reaches: with 0, which is to mean none, jemalloc forgets the first arena.
/// Pages that nobody uses go back in the course of a minute, in 200 steps, of which each may interrupt all other
/// ranks' CPUs; as it comes, of ten seconds. The break, which all ranks share, is left alone.
const SETTINGS: &[u8] = b"oversize_threshold:70368744177664,dirty_decay_ms:60000,dss:disabled\0";

/// Where jemalloc looks for its settings: a pointer to a C string.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static CONFIGURATION: Option<&'static u8> = Some(&SETTINGS[0]);

/// `malloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    unsafe { jemalloc::malloc(size) }
}

/// `calloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any product will do.
    unsafe { jemalloc::calloc(count, size) }
}

/// `realloc(3)`
///
/// # Safety
/// `block` is one that is not freed yet, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { jemalloc::realloc(block, size) }
}

/// `reallocarray(3)`
///
/// # Safety
/// As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(size) => unsafe { jemalloc::realloc(block, size) },
        None => refused(libc::ENOMEM),
    }
}

/// `free(3)`
///
/// # Safety
/// As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { jemalloc::free(block) }
}

/// `free_sized`, of C23.
///
/// # Safety
/// As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { jemalloc::free(block) }
}

/// `free_aligned_sized`, of C23.
///
/// # Safety
/// As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _alignment: usize, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { jemalloc::free(block) }
}

/// `posix_memalign(3)`
///
/// # Safety
/// `block` points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(block: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    // SAFETY: the caller's promise; jemalloc refuses alignments that are none.
    unsafe { jemalloc::posix_memalign(block, alignment, size) }
}

/// `aligned_alloc(3)`; any alignment is rounded up to a power of two, as in glibc before 2.38.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    match alignment.checked_next_power_of_two() {
        // SAFETY: the alignment is a power of two; a size that has no room is refused.
        Some(alignment) => unsafe { jemalloc::aligned_alloc(alignment, size) },
        None => refused(libc::EINVAL),
    }
}

/// `memalign(3)`
#[unsafe(no_mangle)]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    aligned_alloc(alignment, size)
}

/// `valloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    aligned_alloc(page(), size)
}

/// `pvalloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(page()) {
        Some(size) => aligned_alloc(page(), size),
        None => refused(libc::ENOMEM),
    }
}

/// `malloc_usable_size(3)`
///
/// # Safety
/// As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *const c_void) -> usize {
    // SAFETY: the caller's promise.
    unsafe { jemalloc::malloc_usable_size(block) }
}

/// Nothing, and why.
#[cold]
fn refused(error: c_int) -> *mut c_void {
    // SAFETY: the calling thread's own `errno`.
    unsafe { *libc::__errno_location() = error };
    ptr::null_mut()
}

#[panic_handler]
fn panic(_information: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: it may be called anywhere. Nothing above panics.
    unsafe { libc::abort() }
}

cohort_arch::no_unwinder!();

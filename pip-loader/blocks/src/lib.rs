//! `libcohort_blocks.so`: the C library's `malloc`, with a note of each block for the checker (`--check`).
//!
//! The loader has each rank's dynamic linker preload it, so that the program, its libraries and the C library itself
//! find `malloc` and what goes with it here. Each function calls the C library's own of the same name, and gives what
//! that gives: blocks are neither longer nor elsewhere. Those that are not known, as something has given them out
//! before, are passed on.
#![no_std]

mod arch;

use cohort_arch::{page, system_call};
use cohort_base::blocks::{Block, Blocks, Freed};
use cohort_base::boot::{AT_COHORT, MAGIC, RankBoot, VERSION};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;
use linux_raw_sys::general::{__NR_mmap, MAP_ANONYMOUS, MAP_NORESERVE, MAP_PRIVATE, PROT_READ, PROT_WRITE};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

/// The rank's.
static BLOCKS: Blocks = Blocks::new();

/// Tells the checker where they are noted.
extern "C" fn begin() {
    // SAFETY: it may be called anywhere.
    let address = unsafe { libc::getauxval(AT_COHORT) };
    let boot = ptr::with_exposed_provenance::<RankBoot>(address as usize);
    // SAFETY: NULL, or the loader's record of this rank, which stays.
    let boot = unsafe { boot.as_ref() }.filter(|boot| (boot.magic, boot.version) == (MAGIC, VERSION));
    if let Some(boot) = boot {
        // Release pairs with the Acquire of those who look.
        boot.blocks.store((&raw const BLOCKS).cast_mut(), Ordering::Release);
    }
}

/// Run by the dynamic linker.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Zeros that stay, for a table.
fn make(bytes: usize) -> Option<NonNull<u8>> {
    let (protection, kind) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    // SAFETY: new memory, where the kernel likes.
    let made = unsafe { system_call(__NR_mmap, [0, bytes, protection as usize, kind as usize, usize::MAX, 0]) };
    // An error is a negative number.
    let address = usize::try_from(made).ok()?;
    NonNull::new(ptr::with_exposed_provenance_mut(address))
}

/// Notes a block that the C library has given out.
fn noted(block: *mut c_void, bytes: usize) -> *mut c_void {
    if !block.is_null() {
        BLOCKS.add(Block { start: block.expose_provenance(), bytes }, make);
    }
    block
}

/// Whether the C library may give a block's memory back to the kernel: it is a mapping of its own, or of another arena
/// than the first.
///
/// # Safety
/// The block is one of the C library's that is not freed.
unsafe fn is_mapping(block: *mut c_void) -> bool {
    const MAPPED: usize = 2;
    const OTHER_ARENA: usize = 4;
    // SAFETY: the word before a block is its size, whose lowest bits say that.
    unsafe { block.cast::<usize>().sub(1).read() & (MAPPED | OTHER_ARENA) != 0 }
}

/// `malloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    noted(unsafe { __libc_malloc(size) }, size)
}

/// `calloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any product will do.
    noted(unsafe { __libc_calloc(count, size) }, count.wrapping_mul(size))
}

/// `free(3)`, called by the code before an address.
///
/// # Safety
/// `block` is one that is not freed yet, or null.
unsafe extern "C" fn free_called_by(block: *mut c_void, by: usize) {
    // Nobody has the block any more when another thread gets it.
    if let Some((known, is_watched)) = BLOCKS.take(block.expose_provenance()) {
        // SAFETY: the caller's promise, and it is one of the C library's.
        let is_mapping = unsafe { is_mapping(block) };
        BLOCKS.note_freed(Freed { block: known, by, is_mapping }, is_watched);
    }
    // SAFETY: the caller's promise.
    unsafe { __libc_free(block) }
}

/// `realloc(3)`, called by the code before an address.
///
/// # Safety
/// As for [`free_called_by`].
unsafe extern "C" fn realloc_called_by(block: *mut c_void, size: usize, by: usize) -> *mut c_void {
    let taken = BLOCKS.take(block.expose_provenance());
    // SAFETY: the caller's promise, and a block that is known is one of the C library's.
    let is_mapping = taken.is_some() && unsafe { is_mapping(block) };
    // SAFETY: the caller's promise.
    let moved = unsafe { __libc_realloc(block, size) };
    if let Some((known, is_watched)) = taken {
        if moved.is_null() && size > 0 {
            // It stays as it was.
            BLOCKS.add(known, make);
        } else if moved != block {
            BLOCKS.note_freed(Freed { block: known, by, is_mapping }, is_watched);
        }
        if is_watched && (moved == block || moved.is_null()) {
            noted(moved, size);
            BLOCKS.watch(known.start);
            return moved;
        }
    }
    noted(moved, size)
}

/// `reallocarray(3)`
///
/// # Safety
/// As for [`free_called_by`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(size) => unsafe { realloc_called_by(block, size, 0) },
        None => refused(libc::ENOMEM),
    }
}

/// `posix_memalign(3)`
///
/// # Safety
/// `block` points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(block: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    // SAFETY: the calling thread's own `errno`, which this function leaves alone.
    let error = unsafe { *libc::__errno_location() };
    let made = memalign(alignment, size);
    if made.is_null() {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = error };
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { block.write(made) };
    0
}

/// `memalign(3)`
#[unsafe(no_mangle)]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: any alignment and size will do.
    noted(unsafe { __libc_memalign(alignment, size) }, size)
}

/// `aligned_alloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    memalign(alignment, size)
}

/// `valloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(page(), size)
}

/// `pvalloc(3)`
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(page()) {
        Some(size) => memalign(page(), size),
        None => refused(libc::ENOMEM),
    }
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

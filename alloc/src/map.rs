//! Pages from the kernel.

#[cfg(miri)]
mod checked;

#[cfg(miri)]
pub(crate) use checked::{advise_huge, discard, map_aligned, map_aligned_behind, unmap};
#[cfg(not(miri))]
use core::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(miri))]
pub(crate) use kernel::{advise_huge, discard, map_aligned, map_aligned_behind, unmap};

/// What the kernel refused last, for messages.
#[cfg(not(miri))]
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Remembers that memory was refused.
#[cfg(not(miri))]
pub(crate) fn note_refusal(length: usize) {
    REFUSED.store(length, Ordering::Relaxed);
}

/// The bytes that were refused last; 0 if none ever were.
#[cfg(not(any(loom, miri)))]
pub(crate) fn refused() -> usize {
    REFUSED.load(Ordering::Relaxed)
}

pub(crate) use cohort_arch::page;

#[cfg(not(miri))]
mod kernel {
    use super::page;
    use core::ptr::{NonNull, null_mut};
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    /// Maps `length` bytes (a multiple of a page) of zeros at a multiple of `align`, a power of
    /// two of at least a page. Nothing is reserved: pages cost memory when they are written.
    pub(crate) fn map_aligned(length: usize, align: usize) -> Option<NonNull<u8>> {
        map_aligned_behind(0, length, align)
    }

    /// [`map_aligned`], but the byte that `head` bytes (pages) lie before is at the multiple of `align`.
    pub(crate) fn map_aligned_behind(head: usize, length: usize, align: usize) -> Option<NonNull<u8>> {
        let padded = length.checked_add(align - page())?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nobody.
        let start = unsafe { mmap_anonymous(null_mut(), padded, protection, flags) }
            .inspect_err(|_| super::note_refusal(length))
            .ok()?
            .cast::<u8>();
        let before = start.wrapping_add(head).align_offset(align);
        let after = padded - before - length;
        let aligned = start.wrapping_add(before);
        // SAFETY: both ends lie in the mapping just made, outside what is handed out.
        unsafe {
            unmap(start, before);
            unmap(aligned.wrapping_add(length), after);
        }
        NonNull::new(aligned)
    }

    /// Has the kernel take pages of 2 MB for a range, if the system allows programs to ask for them.
    ///
    /// # Safety
    /// The range is a mapping of [`map_aligned`].
    pub(crate) unsafe fn advise_huge(start: NonNull<u8>, length: usize) {
        // SAFETY: the caller's promise; the content stays. A kernel that refuses has small pages only.
        let _ = unsafe { madvise(start.as_ptr().cast(), length, Advice::LinuxHugepage) };
    }

    /// Unmaps `length` bytes, a multiple of a page; nothing if 0.
    ///
    /// # Safety
    /// The range came from [`map_aligned`] and nobody uses it any more.
    pub(crate) unsafe fn unmap(start: *mut u8, length: usize) {
        if length > 0 {
            // SAFETY: the caller's promise. A failure (too many mappings) leaks address space only.
            let _ = unsafe { munmap(start.cast(), length) };
        }
    }

    /// Gives the memory of a range back; it reads as zeros afterwards.
    ///
    /// # Safety
    /// The range lies in a mapping of [`map_aligned`], and nobody needs its content.
    pub(crate) unsafe fn discard(start: *mut u8, length: usize) {
        // SAFETY: the caller's promise. A failure keeps the memory, which is merely not thrifty.
        let _ = unsafe { madvise(start.cast(), length, Advice::LinuxDontNeed) };
    }
}

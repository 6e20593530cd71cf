//! A part of a file as memory, into which short pieces are written.
//!
//! A call of the kernel for each short piece takes most of the time of a write with gaps. To read the gaps and write
//! them back with the pieces would be fewer calls, and lose what others have written there meanwhile. Through a mapping
//! only the pieces' bytes are stored, and the gaps stay what they are, whoever writes them.
//!
//! What the kernel says to a write it says of a mapping by a signal: of a full file system, or of a file that somebody
//! cuts meanwhile. So copies are guarded. Whatever goes wrong, pieces are written one by one then, and the kernel says
//! what is the matter.
//!
//! Most of the time goes to pages that come into the mapping. On disks all are asked for at once, to be written. On
//! tmpfs, which does not note when a page is written first, a read of one brings its neighbours that are there.
//!
//! Only file systems of one machine are written so: others know of pages who has written them, and not of bytes.

use cohort_arch::page;
use cohort_core::guard::guarded_mapping;
use core::ffi::c_void;
use core::ptr::null_mut;
use rustix::fd::BorrowedFd;
use rustix::fs::fstatfs;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// The number of tmpfs.
const TMPFS: u64 = 0x0102_1994;

/// Numbers of file systems whose mappings do as much as writes: tmpfs; ext2, ext3 and ext4; XFS; overlayfs, whose files
/// that are written are in one of a machine's own.
const KNOWN: [u64; 4] = [TMPFS, 0xEF53, 0x5846_5342, 0x794C_7630];

/// Bytes whose pages a read of one of them brings with it, if they are there, wherever so many may begin: what kernels
/// do unless told otherwise.
const AROUND: usize = 64 << 10;

/// A mapped part of a file.
pub struct Mapping {
    pages: *mut c_void,
    bytes: usize,
    /// Where in the pages the part begins.
    inside: usize,
    /// Pages come as they are used.
    is_empty: bool,
}

impl Mapping {
    /// `bytes` bytes from `offset` on, all of which the file has. `None`: it cannot be, for whatever reason.
    pub(super) fn of(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> Option<Self> {
        let kind = fstatfs(file).ok().map(|found| found.f_type as u64).filter(|kind| KNOWN.contains(kind))?;
        let inside = offset % page() as u64;
        let bytes = usize::try_from(inside + bytes).ok()?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let pages = unsafe { mmap(null_mut(), bytes, protection, flags, file, offset - inside) }.ok()?;
        let mapping = Self { pages, bytes, inside: inside as usize, is_empty: kind == TMPFS };
        if !mapping.is_empty {
            // SAFETY: they are the mapping's.
            unsafe { madvise(pages, bytes, Advice::LinuxPopulateWrite) }.ok()?;
        }
        Some(mapping)
    }

    /// Has `copy` copy to the part of the file, which begins where it is told. `false`: it has ended in the middle.
    ///
    /// # Safety
    /// It only copies, within the part and memory of its caller's.
    pub(crate) unsafe fn fill(&self, copy: impl Fn(*mut u8)) -> bool {
        let start = self.pages.cast::<u8>().wrapping_add(self.inside);
        let copy = &copy;
        let filled = || {
            self.bring();
            copy(start);
        };
        // SAFETY: the caller's promise.
        unsafe { guarded_mapping(filled) }.is_ok()
    }

    /// Has pages that are there come together.
    fn bring(&self) {
        let next = AROUND - self.pages.addr() % AROUND;
        let places = core::iter::once(0).chain((next..self.bytes).step_by(AROUND));
        for at in places.filter(|_| self.is_empty) {
            // SAFETY: in the mapping; whatever is there.
            let _ = unsafe { self.pages.cast::<u8>().wrapping_add(at).read_volatile() };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `of`, and used by nobody any more.
        let _ = unsafe { munmap(self.pages, self.bytes) };
    }
}

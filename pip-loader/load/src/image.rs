//! Maps an ELF file that was read into a [`LoadPlan`], as often as there are ranks.

use crate::elf::{self, ElfError, LoadPlan, Segment};
use cohort_arch::page;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr;

/// A file ready to be mapped.
#[derive(Debug)]
pub struct Template {
    file: File,
    plan: LoadPlan,
    path: PathBuf,
}

/// One mapping of a [`Template`]. It has no destructor: the task that runs in it may
/// outlive every value of the root, so it stays mapped until the address space ends.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// What was added to every address of the file.
    pub base: usize,
    /// First mapped byte.
    pub start: usize,
    /// One past the last mapped byte.
    pub end: usize,
    /// Address of the first instruction.
    pub entry: usize,
    /// Address of the program headers.
    pub headers: usize,
    /// Number of program headers.
    pub headers_count: usize,
}

/// Why a file did not become a [`Template`].
#[derive(Debug)]
pub enum OpenError {
    /// It could not be opened or read.
    Io(io::Error),
    /// Its content cannot be loaded.
    Elf(ElfError),
}

/// The bytes of a regular file, mapped read-only; an empty file has none.
///
/// # Errors
/// Opening or mapping fails.
pub fn file_bytes(file: &File) -> io::Result<Option<memmap2::Mmap>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the mapping is private and only read. A file truncated by somebody else
    // meanwhile raises SIGBUS, as it does for every program that is executed.
    unsafe { memmap2::Mmap::map(file) }.map(Some)
}

impl Template {
    /// Opens and reads `path`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let file = File::open(path).map_err(OpenError::Io)?;
        let bytes = file_bytes(&file).map_err(OpenError::Io)?;
        let plan = elf::parse(bytes.as_deref().unwrap_or_default()).map_err(OpenError::Elf)?;
        if plan.fixed_address {
            let what = "its addresses are fixed (ET_EXEC)";
            return Err(OpenError::Elf(ElfError::Malformed(what)));
        }
        Ok(Self { file, plan, path: path.to_owned() })
    }

    /// What the file asks for.
    #[must_use]
    pub fn plan(&self) -> &LoadPlan {
        &self.plan
    }

    /// Where it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address, relative to the base, of a symbol that the file exports.
    #[must_use]
    pub fn exported_symbol(&self, name: &str) -> Option<u64> {
        elf::exported_symbol(&file_bytes(&self.file).ok()??, name)
    }

    /// Whether the file contains `text` anywhere.
    #[must_use]
    pub fn mentions(&self, text: &[u8]) -> bool {
        let bytes = file_bytes(&self.file).ok().flatten();
        bytes.is_some_and(|bytes| bytes.windows(text.len()).any(|window| window == text))
    }

    /// Maps the file once more, at an address that the kernel chooses: one reservation
    /// for the whole span, then one mapping per segment over it.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn map(&self) -> io::Result<Image> {
        let span = (self.plan.span.end - self.plan.span.start) as usize;
        let start = reserve(span, libc::PROT_NONE, libc::MAP_NORESERVE)?;
        let base = (start as usize).wrapping_sub(self.plan.span.start as usize);
        for segment in &self.plan.segments {
            // SAFETY: `parse` promises that segments are inside the span, which was reserved above and is referenced by
            // nobody yet, and that a page that two have in common is the same page of the file.
            unsafe { self.map_segment(base, segment)? };
        }
        Ok(Image {
            base,
            start: start as usize,
            end: start as usize + span,
            entry: base.wrapping_add(self.plan.entry as usize),
            headers: base.wrapping_add(self.plan.headers as usize),
            headers_count: usize::from(self.plan.headers_count),
        })
    }

    /// Maps one segment's file pages and its zero-filled rest.
    ///
    /// # Safety
    /// The segment's pages at `base` are reserved and unused, but for one that already is the same page of the file.
    unsafe fn map_segment(&self, base: usize, segment: &Segment) -> io::Result<()> {
        let page = page();
        let begin = base.wrapping_add(segment.address as usize);
        let file_end = begin + segment.file_len as usize;
        let memory_end = (begin + segment.memory_len as usize).next_multiple_of(page);
        let first_page = begin / page * page;
        let protection = protection(segment);
        let file_pages_end = file_end.next_multiple_of(page);
        if segment.file_len > 0 {
            let offset = segment.file_offset / page as u64 * page as u64;
            let len = file_pages_end - first_page;
            // SAFETY: the caller's promise.
            unsafe { map_over(first_page, len, protection, Some((&self.file, offset)))? };
            if segment.write && segment.memory_len > segment.file_len {
                // SAFETY: the bytes between the file's end and its last page's end were
                // mapped writable just now and belong to this segment.
                unsafe { ptr::write_bytes(file_end as *mut u8, 0, file_pages_end - file_end) };
            }
        }
        let zero_begin = if segment.file_len > 0 { file_pages_end } else { first_page };
        if memory_end > zero_begin {
            // SAFETY: the caller's promise.
            unsafe { map_over(zero_begin, memory_end - zero_begin, protection, None)? };
        }
        Ok(())
    }
}

fn protection(segment: &Segment) -> i32 {
    let bit = |set, bit| if set { bit } else { 0 };
    bit(segment.read, libc::PROT_READ) | bit(segment.write, libc::PROT_WRITE) | bit(segment.execute, libc::PROT_EXEC)
}

/// Private anonymous memory where the kernel finds room. `flags` may add to
/// `MAP_PRIVATE | MAP_ANONYMOUS`.
pub fn reserve(len: usize, protection: i32, flags: i32) -> io::Result<*mut u8> {
    let flags = flags & !(libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE);
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED a mapping replaces no memory.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
    result(mapped)
}

/// Replaces pages by a file's, from `offset` on, or by zeroes.
///
/// # Safety
/// The pages at `address` belong to the caller, and nobody uses their content.
unsafe fn map_over(address: usize, len: usize, protection: i32, source: Option<(&File, u64)>) -> io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
    let (flags, fd, offset) = match source {
        Some((file, offset)) => (flags, file.as_raw_fd(), offset as libc::off_t),
        None => (flags | libc::MAP_ANONYMOUS, -1, 0),
    };
    // SAFETY: the caller's promise.
    let mapped = unsafe { libc::mmap(address as *mut _, len, protection, flags, fd, offset) };
    result(mapped)
}

fn result(mapped: *mut libc::c_void) -> io::Result<*mut u8> {
    match mapped {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        mapped => Ok(mapped.cast()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linker() -> Template {
        let own = Template::open(Path::new("/proc/self/exe")).expect("own executable");
        let path = own.plan().interpreter.clone().expect("dynamic");
        Template::open(Path::new(&path)).expect("ld.so")
    }

    #[test]
    fn two_mappings_of_one_file_are_disjoint_and_alike() {
        let template = linker();
        let (one, two) = (template.map().expect("maps"), template.map().expect("maps"));
        assert!(one.end <= two.start || two.end <= one.start);
        assert_eq!(one.entry - one.base, two.entry - two.base);
        let code = |image: Image| {
            // SAFETY: the entry lies in a mapped, readable segment of more than 16 bytes.
            unsafe { std::slice::from_raw_parts(image.entry as *const u8, 16) }
        };
        assert_eq!(code(one), code(two));
    }

    #[test]
    fn the_rest_of_the_last_segment_is_zero() {
        let template = linker();
        let image = template.map().expect("maps");
        let last = template.plan().segments.last().expect("has segments");
        let begin = image.base + (last.address + last.file_len) as usize;
        let len = (last.memory_len - last.file_len) as usize;
        // SAFETY: `map` mapped these bytes readable.
        let bytes = unsafe { std::slice::from_raw_parts(begin as *const u8, len) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_file_that_is_no_program_is_refused() {
        let error = Template::open(Path::new("/proc/version")).expect_err("text");
        assert!(matches!(error, OpenError::Elf(ElfError::NotElf)));
        assert!(matches!(Template::open(Path::new("/nonexistent")), Err(OpenError::Io(_))));
    }
}

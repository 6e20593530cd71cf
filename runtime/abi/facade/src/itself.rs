//! `/proc/self/exe` of a rank that shares its address space: for the kernel that is `pip-exec`. A program that reads
//! the link, to find the files that lie beside it, gets its own file. (What it executes by that name, `pip-exec` makes
//! right: it finds that it has been called by a rank, by another name than its own.)

use crate::{libc, rank_boot};
use cohort_base::text::FixedText;
use core::ffi::{CStr, c_char, c_int};
use core::ops::Range;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, open, readlinkat_raw};
use rustix::io::{Errno, read};

/// `AT_PHDR`
const PROGRAM_HEADERS: u64 = 3;

/// `readlink(2)`
///
/// # Safety
/// As `readlink(2)`.
pub unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { link(CWD, path, buffer, size) }
}

/// `readlink` as compilers call it that check lengths (`_FORTIFY_SOURCE`): `room` is what the buffer has.
///
/// # Safety
/// As `readlink(2)`.
pub unsafe extern "C" fn readlink_checked(path: *const c_char, buffer: *mut c_char, size: usize, room: usize) -> isize {
    check(size, room);
    // SAFETY: the caller's promise.
    unsafe { readlink(path, buffer, size) }
}

/// The same of `readlinkat`.
///
/// # Safety
/// As `readlinkat(2)`.
pub unsafe extern "C" fn readlinkat_checked(
    folder: c_int,
    path: *const c_char,
    buffer: *mut c_char,
    size: usize,
    room: usize,
) -> isize {
    check(size, room);
    // SAFETY: the caller's promise.
    unsafe { readlinkat(folder, path, buffer, size) }
}

/// Ends the program as the C library does if a buffer is shorter than it says.
fn check(size: usize, room: usize) {
    if size > room {
        // SAFETY: no condition.
        unsafe { libc::__chk_fail() }
    }
}

/// `readlinkat(2)`
///
/// # Safety
/// As `readlinkat(2)`.
pub unsafe extern "C" fn readlinkat(folder: c_int, path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    // SAFETY: if it is no open folder, the kernel says so.
    let folder = unsafe { BorrowedFd::borrow_raw(folder) };
    // SAFETY: the caller's promise.
    unsafe { link(folder, path, buffer, size) }
}

unsafe fn link(folder: BorrowedFd<'_>, path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    let result = match (size, path.is_null() || buffer.is_null()) {
        (0, _) => Err(Errno::INVAL),
        (_, true) => Err(Errno::FAULT),
        _ => {
            // SAFETY: the caller's promise; neither is NULL.
            let (path, buffer) = unsafe {
                let buffer = core::slice::from_raw_parts_mut(buffer.cast::<u8>(), size);
                (CStr::from_ptr(path), buffer)
            };
            let own = is_itself(path).then(|| program(buffer)).flatten();
            own.map_or_else(|| readlinkat_raw(folder, path, &mut buffer[..]), Ok)
        }
    };
    match result {
        Ok(length) => length as isize,
        Err(error) => {
            // SAFETY: the place of this thread's error number.
            unsafe { *libc::__errno_location() = error.raw_os_error() };
            -1
        }
    }
}

/// Whether this names the file of the calling process.
fn is_itself(path: &CStr) -> bool {
    path.to_bytes().strip_suffix(b"/exe").is_some_and(is_folder_of_itself)
}

/// Whether this is the folder of the calling process in `/proc`.
pub fn is_folder_of_itself(path: &[u8]) -> bool {
    let Some(process) = path.strip_prefix(b"/proc/") else {
        return false;
    };
    let own = rustix::process::getpid().as_raw_nonzero();
    let own = FixedText::<16>::of(format_args!("{own}"));
    [&b"self"[..], b"thread-self", own.as_str().as_bytes()].contains(&process)
}

/// Writes the path of the program's file, as far as it fits; gives the length. Nothing if `pip-exec` has not
/// started it.
fn program(buffer: &mut [u8]) -> Option<usize> {
    // A process that the rank has forked runs the same program.
    rank_boot()?;
    // SAFETY: no condition. The linker has put the program's own there.
    let headers = unsafe { libc::getauxval(PROGRAM_HEADERS) };
    let mut lines = Lines::of_maps()?;
    while let Some(line) = lines.take() {
        if let Some(path) = path_at(line, headers) {
            let length = path.len().min(buffer.len());
            buffer[..length].copy_from_slice(&path[..length]);
            return Some(length);
        }
    }
    None
}

/// The file of a line of `/proc/self/maps`, if that is about this address.
fn path_at(line: &[u8], address: u64) -> Option<&[u8]> {
    let (range, _) = mapping(line)?;
    let path = line.iter().position(|&byte| byte == b'/')?;
    range.contains(&address).then(|| &line[path..])
}

/// The addresses of a line of `/proc/self/maps`, and what follows them.
pub fn mapping(line: &[u8]) -> Option<(Range<u64>, &[u8])> {
    let text = |bytes| core::str::from_utf8(bytes).ok();
    let number = |bytes| u64::from_str_radix(text(bytes)?, 16).ok();
    let space = line.iter().position(|&byte| byte == b' ')?;
    let dash = line.iter().position(|&byte| byte == b'-')?;
    let range = number(&line[..dash])?..number(line.get(dash + 1..space)?)?;
    Some((range, &line[space + 1..]))
}

/// The lines of a file.
pub struct Lines {
    file: OwnedFd,
    kept: [u8; 8192],
    /// What of it has been read, and what of that has been given.
    length: usize,
    given: usize,
}

impl Lines {
    /// Of what is mapped in this address space.
    pub fn of_maps() -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        open(c"/proc/self/maps", flags, Mode::empty()).ok().map(Self::new)
    }

    fn new(file: OwnedFd) -> Self {
        Self { file, kept: [0; 8192], length: 0, given: 0 }
    }

    /// The next one, without its end.
    pub fn take(&mut self) -> Option<&[u8]> {
        loop {
            let rest = &self.kept[self.given..self.length];
            if let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                let start = self.given;
                self.given += end + 1;
                return Some(&self.kept[start..start + end]);
            }
            self.kept.copy_within(self.given..self.length, 0);
            self.length -= self.given;
            self.given = 0;
            match read(&self.file, &mut self.kept[self.length..]) {
                Ok(0) => return None,
                Ok(count) => self.length += count,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

//! CHARACTER arguments: blanks at the end do not count, and the length is a hidden argument.
//!
//! Compilers pass the length as an `int` or as a `size_t`; both have it in the lower half of the register.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::{c_char, c_int};

/// A CHARACTER for C: without the blanks at its end, or at both, and with NUL.
pub struct Text(Vec<u8>);

impl Text {
    /// The CHARACTER at `start`.
    ///
    /// # Safety
    /// `start` is valid for `length` reads.
    pub unsafe fn trimmed(start: *const c_char, length: c_int) -> Self {
        let length = usize::try_from(length).unwrap_or(0);
        let all = match length {
            0 => &[][..],
            // SAFETY: as the caller promises.
            _ => unsafe { core::slice::from_raw_parts(start.cast::<u8>(), length) },
        };
        let end = all.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
        let mut bytes = Vec::with_capacity(end + 1);
        bytes.extend_from_slice(&all[..end]);
        bytes.push(0);
        Self(bytes)
    }

    /// The same without the blanks at its start, which do not count in commands and arguments of processes (MPI-4.1,
    /// 11.8.2), nor in keys and values of info objects (10).
    ///
    /// # Safety
    /// As there.
    pub unsafe fn stripped(start: *const c_char, length: c_int) -> Self {
        // SAFETY: as the caller promises.
        let Self(mut bytes) = unsafe { Self::trimmed(start, length) };
        let blanks = bytes.iter().take_while(|&&byte| byte == b' ').count();
        bytes.drain(..blanks);
        Self(bytes)
    }

    /// What C gets.
    pub fn pointer(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    /// Whether it was all blanks.
    pub fn is_blank(&self) -> bool {
        self.0.len() == 1
    }
}

/// Room for a string of C, as long as the longest that MPI returns.
pub struct Room(Box<[u8]>);

impl Room {
    /// Room for the longest string: `MPI_MAX_LIBRARY_VERSION_STRING`.
    pub fn new() -> Self {
        Self::of(8192)
    }

    /// Room for a string of `length` characters.
    pub fn of(length: usize) -> Self {
        Self(vec![0; length + 1].into_boxed_slice())
    }

    /// What C gets.
    pub fn pointer(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Stores the string in a CHARACTER, with blanks at its end; what is too long is cut off.
    ///
    /// # Safety
    /// `target` is valid for `length` writes.
    pub unsafe fn store(&self, target: *mut c_char, length: c_int) {
        let length = usize::try_from(length).unwrap_or(0);
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        for place in 0..length {
            let byte = if place < end { self.0[place] } else { b' ' };
            // SAFETY: as the caller promises.
            unsafe { target.add(place).write(byte as c_char) };
        }
    }
}

//! Names of MPI libraries, and texts without an allocator.

use cohort_base::libraries::{OTHERS, REPLACED};
use core::cell::UnsafeCell;
use core::ffi::c_char;

/// What a file's name says of an MPI library.
#[derive(Clone, Copy)]
pub enum Library {
    /// Its ABI is that of ours with this index.
    Ours(usize),
    /// Another.
    Foreign,
}

/// The MPI library of this name or path, if it is one.
pub fn library(path: &[u8]) -> Option<Library> {
    let name = file_name(path);
    let takes = |taken: &[u8]| match name.get(taken.len()) {
        None => name.iter().eq(taken),
        Some(b'.') => ends_in_digit(taken) && begins(name, taken),
        Some(_) => false,
    };
    if let Some((_, index)) = REPLACED.iter().find(|(taken, _)| takes(taken.as_bytes())) {
        return Some(Library::Ours(*index));
    }
    row(name).map(|_| Library::Foreign)
}

/// Whose the foreign library at `path` is, if its name tells.
pub fn vendor(path: &[u8]) -> Option<&'static str> {
    row(file_name(path))?.1
}

fn row(name: &[u8]) -> Option<&'static (&'static str, Option<&'static str>)> {
    let mut rows = OTHERS.iter();
    rows.find(|(beginning, _)| begins(name, beginning.as_bytes()))
}

fn ends_in_digit(name: &[u8]) -> bool {
    name.last().is_some_and(u8::is_ascii_digit)
}

/// What follows the last slash of a path.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The folder of a path, with its last slash.
pub fn folder(path: &[u8]) -> &[u8] {
    path.get(..path.len() - file_name(path).len()).unwrap_or_default()
}

/// Whether `text` begins with `beginning`.
pub fn begins(text: &[u8], beginning: &[u8]) -> bool {
    text.len() >= beginning.len() && text.iter().zip(beginning).all(|(one, other)| one == other)
}

/// The value of the entry `NAME=VALUE` if its name is this.
pub fn after<'a>(entry: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = begins(entry, name).then(|| entry.get(name.len()..)).flatten()?;
    value.strip_prefix(b"=")
}

/// The decimal number after the last slash.
pub fn last_number(text: &[u8]) -> Option<u32> {
    let digits = file_name(text);
    let number = |sum: u32, digit: &u8| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u32::from(digit - b'0')),
        _ => None,
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, number) }
}

/// The bytes of a C string. (`CStr` asks the C library for its length.)
///
/// # Safety
/// A C string that stays as it is.
pub unsafe fn bytes<'a>(string: *const c_char) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the caller's promise; the loop ends at the NUL.
    unsafe {
        while *string.add(length) != 0 {
            length += 1;
        }
        core::slice::from_raw_parts(string.cast(), length)
    }
}

/// Longest text, with the NUL of a path.
const LENGTH: usize = 4096;

/// A text that grows up to a fixed length; what does not fit is cut.
pub struct Text {
    bytes: [u8; LENGTH],
    length: usize,
}

impl Text {
    /// The empty text.
    pub const fn new() -> Self {
        Self { bytes: [0; LENGTH], length: 0 }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // The last byte stays zero, so that a C string ends.
            if self.length + 1 < LENGTH
                && let Some(place) = self.bytes.get_mut(self.length)
            {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    /// Adds a number.
    pub fn push_number(&mut self, number: u32) {
        if number >= 10 {
            self.push_number(number / 10);
        }
        self.push(&[b'0' + (number % 10) as u8]);
    }

    /// The text so far.
    pub fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// A text that is made once.
pub struct Once(UnsafeCell<Text>);

// SAFETY: see `Once::make`.
unsafe impl Sync for Once {}

impl Once {
    /// The empty text.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(Text::new()))
    }

    /// To make the text.
    ///
    /// # Safety
    /// Nobody has called [`Once::get`] or this function, and nobody does until the caller is done with the text.
    #[allow(clippy::mut_from_ref, reason = "the caller's promise")]
    pub unsafe fn make(&self) -> &mut Text {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.get() }
    }

    /// The text, which a NUL follows.
    pub fn get(&self) -> &[u8] {
        // SAFETY: it changes no more.
        unsafe { &*self.0.get() }.get()
    }
}

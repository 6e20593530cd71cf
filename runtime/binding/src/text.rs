//! Strings that the program gets.

use crate::arguments::Outcome;
use cohort_abi::neutral;
use cohort_abi::parameters::TextOut;
use core::ffi::c_int;

/// The longest beginning of `text` of at most `bytes` bytes that does not cut a character.
pub fn shortened(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Copies `text` and a NUL to a program's buffer of `room` bytes; returns its length.
///
/// # Errors
/// `MPI_ERR_ARG` for NULL.
pub fn give_text(text: &str, target: TextOut<'_>, room: usize) -> Outcome<c_int> {
    if target.is_null() {
        return Err(neutral::ERR_ARG.into());
    }
    let text = shortened(text, room - 1);
    Ok(target.write(text.as_bytes(), room) as c_int)
}

/// [`give_text`] of bytes that may be no text; what is text is cut as there.
///
/// # Errors
/// As there.
pub fn give_bytes(bytes: &[u8], target: TextOut<'_>, room: usize) -> Outcome<c_int> {
    match core::str::from_utf8(bytes) {
        Ok(text) => give_text(text, target, room),
        Err(_) if target.is_null() => Err(neutral::ERR_ARG.into()),
        Err(_) => Ok(target.write(bytes, room) as c_int),
    }
}

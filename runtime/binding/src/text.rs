//! Strings that the program gets.

use crate::arguments::Outcome;
use cohort_abi::neutral;
use cohort_abi::parameters::TextOut;
use core::ffi::c_int;

/// The longest beginning of `bytes` of at most `most` bytes that does not cut a character, if they are text.
pub fn shortened(bytes: &[u8], most: usize) -> &[u8] {
    let text = core::str::from_utf8(bytes);
    let mut end = bytes.len().min(most);
    while text.is_ok_and(|text| !text.is_char_boundary(end)) {
        end -= 1;
    }
    &bytes[..end]
}

/// Copies `bytes` and a NUL to a program's buffer of `room` bytes; returns its length.
///
/// # Errors
/// `MPI_ERR_ARG` for NULL.
pub fn give_bytes(bytes: &[u8], target: TextOut<'_>, room: usize) -> Outcome<c_int> {
    if target.is_null() {
        return Err(neutral::ERR_ARG.into());
    }
    Ok(target.write(shortened(bytes, room - 1), room) as c_int)
}

/// [`give_bytes`] of text.
///
/// # Errors
/// As there.
pub fn give_text(text: &str, target: TextOut<'_>, room: usize) -> Outcome<c_int> {
    give_bytes(text.as_bytes(), target, room)
}

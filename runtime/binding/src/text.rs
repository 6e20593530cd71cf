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

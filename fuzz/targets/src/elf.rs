//! Whatever the bytes, the parser does not panic, and what it accepts fits its file: it asserts that itself.

use pip_load::elf::{exported_symbol, parse};

/// One input. See the module page.
///
/// # Panics
/// There is a defect.
pub fn run(file: &[u8]) {
    let _ = parse(file);
    let _ = exported_symbol(file, "main");
}

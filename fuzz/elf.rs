//! Whatever the bytes, the parser does not panic, and what it accepts fits its file: it asserts that itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pip_load::elf::{exported_symbol, parse};

fuzz_target!(|file: &[u8]| {
    let _ = parse(file);
    let _ = exported_symbol(file, "main");
});

//! Whatever the bytes, the parser does not panic, and what it accepts fits its file: it asserts that itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cohort_fuzz_targets::elf::run(bytes));

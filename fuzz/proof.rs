//! A stranger may say what it likes: it is refused, or nothing is proven.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cohort_fuzz_targets::proof::run(bytes));

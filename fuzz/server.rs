//! A program that `pip-exec` has started may say to it what it likes: it is answered or refused, and nobody waits.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cohort_fuzz_targets::server::run(bytes));

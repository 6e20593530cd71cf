//! A process manager may answer what it likes: the client ends with a result or a failure.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cohort_fuzz_targets::manager::run(bytes));

//! What another node says of its network is refused or read, whatever it is.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cohort_fuzz_targets::addresses::run(bytes));

//! Variables of the environment are settings, or are refused, whatever they are.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cohort_fuzz_targets::settings::run(bytes));

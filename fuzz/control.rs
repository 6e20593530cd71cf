//! Whatever comes over a control socket, frames and records are read or refused, and what is read can be sent again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cohort_fuzz_targets::control::run(bytes));

//! Variables of the environment are settings, or are refused, whatever they are.
#![no_main]

use cohort_base::settings::Settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(invalid) = Settings::from_env(bytes.split(|&byte| byte == 0)) {
        assert!(!invalid.to_string().is_empty());
    }
});

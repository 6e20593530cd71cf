//! Variables of the environment are settings, or are refused, whatever they are.

use cohort_base::settings::Settings;

/// One input. See the module page.
///
/// # Panics
/// There is a defect.
pub fn run(bytes: &[u8]) {
    if let Err(invalid) = Settings::from_env(bytes.split(|&byte| byte == 0)) {
        assert!(!invalid.to_string().is_empty());
    }
}

//! `docs/functions.md`.

use super::wiring::Wiring;
use crate::api::Api;

/// Which procedures are implemented.
#[must_use]
pub fn functions(_api: &Api, _wiring: &Wiring) -> String {
    String::new()
}

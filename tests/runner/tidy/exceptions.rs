//! What breaks a rule and is known. The list only shrinks: a row that allows more than there is fails its test.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The content of `exceptions.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    /// How many lines are too wide.
    #[serde(default)]
    pub wide_lines: usize,
    /// How many modules with this parent form a cycle.
    #[serde(default)]
    pub cycles: BTreeMap<String, usize>,
    /// How many lines the function `file: name` has.
    #[serde(default)]
    pub functions: BTreeMap<String, usize>,
}

impl Exceptions {
    /// Reads the list, which the test program contains.
    pub fn read() -> Result<Self, String> {
        toml::from_str(include_str!("exceptions.toml"))
            .map_err(|error| format!("tests/runner/tidy/exceptions.toml: {error}"))
    }
}

/// The complaint about a row that allows too much.
pub fn shrink(row: &str, now: usize) -> String {
    if now == 0 {
        format!("tests/runner/tidy/exceptions.toml: {row} is no exception any more, take the row out")
    } else {
        format!("tests/runner/tidy/exceptions.toml: set {row} to {now}")
    }
}

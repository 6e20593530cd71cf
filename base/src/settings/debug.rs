//! What a job shows of itself when it starts: for the loader, which ranks do not ask.

use super::Row;

/// Name of the variable.
pub const DEBUG: &str = "COHORT_DEBUG";

/// What it may name.
const PARTS: [&str; 3] = ["pin", "settings", "net"];

pub(super) const ROW: Row = Row {
    name: DEBUG,
    values: "none, or some of pin, settings, net, with commas between",
    default: "none",
    help: "what a job shows of itself when it starts: parts of pip-exec --info",
    set: |_, v| debug_parts(v).map(|_| ()),
};

/// The parts that a value names, in the order of `--info`; `None` if one of them does not exist.
#[must_use]
pub fn debug_parts(value: &str) -> Option<[Option<&'static str>; 3]> {
    let mut named = value.split(',').filter(|&name| name != "none");
    let all_exist = named.all(|name| PARTS.contains(&name));
    let is_named = |part: &&str| value.split(',').any(|name| name == *part);
    all_exist.then(|| PARTS.map(|part| Some(part).filter(is_named)))
}

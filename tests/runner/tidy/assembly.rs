//! What depends on the machine's instructions is in modules named `arch`, so that another architecture is a file more
//! in each.

use super::text;
use crate::trials::Outcome;
use std::path::{Component, Path};

/// What only these modules may use.
const MARKS: [&str; 4] = ["asm!(", "arch::x86_64", "arch::aarch64", "target_arch"];

/// Complains about assembly, and the compiler's names for instructions, elsewhere.
pub fn check() -> Outcome {
    let mut complaints = Vec::new();
    let mut seen = 0;
    for (path, source) in text::sources(&["rs"])? {
        let relative = text::relative(&path);
        if relative.ends_with("tidy/assembly.rs") {
            continue;
        }
        for (number, line) in source.lines().enumerate() {
            if MARKS.iter().any(|mark| line.contains(mark)) {
                seen += 1;
                if !is_for_it(relative) {
                    complaints.push(format!("{}:{}", relative.display(), number + 1));
                }
            }
        }
    }
    match complaints.is_empty() && seen > 0 {
        true => Ok(()),
        false => Err(format!(
            "instructions at {complaints:?}: crate cohort-arch has what several crates need, a module `arch` the rest"
        )),
    }
}

/// A file `arch.rs`, or one in a folder `arch`.
fn is_for_it(path: &Path) -> bool {
    path.ends_with("arch.rs") || path.components().any(|part| part == Component::Normal("arch".as_ref()))
}

//! Checks of the tree (layers, modules, sizes, words, pages, commits) and of the built node image.

mod assembly;
mod exceptions;
mod functions;
mod history;
mod image;
mod layers;
mod modules;
mod node;
mod pages;
mod seatless;
mod sleeps;
pub mod text;

use crate::trials::Trial;
use crate::{Outcome, trial};

/// A name, and what it stands for.
type Check = (&'static str, fn() -> Outcome);

/// Checks of what git knows: these need no build, and `tools/pre-commit` runs them.
const TREE: [Check; 23] = [
    ("thread-local data of a sample is seen", seatless::uses_are_seen),
    ("dependencies point down", layers::point_down),
    ("folders point down", layers::folders_point_down),
    ("stealable crates are no_std", layers::stealable_no_std),
    ("crates for any task use no allocator", layers::no_allocator),
    ("modules form no cycles", modules::without_cycles),
    ("modules of a sample that form a circle are seen", modules::circles_are_seen),
    ("files are short", text::short_files),
    ("lines are narrow", text::narrow_lines),
    ("functions are short", functions::are_short),
    ("long functions of a sample are seen", functions::long_ones_are_seen),
    ("subjects of commits are short", history::subjects_are_short),
    ("unsafe blocks say why they are sound", text::unsafe_is_explained),
    ("no unfinished words", text::no_unfinished_words),
    ("no time is measured with the clock of the day", text::no_clock_of_the_day),
    ("links of pages lead somewhere", pages::links_lead_somewhere),
    ("files that pages name exist", pages::named_files_exist),
    ("checks that pages name exist", pages::named_checks_exist),
    ("missing files of a sample page are seen", pages::missing_files_are_seen),
    ("packages name both licenses", layers::licensed),
    ("scripts parse", text::scripts_parse),
    ("trials wait for events", sleeps::check),
    ("assembly is in modules for it", assembly::check),
];

/// Checks of what `make build` has made.
const BUILT: [Check; 6] = [
    ("node image has no thread-local storage", image::no_thread_local),
    ("node image asks libc for mem* only", image::few_undefined),
    ("calls of the TCP network use no thread-local data", seatless::no_thread_data),
    ("node image links as promised", node::links_as_promised),
    ("node image opens its own records only", node::opens_its_own_records_only),
    ("facades export MPI_ and PMPI_ names alike", image::twin_names),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let of = |prefix: &'static str, checks: &[Check]| -> Vec<Trial> {
        let trial = |&(name, check): &Check| trial(format!("{prefix}/{name}"), check);
        checks.iter().map(trial).collect()
    };
    let mut trials = of("tidy", &TREE);
    trials.extend(of("built", &BUILT));
    trials
}

/// The outcome of a check that found these.
fn outcome(complaints: Vec<String>) -> Outcome {
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}

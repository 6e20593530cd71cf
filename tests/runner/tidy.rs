//! Checks of the tree: layers, sizes, words, unsafe blocks; and of the built node image.

mod exceptions;
mod functions;
mod history;
mod image;
mod layers;
mod modules;
mod node;
mod text;

use crate::{Outcome, trial};
use libtest_mimic::Trial;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "tidy/node image has no thread-local storage".into(),
            image::no_thread_local,
        ),
        trial(
            "tidy/node image asks libc for mem* only".into(),
            image::few_undefined,
        ),
        trial(
            "tidy/node image links as promised".into(),
            node::links_as_promised,
        ),
        trial(
            "tidy/node image opens its own records only".into(),
            node::opens_its_own_records_only,
        ),
        trial(
            "tidy/facades export MPI_ and PMPI_ names alike".into(),
            image::twin_names,
        ),
        trial("tidy/dependencies point down".into(), layers::point_down),
        trial(
            "tidy/stealable crates are no_std".into(),
            layers::stealable_no_std,
        ),
        trial(
            "tidy/modules form no cycles".into(),
            modules::without_cycles,
        ),
        trial(
            "tidy/modules of a sample that form a circle are seen".into(),
            modules::circles_are_seen,
        ),
        trial("tidy/files are short".into(), text::short_files),
        trial("tidy/lines are narrow".into(), text::narrow_lines),
        trial("tidy/functions are short".into(), functions::are_short),
        trial(
            "tidy/long functions of a sample are seen".into(),
            functions::long_ones_are_seen,
        ),
        trial(
            "tidy/subjects of commits are short".into(),
            history::subjects_are_short,
        ),
        trial(
            "tidy/unsafe blocks say why they are sound".into(),
            text::unsafe_is_explained,
        ),
        trial("tidy/no unfinished words".into(), text::no_unfinished_words),
        trial(
            "tidy/links of pages lead somewhere".into(),
            text::links_lead_somewhere,
        ),
        trial("tidy/packages name both licenses".into(), layers::licensed),
        trial("tidy/scripts parse".into(), text::scripts_parse),
    ]
}

/// The outcome of a check that found these.
fn outcome(complaints: Vec<String>) -> Outcome {
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints.join("\n"))
    }
}

//! Which trials a run takes. Those of the long list are dealt out to [`SLICES`] slices by their names; a run takes the
//! slice that the commit chooses, so that a few commits have seen all. `TEST_COHORT_LONG` is `all`, `none` or the
//! number of a slice instead. Who names trials by a filter gets the long ones too.

use crate::place;
use crate::trials::Trial;
use libtest_mimic::Arguments;
use std::process::Command;

/// Into how many parts the long list is dealt out.
const SLICES: u64 = 16;

/// Which part of the long list a run takes.
enum Long {
    All,
    None,
    Slice(u64),
}

/// The trials that the arguments take, and what to say of the others.
pub fn choose(trials: Vec<Trial>, arguments: &Arguments) -> (Vec<Trial>, String) {
    let filter = arguments.filter.as_ref().filter(|filter| !filter.is_empty());
    let (long, said) = match filter {
        Some(_) => (Long::All, "a filter takes those of the long list too".into()),
        None => long(),
    };
    let is_named = |name: &str| match (filter, arguments.exact) {
        (None, _) => true,
        (Some(filter), true) => name == filter,
        (Some(filter), false) => name.contains(filter.as_str()),
    };
    let is_skipped = |name: &str| {
        let mut skip = arguments.skip.iter();
        skip.any(|skip| match arguments.exact {
            true => name == skip,
            false => name.contains(skip.as_str()),
        })
    };
    let is_due = |trial: &Trial| {
        !trial.long
            || match long {
                Long::All => true,
                Long::None => false,
                Long::Slice(slice) => hash(&trial.name) % SLICES == slice,
            }
    };
    let takes = |trial: &Trial| is_named(&trial.name) && !is_skipped(&trial.name) && is_due(trial);
    (trials.into_iter().filter(takes).collect(), said)
}

fn long() -> (Long, String) {
    let wanted = std::env::var("TEST_COHORT_LONG").unwrap_or_default();
    match wanted.as_str() {
        "all" => (Long::All, "all of the long list".into()),
        "none" => (Long::None, "none of the long list".into()),
        "" => {
            let slice = commit().map_or(0, |commit| hash(&commit) % SLICES);
            (Long::Slice(slice), format!("slice {slice} of {SLICES} of the long list, chosen by the commit"))
        }
        number => match number.parse() {
            Ok(slice) if slice < SLICES => (Long::Slice(slice), format!("slice {slice} of {SLICES} of the long list")),
            _ => {
                eprintln!("TEST_COHORT_LONG is {number:?}: all, none or 0 to {}", SLICES - 1);
                std::process::exit(2)
            }
        },
    }
}

fn commit() -> Option<String> {
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(place::root()).output().ok()?;
    String::from_utf8(git.stdout).ok()
}

/// FNV-1a: the same on each machine and in each build.
pub fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) >> 8
}

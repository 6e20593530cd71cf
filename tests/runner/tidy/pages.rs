//! What our pages name exists: the targets of links, and the files and folders in backquotes.

use super::{outcome, text};
use crate::Outcome;
use std::path::Path;

/// How names begin that look like paths and are none of the tree: what is built, what lies in or beside an
/// installation, and the names of trials.
const ELSEWHERE: [&str; 4] = ["target/", "PREFIX/", "../", CHECKS];

/// How the names of our own trials begin.
const CHECKS: &str = "tidy/";

/// Endings of names that are files of the tree.
const ENDINGS: [&str; 6] = [".rs", ".c", ".py", ".sh", ".toml", ".table"];

/// Links between our own pages name files that exist, and sections of them.
pub fn links_lead_somewhere() -> Outcome {
    let mut complaints = Vec::new();
    for (path, page) in text::sources(&["md"])? {
        let folder = path.parent().unwrap_or(&path);
        for link in page.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or(link);
            let (target, section) = link.split_once('#').unwrap_or((link, ""));
            if target.contains("://") {
                continue;
            }
            let file = if target.is_empty() { path.clone() } else { folder.join(target) };
            let is_page = file.extension().is_some_and(|extension| extension == "md");
            if !file.exists() || is_page && !section.is_empty() && !has_section(&file, section)? {
                complaints.push(format!("{} links to {link}", text::relative(&path).display()));
            }
        }
    }
    outcome(complaints)
}

/// Whether a heading of the page has this name in links: small letters, words joined by hyphens, no other signs.
fn has_section(file: &Path, section: &str) -> Result<bool, String> {
    let page = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let name = |heading: &str| -> String {
        // Of a link in a heading, its words.
        let words = heading.split("](").map(|part| part.rsplit_once(')').map_or(part, |(_, rest)| rest));
        let kept = words.flat_map(str::chars).filter(|&sign| sign.is_alphanumeric() || " -_".contains(sign));
        kept.flat_map(char::to_lowercase).map(|sign| if sign == ' ' { '-' } else { sign }).collect()
    };
    let headings = page.lines().filter(|line| line.starts_with('#'));
    Ok(headings.map(|line| name(line.trim_start_matches('#').trim())).any(|heading| heading == section))
}

/// Files and folders in backquotes are in the tree; the beginning of a path may be left out.
pub fn named_files_exist() -> Outcome {
    let files = text::files()?;
    let files: Vec<&Path> = files.iter().map(|path| text::relative(path)).collect();
    let mut complaints = Vec::new();
    for (path, page) in text::sources(&["md"])? {
        let page_name = text::relative(&path).display();
        for name in paths_in(&page) {
            if !files.iter().any(|file| is_of(name, file)) {
                complaints.push(format!("{page_name} names {name}, which is not in the tree"));
            }
        }
    }
    outcome(complaints)
}

/// Checks in backquotes are the beginning of a trial's name.
pub fn named_checks_exist() -> Outcome {
    let trials = super::trials();
    let mut complaints = Vec::new();
    for (path, page) in text::sources(&["md"])? {
        for name in page.split('`').filter(|name| name.starts_with(CHECKS)) {
            if !trials.iter().any(|trial| trial.name.starts_with(name)) {
                let page = text::relative(&path).display();
                complaints.push(format!("{page} names {name}, which is no trial"));
            }
        }
    }
    outcome(complaints)
}

/// The check sees files that are gone, and takes nothing else for a file.
pub fn missing_files_are_seen() -> Outcome {
    let page = "`src/gone.rs`, `here.rs` and `a/b`, not `MPI_Send`, `x = y/z`, `-n 4`, `net.rs()`\n\
                ```\n`fenced.rs`\n```\n`last.c`";
    let found: Vec<&str> = paths_in(page).collect();
    if found != ["src/gone.rs", "here.rs", "a/b", "last.c"] {
        return Err(format!("{found:?}"));
    }
    let file = Path::new("runtime/engine/src/net/watch.rs");
    let named = ["watch.rs", "net/watch.rs", "engine/src/net", "src/net/", "net/watch"];
    let other = ["atch.rs", "net/send.rs", "engine/net"];
    match named.iter().all(|name| is_of(name, file)) && !other.iter().any(|name| is_of(name, file)) {
        true => Ok(()),
        false => Err("names are not compared by whole parts".into()),
    }
}

/// Names in backquotes that look like paths of the tree, outside of fenced blocks.
fn paths_in(page: &str) -> impl Iterator<Item = &str> {
    let prose = page.split("```").step_by(2);
    let quoted = prose.flat_map(|text| text.split('`').skip(1).step_by(2));
    quoted.filter(|name| {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
        let is_path = name.contains('/') || ENDINGS.iter().any(|ending| name.ends_with(ending));
        is_path
            && name.chars().all(allowed)
            && !name.starts_with('/')
            && !ELSEWHERE.iter().any(|beginning| name.starts_with(beginning))
    })
}

/// Whether whole parts of the file's path are this name; a module may be named without `.rs`.
fn is_of(name: &str, file: &Path) -> bool {
    let file = format!("/{}/", file.display());
    let name = name.trim_end_matches('/');
    file.contains(&format!("/{name}/")) || file.ends_with(&format!("/{name}.rs/"))
}

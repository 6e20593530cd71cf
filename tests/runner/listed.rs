//! What MPI_T lists is what the pages, the help and the man page describe: nothing is missing in one of them.

use crate::command::Program;
use crate::directives::Abi;
use crate::tidy::text;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::collections::BTreeSet;

/// Variables that are none of a user's: the launcher's word to itself, and what its build is told.
const INNER: [&str; 2] = ["COHORT_GUARDED_JOB", "COHORT_COMMIT"];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![trial("tools/variables that are read are described".into(), variables_are_described)];
    for abi in [Abi::Mpich, Abi::Mpi5] {
        let name = format!("tools/what MPI_T lists is described {abi}");
        trials.push(trial(name, move || lists_are_described(abi)));
    }
    trials
}

/// A page of ours.
fn page(name: &str) -> Result<String, String> {
    let path = place::root().join("docs").join(name);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What `pip-exec` prints for an option.
fn printed(option: &str) -> Result<String, String> {
    let run = Program::new(place::built_file("pip-exec")?).arg(option);
    Ok(run.run()?.expect_code(0)?.stdout)
}

/// Names in the first columns of a page's tables that begin so.
fn rows<'a>(page: &'a str, begin: &str) -> BTreeSet<&'a str> {
    let first = |line: &'a str| line.strip_prefix("| `")?.split('`').next();
    let names = page.lines().filter_map(first);
    names.filter(|name| name.starts_with(begin)).collect()
}

fn lists_are_described(abi: Abi) -> Outcome {
    let program = programs::compile_as("listed", &tool("listed.c"), abi, &[])?;
    let run = Program::new(place::built_file("pip-exec")?).args(["-n", "1"]);
    let ended = run.arg(program).run()?.expect_code(0)?;
    let listed = |kind: &str| -> Vec<Vec<&str>> {
        let lines = ended.stdout.lines().map(|line| line.split(' ').collect());
        lines.filter(|words: &Vec<&str>| words[0] == kind).collect()
    };
    let names = |kind| -> BTreeSet<&str> { listed(kind).iter().map(|words| words[1]).collect() };

    let cvars = names("cvar");
    if listed("cvar").iter().any(|words| words[2] != "constant") {
        return Err("a setting that may be written: docs/tools.md says that there is none".into());
    }
    let (tuning, tools) = (page("TUNING.md")?, page("tools.md")?);
    same("docs/TUNING.md", &rows(&tuning, "COHORT_"), &cvars)?;
    let help = printed("--help=settings")?;
    let in_help = help
        .lines()
        .filter_map(|line| Some(line.trim_start().split_once('=')?.0))
        .filter(|name| name.starts_with("COHORT_"))
        .collect();
    same("pip-exec --help=settings", &in_help, &cvars)?;
    let manual = printed("--man")?.replace('\\', "");
    let in_manual = manual
        .lines()
        .filter_map(|line| line.strip_prefix(".BR ")?.split(' ').next())
        .filter(|name| name.starts_with("COHORT_"))
        .collect();
    same("pip-exec --man", &in_manual, &cvars)?;

    let mut shown = names("pvar");
    shown.extend(names("event"));
    shown.extend(names("category"));
    same("docs/tools.md", &rows(&tools, "cohort"), &shown)?;
    for words in listed("pvar") {
        let row = format!("| `{}` | {} | {} |", words[1], words[2], words[3]);
        if !tools.contains(&row) {
            return Err(format!("docs/tools.md lacks the row {row}"));
        }
    }
    Ok(())
}

fn tool(name: &str) -> std::path::PathBuf {
    place::root().join("tests/programs/tools").join(name)
}

fn same(place: &str, described: &BTreeSet<&str>, listed: &BTreeSet<&str>) -> Outcome {
    let lacks: Vec<_> = listed.difference(described).collect();
    let beyond: Vec<_> = described.difference(listed).collect();
    match listed.is_empty() || !lacks.is_empty() || !beyond.is_empty() {
        true => Err(format!("{place} lacks {lacks:?}, and has {beyond:?} that MPI_T does not list")),
        false => Ok(()),
    }
}

/// Each variable that our code names is a setting, or some page tells of it.
fn variables_are_described() -> Outcome {
    let mut pages = text::sources(&["md"])?;
    pages.retain(|(path, _)| !path.ends_with("CHANGELOG.md"));
    let is_told = |name: &str| {
        let quoted = |page: &str| {
            page.match_indices(name).any(|(at, _)| {
                let next = page[at + name.len()..].chars().next();
                !next.is_some_and(|next| next.is_ascii_uppercase() || next == '_')
            })
        };
        pages.iter().any(|(_, page)| quoted(page))
    };
    let mut complaints = BTreeSet::new();
    let mut seen = 0;
    for (path, source) in text::sources(&["rs"])? {
        let relative = text::relative(&path);
        let is_test = relative.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            part.starts_with("tests") || part == "benches" || part == "fuzz"
        });
        // What a file's own tests name comes last in it.
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let literals = code.split("\"COHORT_").skip(1).filter_map(|rest| rest.split_once('"'));
        for (rest, _) in literals.filter(|_| !is_test) {
            let name = format!("COHORT_{rest}");
            let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
            if !rest.is_empty() && rest.chars().all(is_part) {
                seen += 1;
                if !INNER.contains(&name.as_str()) && !is_told(&name) {
                    complaints.insert(format!("{}: {name}", relative.display()));
                }
            }
        }
    }
    match complaints.is_empty() && seen > 30 {
        true => Ok(()),
        false => Err(format!("{seen} variables are named, and no page tells of {complaints:?}")),
    }
}

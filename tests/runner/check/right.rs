//! Programs of `tests/programs/c` in which nothing is wrong, of which the checker says nothing.

use crate::command::Program;
use crate::directives::{Abi, Directives};
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// They are run with the highest count of ranks that they name, up to this one.
const RANKS: u32 = 5;

/// What they are about, and their names.
const SILENT: &[(&str, &[&str])] = &[
    (
        "messages",
        &[
            "aligned",
            "buffers",
            "cancel",
            "completion",
            "large",
            "modes",
            "ordering",
            "own_addresses",
            "persistent",
            "probe",
            "ring",
            "self",
            "sendrecv",
            "statuses",
            "wildcards",
        ],
    ),
    (
        "collectives",
        &[
            "collectives",
            "insignificant",
            "intercollectives",
            "members",
            "nested_function",
            "random_collectives",
            "reductions",
            "split_in_turns",
            "user_op",
        ],
    ),
    ("threads", &["eight_threads", "threads"]),
    ("windows", &["lazy_windows", "window_errors", "window_nocheck", "window_pages", "windows"]),
    (
        "objects",
        &[
            "communicators",
            "datatypes",
            "duplicates",
            "environment",
            "errhandlers",
            "external32",
            "failing_delete",
            "forms",
            "given_errhandlers",
            "grids",
            "groups",
            "hints",
            "intercommunicators",
            "names",
            "pack",
            "random_types",
            "sessions",
            "tool_communicators",
            "tool_interface",
        ],
    ),
    (
        "files",
        &[
            "files",
            "files_access",
            "files_atomic",
            "files_datarep",
            "files_errors",
            "files_external32",
            "files_gaps",
            "files_hints",
            "files_limit",
        ],
    ),
];

/// A trial for each subject.
pub fn trials() -> Vec<Trial> {
    let all = SILENT.iter().map(|&(about, names)| trial(format!("check/right {about}"), move || are_silent(names)));
    all.collect()
}

fn are_silent(names: &[&str]) -> Outcome {
    for name in names {
        let source = programs::source(&format!("{name}.c"));
        let Directives { ranks, abis, args, settings, libs, seconds, .. } = Directives::read(&source)?;
        let ranks = ranks.into_iter().filter(|&count| count <= RANKS).max().unwrap_or(2).to_string();
        let executable = programs::compile(&source, abis.first().copied().unwrap_or(Abi::Mpich), &libs)?;
        let mut job = Program::new(place::built_file("pip-exec")?).args(["-n", &ranks, "--check"]).arg(executable);
        for (name, value) in &settings {
            job = job.env(name, value);
        }
        let ended = job.args(&args).seconds(seconds).run()?.expect_code(0)?;
        // The program itself may say something.
        ended.expect_text("check: no errors, no hints")?;
    }
    Ok(())
}

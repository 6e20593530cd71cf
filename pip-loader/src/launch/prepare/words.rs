//! Arguments and environments of programs, as the kernel and their own start-up code take them.

use crate::launch::environment::entries;
use crate::launch::options::Section;
use crate::launch::program::Program;
use crate::launch::sanitizer;
use pip_ground::{Environment, Refusal};
use pip_load::task::stack::Strings;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What the kernel executes, with its arguments and environment.
pub(super) fn wrapper_strings(
    program: &Program,
    section: &Section,
    environment: &Environment,
) -> Result<Strings, Refusal> {
    let arguments = [&section.program].into_iter().chain(&section.arguments);
    strings(arguments, environment, &program.found)
}

/// What the kernel executes for a rank with an address space of its own, and leads to our MPI.
pub(super) fn executed_strings(
    program: &Program,
    section: &Section,
    mut environment: Environment,
    sanitizer: Option<&str>,
) -> Result<Strings, Refusal> {
    if sanitizer.is_some() {
        sanitizer::inform(&mut environment);
    }
    let words = [&program.name].into_iter().chain(&program.leading);
    let arguments = words.chain(&section.arguments);
    strings(arguments, &environment, &program.file)
}

pub(super) fn strings<'a>(
    arguments: impl IntoIterator<Item = &'a OsString>,
    environment: &Environment,
    file: &Path,
) -> Result<Strings, Refusal> {
    let entries: Vec<OsString> = entries(environment).collect();
    let arguments = arguments.into_iter().map(|text| -> &OsStr { text });
    let environment = entries.iter().map(|text| -> &OsStr { text });
    Strings::new(arguments, environment, file.as_os_str()).map_err(|_| holds_nul())
}

fn holds_nul() -> Refusal {
    Refusal::new("an argument or environment variable holds a NUL byte")
}

//! `cohort-codegen [--check] --apis FILE [--root DIR]`: writes the generated bindings, or
//! with `--check` says which checked-in file differs from what would be written.

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cohort-codegen [--check] --apis FILE [--root DIR]
  --apis FILE   apis.json of the Python package pympistandard
  --root DIR    the repository (default: the current directory)
  --check       write nothing; fail when a generated file is not up to date";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("cohort-codegen: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut check, mut apis, mut root) = (false, None, PathBuf::from("."));
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut path = || arguments.next().map(PathBuf::from).ok_or(USAGE.to_owned());
        match argument.as_str() {
            "--check" => check = true,
            "--apis" => apis = Some(path()?),
            "--root" => root = path()?,
            _ => return Err(USAGE.to_owned()),
        }
    }
    let outputs = cohort_codegen::generate(&root, &apis.ok_or(USAGE)?)?;
    if check {
        return match cohort_codegen::stale(&root, &outputs).as_slice() {
            [] => Ok(()),
            stale => Err(format!("not up to date: {}", stale.join(", "))),
        };
    }
    for path in cohort_codegen::write(&root, &outputs)? {
        println!("{path}");
    }
    Ok(())
}

//! Writes what a build leaves beside its libraries, and the page of what is missing.

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cohort-codegen headers FOLDER | functions
  headers FOLDER   writes mpi.h, mpif.h and the sources of the modules mpi and mpi_f08
  functions        prints docs/functions.md";

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["headers", folder] => {
            for (name, text) in cohort_codegen::headers() {
                let path = Path::new(folder).join(name);
                std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            }
        }
        ["functions"] => {
            let table = include_str!("../../binding/functions.table");
            print!("{}", cohort_codegen::functions(table)?);
        }
        _ => return Err(USAGE.to_owned()),
    }
    Ok(())
}

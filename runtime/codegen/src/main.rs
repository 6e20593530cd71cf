//! `cohort-codegen [ROOT]`: writes the generated files that are checked in.

use std::path::PathBuf;
use std::process::ExitCode;

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
    let root = PathBuf::from(std::env::args().nth(1).unwrap_or(".".into()));
    let outputs = cohort_codegen::generate(include_str!("../../binding/functions.table"))?;
    for output in outputs {
        let path = root.join(output.path);
        std::fs::write(&path, &output.text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

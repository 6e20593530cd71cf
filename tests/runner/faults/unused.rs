//! Ranks that end before `MPI_Init`, and whoever waits for them.

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("faults/isolated ranks meet, but not one that never begins".into(), || never_begins(&[])),
        trial("faults/isolated ranks end, but not one that never begins".into(), || never_begins(&["end"])),
        trial("faults/isolated ranks end, but not one that has used sessions only".into(), only_sessions),
        trial("faults/isolated ranks none of which begins".into(), none_begins),
        trial("faults/isolated ranks whose second program begins".into(), second_begins),
    ]
}

fn program(name: &str) -> Result<PathBuf, String> {
    programs::compile(&place::root().join(format!("tests/programs/tools/{name}.c")), Abi::Mpi5, &[])
}

fn isolated(options: &[&str]) -> Result<Program, String> {
    Ok(Program::new(place::built_file("pip-exec")?).arg("--isolate").args(options).seconds(60))
}

/// Rank 1 ends at once, the others wait for it.
fn never_begins(words: &[&str]) -> Outcome {
    let program = program("before_init")?;
    let job = isolated(&["-n", "1"])?.arg(&program).args(words).args([":", "-n", "1"]).arg(&program).arg("leave");
    let ended = job.args([":", "-n", "1"]).arg(&program).args(words).run()?.expect_code(1)?;
    ended.expect_text("rank 1 ended without calling MPI_Init, which others have called").map(drop)
}

fn only_sessions() -> Outcome {
    let program = program("before_init")?;
    let job = isolated(&["-n", "1"])?.arg(&program).arg("sessions").args([":", "-n", "1"]).arg(&program).arg("end");
    let ended = job.run()?.expect_code(1)?;
    ended.expect_text("rank 0 ended without calling MPI_Init, which others have called").map(drop)
}

fn none_begins() -> Outcome {
    let program = program("before_init")?;
    let job = isolated(&["-n", "1"])?.arg(&program).arg("sessions").args([":", "-n", "2"]).arg(&program).arg("leave");
    job.run()?.expect_code(0).map(drop)
}

/// What a rank's script starts first uses no MPI.
fn second_begins() -> Outcome {
    let script = "\"$0\" leave && exec \"$0\"";
    let job = isolated(&["-n", "2", "sh", "-c", script])?.arg(program("before_init")?);
    job.run()?.expect_code(0).map(drop)
}

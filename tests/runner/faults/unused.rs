//! Ranks that end before `MPI_Init`, and whoever waits for them or takes their place.

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
        trial("faults/a program in the background is refused MPI".into(), || background(&[])),
        trial("faults/an isolated program in the background is refused MPI".into(), || background(&["--isolate"])),
        trial("faults/a program in the background that uses no MPI".into(), background_without_mpi),
        trial("faults/a program in the background that stays is named".into(), background_for_ever),
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
    let ended = job.args([":", "-n", "1"]).arg(&program).args(words).run()?;
    let ended = ended.expect_code(1)?;
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

/// The rank has ended well, and what it has left behind is refused.
fn background(options: &[&str]) -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(options).args(["-n", "2"]).arg(program("background")?);
    let ended = job.seconds(60).run()?.expect_code(1)?;
    let ended = ended.expect_text("was forked by an MPI process and called MPI")?;
    ended.expect_text("left behind by a rank that did not call MPI_Init, has ended with status 1").map(drop)
}

fn background_without_mpi() -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "2"]).arg(program("background")?).arg("nothing");
    job.seconds(60).run()?.expect_code(0).map(drop)
}

/// Nobody knows whether it is yet to call MPI: the job ends, and says so.
fn background_for_ever() -> Outcome {
    // The runner looks for what is left when the shell ends.
    let script = "\"$0\" -n 2 \"$1\" nothing numbers; status=$?; kill $(cat numbers); exit $status";
    let folder = place::scratch()?;
    let _ = std::fs::remove_file(folder.join("numbers"));
    let shell = Program::new("sh").directory(&folder).args(["-c", script]).arg(place::built_file("pip-exec")?);
    let ended = shell.arg(program("background")?).seconds(60).run()?.expect_code(0)?;
    ended.expect_text("left behind by ranks, did not call MPI in 5 s since").map(drop)
}

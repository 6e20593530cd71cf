//! Random MPI programs whose every byte is checked, for half a minute; `make soak` runs them for longer.

use crate::command::Program;
use crate::trials::Trial;
use crate::{Outcome, place, trial};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("soak/half a minute".into(), || half_a_minute(&[], "none wrong")),
        trial("soak/ended in the middle".into(), || half_a_minute(&["--cut"], "all have ended")).long(true),
        trial("soak/fuzzers guided by coverage".into(), fuzzers).long(true),
        trial("soak/a folder that is no build is named".into(), without_build),
    ]
}

/// `make fuzz`: a build of its own, so the corpus of `fuzz/targets` is what every run tries.
fn fuzzers() -> Outcome {
    let ended = Program::new("make").arg("-C").arg(place::root()).arg("fuzz").seconds(1200).run()?.expect_code(0)?;
    ended.expect_text("settings: ").map(drop)
}

/// What people see who have not built, or name another folder.
fn without_build() -> Outcome {
    let ended = Program::new("python3")
        .arg(place::root().join("tests/soak/soak.py"))
        .args(["--minutes", "1", "--built", "/proc/self"])
        .run()?
        .expect_code(2)?
        .expect_text("has no pip-exec and no mpicc")?;
    match ended.says("Traceback") {
        true => Err(ended.failure("expected a message only")),
        false => Ok(()),
    }
}

/// A failure is shrunk before it is told, which takes its time.
fn half_a_minute(more: &[&str], verdict: &str) -> Outcome {
    let built = place::built_file("pip-exec")?;
    let folder = built.parent().ok_or("pip-exec lies nowhere")?;
    Program::new("python3")
        .arg(place::root().join("tests/soak/soak.py"))
        .args(["--minutes", "0.5", "--seed", "1", "--built"])
        .arg(folder)
        .args(more)
        .seconds(1500)
        .run()?
        .expect_code(0)?
        .expect_text(verdict)?;
    Ok(())
}

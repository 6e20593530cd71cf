//! Random MPI programs whose every byte is checked, for two minutes; `make soak` runs them for longer.

use crate::command::Program;
use crate::{Outcome, place, trial};
use libtest_mimic::Trial;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("soak/two minutes".into(), two_minutes),
        trial(
            "soak/a folder that is no build is named".into(),
            without_build,
        ),
    ]
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
fn two_minutes() -> Outcome {
    let built = place::built_file("pip-exec")?;
    let folder = built.parent().ok_or("pip-exec lies nowhere")?;
    Program::new("python3")
        .arg(place::root().join("tests/soak/soak.py"))
        .args(["--minutes", "2", "--seed", "1", "--built"])
        .arg(folder)
        .seconds(1500)
        .run()?
        .expect_code(0)?
        .expect_text("none wrong")?;
    Ok(())
}

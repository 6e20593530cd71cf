//! The k-th call by which a rank gets memory fails: `starved.c` goes through every k for one kind of calls of MPI.
//!
//! By hand, for each PLACE and RANK (-1: all): `pip-exec -n 4 starved PLACE RANK`, and for collectives, of which a
//! failure ends the job, `starved PLACE RANK K K` for K = 1, 2, ...

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// Kinds of calls that return `MPI_ERR_NO_MEM`, or do without.
const RETURNING: [&str; 7] = [
    "types", "comms", "objects", "windows", "early", "layouts", "others",
];

/// Kinds of calls in which others wait for the rank.
const JOINT: [&str; 2] = ["collectives", "nonblocking"];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for place in RETURNING {
        trials.push(trial(format!("faults/no memory in {place}"), move || {
            returning(place)
        }));
    }
    for place in JOINT {
        trials.push(trial(format!("faults/no memory in {place}"), move || {
            joint(place)
        }));
    }
    trials
}

fn job(place: &str, who: &str, calls: &[&str]) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools/starved.c");
    let executable = programs::compile_as("starved", &source, Abi::Mpi5, &[])?;
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "4"]);
    let job = job.arg(executable).args([place, who]).args(calls);
    Ok(job.seconds(100))
}

/// The program checks that each call has done what it shall, or has told of the want of memory.
fn returning(place: &str) -> Outcome {
    job(place, "1", &[])?
        .run()?
        .expect_code(0)?
        .expect_text("passed")
        .map(drop)
}

/// The job goes on, or ends and says which rank had no memory, and where.
fn joint(place: &str) -> Outcome {
    for k in ["1", "2", "3"] {
        let ended = job(place, "1", &[k, k])?.run()?;
        if ended.code() == 0 {
            ended.expect_text("passed")?;
        } else {
            let words = "rank 1 is out of memory (MPI_ERR_NO_MEM) in a collective";
            ended.expect_code(1)?.expect_text(words)?;
        }
    }
    Ok(())
}

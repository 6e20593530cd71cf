//! A job for which the machine has too little memory; and the k-th call by which a rank gets memory fails: `starved.c`
//! goes through every k for one kind of calls of MPI.
//!
//! By hand, for each PLACE and RANK (-1: all): `pip-exec -n 4 starved PLACE RANK`, and for collectives, of which a
//! failure ends the job, `starved PLACE RANK K K` for K = 1, 2, ...

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// Kinds of calls that return `MPI_ERR_NO_MEM`, or do without.
const RETURNING: [&str; 7] = ["types", "comms", "objects", "windows", "early", "layouts", "others"];

/// Kinds of calls in which others wait for the rank.
const JOINT: [&str; 2] = ["collectives", "nonblocking"];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for place in RETURNING {
        trials.push(trial(format!("faults/no memory in {place}"), move || returning(place)));
    }
    for place in JOINT {
        trials.push(trial(format!("faults/no memory in {place}"), move || joint(place)));
    }
    let killed = |isolated: bool| {
        let how = if isolated { " of its own" } else { "" };
        let name = format!("faults/a rank with an address space{how} takes all memory");
        trial(name, move || killed(isolated))
    };
    trials.extend([killed(false), killed(true)]);
    trials
}

/// A group of processes with a limit of memory, by the kernel's first or second interface. It has none of them at the
/// end.
struct Limited(PathBuf);

impl Limited {
    /// None where the system does not let us make one.
    fn new(megabytes: u32) -> Option<Self> {
        let name = format!("cohort-{}-{megabytes}", std::process::id());
        let kinds = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        kinds.iter().find_map(|(root, file)| {
            let group = Self(PathBuf::from(root).join(&name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(file), format!("{megabytes}M")).ok()?;
            Some(group)
        })
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The kernel kills all who share the address space, `pip-exec` too, or the one rank.
fn killed(isolated: bool) -> Outcome {
    let Some(group) = Limited::new(if isolated { 301 } else { 300 }) else {
        eprintln!("faults: no limits of memory here");
        return Ok(());
    };
    let source = place::root().join("tests/programs/tools/eats.c");
    let executable = programs::compile_as("eats", &source, Abi::Mpi5, &[])?;
    let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
    let job = Program::new("sh").args(["-c", enter]).arg(&group.0);
    let job = job.arg(place::built_file("pip-exec")?).args(["-n", "2"]);
    let job = job.args(isolated.then_some("--isolate")).arg(executable);
    let ended = job.run()?.expect_code(128 + 9)?;
    ended.expect_text("memory has run out since")?;
    Ok(())
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
    job(place, "1", &[])?.run()?.expect_code(0)?.expect_text("passed").map(drop)
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

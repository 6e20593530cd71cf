//! How the ranks of one address space end if they are many: each executes what ends without a walk over all of its
//! entries, after all that its program has left for the end.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// As many as that are many.
const MANY: usize = 256;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("ends/many ranks execute another program".into(), many),
        trial("ends/few ranks end as usual".into(), few),
        trial("ends/the status of one of many".into(), status),
    ]
}

fn program() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/many_end.c");
    programs::compile(&source, Abi::Mpi5, &[])
}

fn job(ranks: usize) -> Result<Program, String> {
    let pip_exec = Program::new(place::built_file("pip-exec")?).seconds(60);
    Ok(pip_exec.args(["-n", &ranks.to_string()]).arg(program()?))
}

/// Every rank, and the child of the first one, has called its handler and its destructor, and what it left in its
/// stream has come.
fn all_said(ended: Ended, ranks: usize) -> Result<Ended, String> {
    let ended = ended.expect_code(0)?;
    let said = |text: &str| ended.stdout.matches(text).count();
    let silent =
        (0..ranks).find(|&rank| said(&format!("handler destructor of {rank}\n")) != 1 + usize::from(rank == 0));
    match (silent, said("end")) {
        (None, ends) if ends == ranks + 1 => Ok(ended),
        (None, ends) => Err(ended.failure(&format!("{ends} of {} ends", ranks + 1))),
        (Some(rank), _) => Err(ended.failure(&format!("rank {rank} has not said all"))),
    }
}

/// How many of so many ranks have executed something at their end.
fn executed(ranks: usize) -> Result<usize, String> {
    let calls = place::scratch()?.join(format!("ends-{ranks}"));
    let strace = ["-f", "--seccomp-bpf", "-qq", "-e", "trace=execve", "-o"];
    let strace = Program::new("strace").args(strace).arg(&calls);
    let strace = strace.arg(place::built_file("pip-exec")?).args(["-n", &ranks.to_string()]);
    all_said(strace.arg(program()?).seconds(60).run()?, ranks)?;
    let calls = std::fs::read_to_string(calls).map_err(|error| error.to_string())?;
    Ok(calls.matches("libcohort_audit.so\", ").count())
}

fn many() -> Outcome {
    match executed(MANY)? {
        MANY => Ok(()),
        count => Err(format!("{count} of {MANY} ranks have executed it")),
    }
}

fn few() -> Outcome {
    match executed(4)? {
        0 => Ok(()),
        count => Err(format!("{count} of 4 ranks have executed it")),
    }
}

/// One rank fails; the others may have ended or not.
fn status() -> Outcome {
    let job = job(MANY)?.arg("255").run()?.expect_code(3)?;
    job.expect_text("rank 255 (pid ")?.expect_text("ended with status 3").map(drop)
}

//! Ranks that die: the job ends at once, says why, and leaves nothing behind.
//!
//! [`crate::command::Program`] itself checks that no task of the job lives on.

mod files;
mod machine;
mod memory;
mod places;
mod steps;
mod survival;
mod unused;

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::time::Duration;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("faults/kill -9 of one rank ends the job".into(), killed_rank),
        trial("faults/SIGTERM to pip-exec ends the job".into(), terminated_job),
        trial("faults/--timeout ends the job".into(), expired_job),
        trial("faults/MPIEXEC_TIMEOUT ends the job".into(), expired_by_variable),
        trial("faults/a segmentation fault names rank and address".into(), crashed_rank),
        trial("faults/a forked child that exits leaves its parent in the job".into(), forked_child),
    ];
    trials.extend(places::trials());
    trials.extend(steps::trials());
    trials.extend(survival::trials());
    trials.extend(files::trials());
    trials.extend(machine::trials());
    trials.extend(memory::trials());
    trials.extend(unused::trials());
    trials
}

/// Rank processes of the job that pip-exec (process `root`) started.
fn ranks_of(root: u32) -> Vec<Pid> {
    let path = format!("/proc/{root}/task/{root}/children");
    let children = std::fs::read_to_string(&path).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// The program whose ranks wait or crash.
fn stuck() -> Result<PathBuf, String> {
    programs::compile_as("fault", &programs::source("stuck.c"), Abi::Mpich, &[])
}

/// Runs `stuck.c`, whose ranks wait forever, on 4 ranks; calls `strike` when all wait.
fn strike(strike: impl FnOnce(u32, &[Pid]), arguments: &[&str]) -> Result<Ended, String> {
    let executable = stuck()?;
    let pip_exec = place::built_file("pip-exec")?;
    let mut waits = Ok(());
    let ended =
        Program::new(pip_exec).args(arguments).args(["-n", "4"]).arg(executable).arg("wait").seconds(20).run_with(
            |root| {
                waits = event::until("four ranks", || ranks_of(root).len() == 4);
                // They come to their wait meanwhile, and any other place does as well.
                event::pass(Duration::from_millis(300));
                strike(root, &ranks_of(root));
            },
        )?;
    waits.map_err(|problem| ended.failure(&problem))?;
    Ok(ended)
}

fn killed_rank() -> Outcome {
    let blow = |_root, ranks: &[Pid]| {
        if let Some(&rank) = ranks.get(1) {
            let _ = kill_process(rank, Signal::KILL);
        }
    };
    strike(blow, &[])?.expect_code(128 + 9)?.expect_text("rank")?;
    Ok(())
}

fn terminated_job() -> Outcome {
    let blow = |root: u32, _ranks: &[Pid]| {
        if let Some(root) = Pid::from_raw(root.cast_signed()) {
            let _ = kill_process(root, Signal::TERM);
        }
    };
    strike(blow, &[])?.expect_code(128 + 15)?;
    Ok(())
}

fn expired_job() -> Outcome {
    let ended = strike(|_, _| (), &["--timeout", "1"])?;
    match ended.code() {
        0 => Err(ended.failure("expected a failure")),
        _ => Ok(()),
    }
}

/// The variable by which MPICH's users say the same; 0 is no limit.
fn expired_by_variable() -> Outcome {
    let mut run = Program::new(place::built_file("pip-exec")?);
    run = run.args(["-n", "2"]).arg(stuck()?).arg("wait").seconds(20);
    let ended = run.env("MPIEXEC_TIMEOUT", "1").run()?;
    ended.expect_code(124)?.expect_text("ended after 1 second\n")?;
    for none in ["0", ""] {
        let run = Program::new(place::built_file("pip-exec")?);
        run.args(["-n", "2", "true"]).env("MPIEXEC_TIMEOUT", none).run()?.expect_code(0)?;
    }
    let mut run = Program::new(place::built_file("pip-exec")?);
    run = run.args(["-n", "2", "true"]).env("MPIEXEC_TIMEOUT", "1h");
    let refused = run.run()?.expect_code(2)?;
    refused.expect_text("MPIEXEC_TIMEOUT=1h: it takes whole seconds").map(drop)
}

fn crashed_rank() -> Outcome {
    let executable = stuck()?;
    Program::new(place::built_file("pip-exec")?)
        .args(["-n", "4"])
        .arg(executable)
        .arg("crash")
        .seconds(20)
        .run()?
        .expect_code(128 + 11)?
        .expect_text("rank 1")?
        .expect_text("SIGSEGV")?;
    Ok(())
}

/// Ranks that are nodes of their own, each of which has joined the job through a manager and has exit handlers. Had
/// the child run them, the manager would take the rank's early end for a good one.
fn forked_child() -> Outcome {
    let source = programs::source("forked_child.c");
    let executable = programs::compile_as("forked", &source, Abi::Mpich, &[])?;
    let job = |arguments: &[&str]| {
        Program::new(place::built_file("pip-exec")?)
            .args(["--isolate", "-n", "2"])
            .arg(&executable)
            .args(arguments)
            .seconds(30)
            .run()
    };
    job(&[])?.expect_code(0)?.expect_text("passed")?;
    let said = "ended without calling MPI_Finalize";
    job(&["leave"])?.expect_code(1)?.expect_text(said)?;
    Ok(())
}

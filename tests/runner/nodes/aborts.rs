//! `MPI_Abort` ends the whole job with the low byte of its code, also where that is 0, however the job was started.

use super::clusters::{self, LAUNCHERS, Launcher};
use super::hosts::Hosts;
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// Codes whose status is something else than a common failure.
const CODES: [u32; 7] = [0, 1, 127, 255, 256, 257, 300];

/// Of a process that was killed, as shells tell it.
const KILLED: i32 = 128 + 9;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let all = || 0..=300;
    let some = || CODES.into_iter();
    let mut trials = vec![
        trial("nodes/codes of MPI_Abort on one node".into(), move || {
            each(some(), |code| on_one_node(&["-n", "3"], code))
        }),
        trial("nodes/all codes of MPI_Abort on one node".into(), move || {
            each(all(), |code| on_one_node(&["-n", "2"], code))
        })
        .long(true),
        trial("nodes/codes of MPI_Abort of isolated ranks".into(), move || {
            each(some(), |code| on_one_node(&["--isolate", "-n", "3"], code))
        }),
        trial("nodes/codes of MPI_Abort on three hosts".into(), move || each(some(), on_hosts)),
    ];
    for (name, launcher) in LAUNCHERS {
        trials.push(trial(format!("managers/codes of MPI_Abort ({name})"), move || {
            let cluster = clusters::cluster(launcher)?;
            each(some(), |code| {
                let manager = clusters::command(launcher, 1, cluster.as_ref())?;
                let job = manager.arg(place::built_file("pip-exec")?);
                run(job.args(["-n", "2"]), code, 3)
            })
        }));
        trials.push(trial(format!("managers/codes of MPI_Abort without pip-exec ({name})"), move || {
            let cluster = clusters::cluster(launcher)?;
            each(some(), |code| {
                let job = clusters::command(launcher, 2, cluster.as_ref())?;
                match launcher {
                    Launcher::Srun(_) => run_killed(job, code, 3),
                    _ => run(job, code, 3),
                }
            })
        }));
    }
    trials
}

fn each(mut codes: impl Iterator<Item = u32>, run: impl Fn(u32) -> Outcome) -> Outcome {
    codes.try_for_each(run)
}

fn on_one_node(options: &[&str], code: u32) -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(options);
    run(job, code, 1)
}

fn on_hosts(code: u32) -> Outcome {
    let hosts = Hosts::new(3)?;
    run(hosts.pip_exec("2")?, code, 3)
}

/// A job whose rank `by` aborts it.
fn run(job: Program, code: u32, by: u32) -> Outcome {
    let status = (code & 0xff).cast_signed();
    let ended = start(job, code, by)?.expect_code(status)?;
    expect_reason(ended, code, by)
}

/// The same of ranks that Slurm has started. Nobody but Slurm can end the others, and what it kills has a status.
fn run_killed(job: Program, code: u32, by: u32) -> Outcome {
    let ended = start(job, code, by)?;
    match ended.code() {
        KILLED => expect_reason(ended, code, by),
        _ => expect_reason(ended.expect_code((code & 0xff).cast_signed())?, code, by),
    }
}

fn start(job: Program, code: u32, by: u32) -> Result<Ended, String> {
    let source = place::root().join("tests/programs/tools/abort_code.c");
    let program = programs::compile(&source, Abi::Mpi5, &[])?;
    let job = job.arg(program).args([code.to_string(), by.to_string()]);
    job.seconds(30).run()
}

/// The rank's own words say why, and nobody says something else.
fn expect_reason(ended: Ended, code: u32, by: u32) -> Outcome {
    let why = format!("rank {by} called MPI_Abort on MPI_COMM_WORLD with code {code}");
    let ended = ended.expect_text(&why)?;
    let others = ["without calling MPI_Finalize", "is gone", "has not answered"];
    match others.into_iter().find(|other| ended.says(other)) {
        Some(other) => Err(ended.failure(&format!("a false word: {other}"))),
        None => Ok(()),
    }
}

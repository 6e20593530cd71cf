//! Ranks that have an address space each: they are asked what they wait for, and so are those of several nodes.

use super::{is_named, is_spared};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::nodes::Hosts;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// Programs that hang, and what is said of them.
const HANGING: [(&str, &[&str]); 7] = [
    (
        "lost_message",
        &[
            "rank 1: MPI_Recv from 0, tag 7, MPI_COMM_WORLD of 4",
            "nobody in this circle can go on: rank 0 waits for rank",
        ],
    ),
    (
        "cyclic_sends",
        &["rank 3: MPI_Send of 1048576 bytes to 0, tag 5", "nobody in this circle can go on: rank 0 waits for rank 1"],
    ),
    ("wrong_tag", &["rank 1 waits for tag 42, and has a message from rank 0 with tag 43"]),
    ("lock_cycle", &["waits for lock of 1 at its window"]),
    ("subset", &["MPI_Recv from 0, tag 1, MPI_COMM_WORLD of 4"]),
    ("late_in_collective", &["MPI_Wait for a collective"]),
    ("unanswered", &["rank 0: MPI_Waitall for 2 requests: a receive from 3, tag 11, MPI_COMM_WORLD of 4"]),
];

/// Programs that go on after a while.
const ALIVE: [&str; 9] = [
    "sleeps",
    "computes",
    "thread_sends",
    "handler_completes",
    "handler_waits",
    "probes",
    "passive_target",
    "stopped",
    "answers",
];

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("hang/apart/a shell script's children".into(), script),
        trial("hang/apart/the time is over".into(), time_is_over),
        trial("nodes/deadlocks of ranks with an address space each".into(), two_nodes),
    ];
    for (name, said) in HANGING {
        trials.push(trial(format!("hang/apart/{name}"), move || {
            let job = Program::new(place::built_file("pip-exec")?).args(["--isolate", "-n", "4"]);
            let job = job.arg(program("hangs.c")?).arg(name).env("COHORT_DEADLOCK_AFTER", "0.5");
            is_named(job.run_for_hang()?, said)
        }));
    }
    for name in ALIVE {
        trials.push(trial(format!("hang/apart/alive: {name}"), move || {
            let job = Program::new(place::built_file("pip-exec")?).args(["--isolate", "-n", "3"]);
            is_spared(job.arg(program("alive.c")?).arg(name).env("COHORT_DEADLOCK_AFTER", "0.2").run_for_hang()?)
        }));
    }
    trials
}

fn program(source: &str) -> Result<std::path::PathBuf, String> {
    let source = place::root().join("tests/programs/tools").join(source);
    let options = ["-pthread"].map(String::from);
    programs::compile_as(&format!("apart-{}", programs::stem(&source)), &source, Abi::Mpich, &options)
}

impl Program {
    /// Runs it with the settings of these trials, unless others were given before.
    fn run_for_hang(self) -> Result<Ended, String> {
        let job = self.env("COHORT_PROGRESS", "steal").env("COHORT_DEADLOCK", "end").seconds(60);
        job.run()
    }
}

/// What a script starts, and does not execute, has an address space of its own, without an option.
fn script() -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "4", "sh", "-c", "\"$0\" lost_message; true"]);
    is_named(job.arg(program("hangs.c")?).run_for_hang()?, &["rank 1: MPI_Recv from 0, tag 7, MPI_COMM_WORLD of 4"])
}

/// Nobody looks whether the job can go on; the picture shows what ranks did.
fn time_is_over() -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(["--isolate", "-n", "4", "--timeout", "4"]);
    let job = job.arg(program("hangs.c")?).arg("lost_message").env("COHORT_DEADLOCK", "off").seconds(60);
    job.run()?.expect_code(124)?.expect_text("rank 1: MPI_Recv from 0, tag 7, MPI_COMM_WORLD of 4").map(drop)
}

fn two_nodes() -> Outcome {
    let hosts = Hosts::new(2)?;
    for (name, said) in &HANGING[..3] {
        let job = hosts.pip_exec("2")?.args(["--map-by", "node", "--isolate"]).arg(program("hangs.c")?).arg(name);
        is_named(job.env("COHORT_DEADLOCK_AFTER", "0.5").run_for_hang()?, said)?;
    }
    for name in ["sleeps", "answers"] {
        let job = hosts.pip_exec("2,1")?.arg("--isolate").arg(program("alive.c")?).arg(name);
        is_spared(job.env("COHORT_DEADLOCK_AFTER", "0.2").run_for_hang()?)?;
    }
    Ok(())
}

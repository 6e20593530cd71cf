//! Processes that are spawned in jobs of several nodes: how they end, and what is said of them.

use super::hosts::Hosts;
use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{place, programs, trial};

/// What a job of a rank on each of two nodes that spawn two more is to do, its status, and what is to be said.
const ENDS: [(&str, i32, &[&str]); 7] = [
    ("none", 0, &["child 0 ends", "child 1 ends"]),
    ("aborts", 7, &["rank 1 of spawned world 1 called MPI_Abort on MPI_COMM_WORLD with code 7"]),
    ("exits", 3, &["rank 3 on node 0 (", "(rank 1 of spawned world 1) (pid ", "ended with status 3"]),
    ("crashes", 139, &["rank 3 on node 0 (", "(rank 1 of spawned world 1) (pid ", "killed by signal 11"]),
    ("parent exits", 5, &["rank 0 on node 0 (", "ended with status 5"]),
    ("refused", 53, &["MPI_Comm_spawn failed on MPI_COMM_WORLD: MPI_ERR_SPAWN", "/no/such/program"]),
    ("hang", 35, &["ranks 0-1: MPI_Recv from 0", "ranks 2-3: MPI_Recv from 0", "nobody in this circle can go on"]),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let ends = ENDS.iter().map(|&(what, status, said)| {
        trial(format!("nodes/spawned, {what}"), move || {
            let hosts = Hosts::new(2)?;
            let ended = job(&hosts, what)?.run()?.expect_code(status)?;
            said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
        })
    });
    ends.collect()
}

fn job(hosts: &Hosts, what: &str) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools/spawns.c");
    let program = programs::compile_as("nodes-spawns", &source, Abi::Mpich, &[])?;
    let job = hosts.pip_exec("1")?.arg(program).arg(what);
    let job = job.env("COHORT_DEADLOCK", "end").env("COHORT_DEADLOCK_AFTER", "0.5");
    Ok(job.seconds(60))
}

//! Many ranks and few descriptors: what a node opens grows with the nodes, not with the pairs of ranks.

use super::hosts::Hosts;
use crate::command::Program;
use crate::directives::Abi;
use crate::{Outcome, place, programs, trial};
use libtest_mimic::Trial;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/56 ranks on each of two nodes".to_owned(), || {
            crowd(2, 56, 1024, "1")
        }),
        trial(
            "nodes/128 ranks on each of two nodes, 256 files".to_owned(),
            || crowd(2, 128, 256, "1"),
        ),
        trial(
            "nodes/32 ranks on each of eight nodes, 256 files".to_owned(),
            || crowd(8, 32, 256, "1"),
        ),
        trial("nodes/three rails between three nodes".to_owned(), || {
            crowd(3, 4, 256, "3")
        }),
    ]
}

/// Everybody sends to everybody, with so many files that each process may have.
fn crowd(nodes: u32, ranks: u32, files: u32, rails: &str) -> Outcome {
    let hosts = Hosts::new(nodes)?;
    let source = place::root().join("tests/programs/tools/crowd.c");
    let name = format!("nodes-crowd-{}", hosts.name());
    let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    let limited = [
        "sh".to_owned(),
        "-c".to_owned(),
        format!("ulimit -n {files}; exec \"$@\""),
        "sh".to_owned(),
    ];
    let pip_exec = place::built_file("pip-exec")?;
    let job: Program = hosts.mpiexec(1)?.args(limited).arg(pip_exec);
    let job = job.args(["-n", &ranks.to_string()]).arg(program);
    // Hundreds of processes leave others no time.
    let job = job.env("COHORT_NET_RAILS", rails).seconds(240).alone(true);
    let expected = format!("{} ranks, {files} files: 0 wrong bytes", nodes * ranks);
    job.run()?.expect_code(0)?.expect_text(&expected)?;
    Ok(())
}

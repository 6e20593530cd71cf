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
        trial(
            "nodes/encrypted, 32 ranks on each of two nodes".to_owned(),
            || {
                let hosts = Hosts::new(2)?;
                let job = job(&hosts, 32, 1024)?.env("COHORT_NET_ENCRYPT", "1");
                expect(job, 64, 1024)
            },
        ),
    ]
}

/// Everybody sends to everybody, with so many files that each process may have.
fn crowd(nodes: u32, ranks: u32, files: u32, rails: &str) -> Outcome {
    let hosts = Hosts::new(nodes)?;
    let job = job(&hosts, ranks, files)?.env("COHORT_NET_RAILS", rails);
    expect(job, nodes * ranks, files)
}

fn job(hosts: &Hosts, ranks: u32, files: u32) -> Result<Program, String> {
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
    let job = hosts.mpiexec(1)?.args(limited).arg(pip_exec);
    // Hundreds of processes leave others no time.
    let job = job.args(["-n", &ranks.to_string()]).arg(program);
    Ok(job.seconds(240).alone(true))
}

fn expect(job: Program, ranks: u32, files: u32) -> Outcome {
    let expected = format!("{ranks} ranks, {files} files: 0 wrong bytes");
    job.run()?.expect_code(0)?.expect_text(&expected)?;
    Ok(())
}

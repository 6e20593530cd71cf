//! Connections that are encrypted (`COHORT_NET_ENCRYPT`): what a wiretap sees, what it can change, and who disagrees.

use super::hosts::{Hosts, namespaces_work};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/a wiretap reads plain connections".into(), || tapped("off", "1", true)),
        trial("nodes/a wiretap reads nothing encrypted".into(), || tapped("1", "1", false)),
        trial("nodes/a wiretap reads nothing of three encrypted rails".into(), || tapped("1", "3", false)),
        trial("nodes/what a stranger adds is found out".into(), added),
        trial("nodes/nodes agree about encryption".into(), disagreeing),
        trial("nodes/libfabric does not encrypt".into(), unsupported),
    ]
}

/// `secrets.c` on two hosts, with a wiretap at the interface of each.
fn tap(hosts: &Hosts, mode: &str, rails: &str) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools/secrets.c");
    let name = format!("nodes-secrets-{}", hosts.name());
    let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    let script = place::root().join("tests/programs/python/wiretap.py");
    let job = hosts.mpiexec(1)?.arg("python3").arg(script);
    let job = job.args([mode, "eth0"]).arg(place::built_file("pip-exec")?);
    let job = job.args(["-n", "1"]).arg(program).arg(mode);
    Ok(job.env("COHORT_NET_RAILS", rails).seconds(120))
}

fn tapped(encrypts: &str, rails: &str, is_clear: bool) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let job = tap(&hosts, "read", rails)?.env("COHORT_NET_ENCRYPT", encrypts);
    let ended = job.run()?.expect_code(0)?.expect_text("0 wrong bytes")?;
    let ended = ended.expect_text("tap: much was sent")?;
    match ended.says("the text in clear") == is_clear {
        true => Ok(()),
        false => Err(ended.failure(&format!("expected the text in clear: {is_clear}"))),
    }
}

fn added() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let job = tap(&hosts, "add", "1")?.env("COHORT_NET_ENCRYPT", "1");
    let ended = failed(job.run()?)?;
    ended.expect_text("is not what it wrote").map(drop)
}

fn failed(ended: Ended) -> Result<Ended, String> {
    match ended.code() {
        0 => Err(ended.failure("expected a failure")),
        _ => Ok(ended),
    }
}

fn ring(hosts: &Hosts) -> Result<std::path::PathBuf, String> {
    let name = format!("nodes-encryption-{}", hosts.name());
    programs::compile_as(&name, &programs::source("ring.c"), Abi::Mpi5, &[])
}

/// Each time another node is the one that encrypts.
fn disagreeing() -> Outcome {
    let hosts = Hosts::new(2)?;
    let ring = ring(&hosts)?;
    for node in 0..2 {
        let only_there = format!("test \"$PMI_RANK\" = {node} && export COHORT_NET_ENCRYPT=1; exec \"$@\"");
        let job = hosts.mpiexec(1)?.args(["sh", "-c", &only_there, "sh"]);
        let job = job.arg(place::built_file("pip-exec")?).args(["-n", "1"]);
        let ended = failed(job.arg(&ring).run()?)?;
        ended.expect_text("COHORT_NET_ENCRYPT is the same on all nodes")?;
    }
    Ok(())
}

fn unsupported() -> Outcome {
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("1")?.env("COHORT_NET_ENCRYPT", "1");
    let job = job.env("COHORT_NET_PROVIDER", "tcp").arg(ring(&hosts)?);
    failed(job.run()?)?
        .expect_text("COHORT_NET_PROVIDER asks for tcp, which sends in clear text")?
        .expect_text("set COHORT_NET_PROVIDER=direct")
        .map(drop)
}

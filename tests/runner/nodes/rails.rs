//! Several connections between two nodes that have several interfaces.

use super::hosts::{Hosts, namespaces_work};
use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// Of the 5 MB that each rank of `secrets.c` has read in pieces of 1 MiB, what takes each of two ways. Its packets,
/// 10 MB, take one of them.
const SHARE: u64 = 2_000_000;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/two rails take two interfaces".into(), || spread("2", "off", true)),
        trial("nodes/two encrypted rails take two interfaces".into(), || spread("2", "on", true)),
        trial("nodes/one rail takes one interface".into(), || spread("1", "off", false)),
        trial("nodes/rails leave an interface that leads nowhere".into(), leading_nowhere),
    ]
}

/// A job of two nodes that have two interfaces.
fn job(hosts: &Hosts, rails: &str) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools/secrets.c");
    let name = format!("nodes-rails-{}", hosts.name());
    let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    let job = hosts.pip_exec("1")?.arg(program);
    Ok(job.env("COHORT_NET_RAILS", rails).seconds(120))
}

fn spread(rails: &str, encrypts: &str, takes_second: bool) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    hosts.add_second_network()?;
    let job = job(&hosts, rails)?.env("COHORT_NET_ENCRYPT", encrypts);
    let ended = job.run()?.expect_code(0)?.expect_text("0 wrong bytes")?;
    for host in 0..2 {
        let (first, second) = (hosts.sent(host, "eth0")?, hosts.sent(host, "eth1")?);
        if first < SHARE || (second >= SHARE) != takes_second {
            let text = format!("host {host} sent {first} bytes by eth0, {second} by eth1");
            return Err(ended.failure(&text));
        }
    }
    Ok(())
}

fn leading_nowhere() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    hosts.add_second_network()?;
    hosts.cut_second_network()?;
    let ended = job(&hosts, "2")?.run()?.expect_code(0)?;
    ended.expect_text("0 wrong bytes")?.expect_text("COHORT_NET_INTERFACE chooses one").map(drop)
}

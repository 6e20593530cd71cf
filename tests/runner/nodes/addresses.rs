//! Where the nodes of a job listen: ports and interfaces.

use super::hosts::{Hosts, Network, namespaces_work};
use crate::directives::Abi;
use crate::{Outcome, place, programs, trial};
use libtest_mimic::Trial;
use std::path::PathBuf;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![trial("nodes/ports that are all in use".into(), used_ports)];
    for network in [Network::Default, Network::Libfabric] {
        let name = format!("nodes/ports of a range{}", network.suffix());
        trials.push(trial(name, move || ports_of_a_range(network)));
    }
    trials
}

fn listening(name: &str) -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/listening.c");
    programs::compile_as(name, &source, Abi::Mpi5, &[])
}

/// Nothing of a job listens elsewhere. On the second host nobody else does.
fn ports_of_a_range(network: Network) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?.over(network);
    let job = hosts.pip_exec("1")?.env("COHORT_NET_PORTS", "45000-45019");
    let program = listening(&format!("nodes-listening-{network:?}"))?;
    let ended = job.arg(program).run()?.expect_code(0)?;
    let lines = ended.stdout.lines();
    let ports: Vec<u32> = lines
        .filter_map(|line| line.strip_prefix("node 1 listens on ")?.parse().ok())
        .collect();
    if ports.is_empty() || !ports.iter().all(|port| (45000..=45019).contains(port)) {
        return Err(ended.failure("something listens outside of the range, or nothing does"));
    }
    Ok(())
}

fn used_ports() -> Outcome {
    let hosts = Hosts::new(2)?;
    let _taken = hosts.listen(1, 45100..=45109)?;
    let job = hosts.pip_exec("1")?.env("COHORT_NET_PORTS", "45100-45109");
    let ended = job.arg(listening("nodes-listening-used")?).run()?;
    if ended.code() == 0 {
        return Err(ended.failure("expected a failure"));
    }
    let text = "all ports of COHORT_NET_PORTS=45100-45109 are in use";
    ended.expect_text(text).map(drop)
}

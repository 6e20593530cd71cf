//! Where the nodes of a job listen, ports and interfaces, and how their connections share a link.

use super::hosts::{Hosts, Network, namespaces_work};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("nodes/ports that are all in use".into(), used_ports),
        trial("nodes/congestion control is chosen".into(), congestion),
    ];
    for network in [Network::Default, Network::Libfabric] {
        let name = format!("nodes/a bridge for containers{}", network.suffix());
        trials.push(trial(name, move || bridge_for_containers(network)));
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
    let ports: Vec<u32> = lines.filter_map(|line| line.strip_prefix("node 1 listens on ")?.parse().ok()).collect();
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

/// What the system has is taken, and what it has not is refused with what there is.
fn congestion() -> Outcome {
    let hosts = Hosts::new(2)?;
    let ring = programs::compile_as("nodes-ring", &programs::source("ring.c"), Abi::Mpi5, &[])?;
    for name in ["reno", "system"] {
        let job = hosts.pip_exec("1")?.env("COHORT_NET_CONGESTION", name);
        job.arg(&ring).run()?.expect_code(0)?;
    }
    let job = hosts.pip_exec("1")?.env("COHORT_NET_CONGESTION", "vegan");
    let ended = job.arg(&ring).run()?;
    if ended.code() == 0 {
        return Err(ended.failure("expected a failure"));
    }
    let ended = ended.expect_text("COHORT_NET_CONGESTION=vegan")?;
    ended.expect_text("allowed here: reno").map(drop)
}

/// Hosts have a bridge whose address is the same on all of them, and leads nowhere.
fn bridge_for_containers(network: Network) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?.over(network);
    hosts.add_inner_bridges("docker0", "172.17.0.1/16")?;
    let source = programs::source("ring.c");
    let name = format!("nodes-bridges-{network:?}");
    let ring = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    hosts.pip_exec("1")?.arg(&ring).run()?.expect_code(0)?;
    let job = hosts.pip_exec("1")?.env("COHORT_NET_INTERFACE", "docker0");
    let ended = job.arg(&ring).run()?;
    if ended.code() == 0 {
        return Err(ended.failure("expected a failure"));
    }
    // libfabric may not find the bridge at once, and then says that it cannot use it.
    let unusable = "reliable messages on \"docker0\"";
    let ended = match network != Network::Default && ended.says(unusable) {
        true => ended,
        false => ended.expect_text("both have 172.17.0.1, here of docker0")?,
    };
    ended.expect_text("COHORT_NET_INTERFACE").map(drop)
}

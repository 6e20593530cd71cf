//! Jobs over bad networks: slow, lossy, and others. A program between two hosts takes the place of the network
//! (`wire.py`), as not every kernel has netem.

use super::hosts::{Hosts, Network, namespaces_work};
use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Names of trials, what the wire does, and whether it does so over libfabric too.
const WIRES: [(&str, &[&str], bool); 6] = [
    ("late", &["delay=30"], false),
    ("narrow", &["rate=2000"], false),
    ("lossy", &["lost=3"], true),
    ("swapping", &["swapped=20", "delay=1"], false),
    ("doubling", &["doubled=20"], false),
    ("bad in all ways", &["lost=1", "swapped=5", "doubled=5", "broken=1", "delay=2"], true),
];

/// Where `wire.py` lets no connections through; it does not know the managers' own ports.
const PORTS: &str = "47000-47099";

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, faults, over_libfabric) in WIRES {
        let networks = [Network::Default, Network::Libfabric];
        for network in networks.into_iter().take(1 + usize::from(over_libfabric)) {
            let name = format!("nodes/traffic over a wire that is {name}{}", network.suffix());
            trials.push(trial(name, move || traffic(network, faults)));
        }
    }
    for encrypts in ["0", "1"] {
        let name = "nodes/a connection whose packets are dropped ends the job";
        trials.push(trial(format!("{name}, COHORT_NET_ENCRYPT={encrypts}"), move || cut(encrypts)));
    }
    trials.push(trial("nodes/a receiver that computes is no connection whose packets are dropped".into(), computes));
    for (end, ranks) in [("0", "2"), ("1", "1"), ("1", "2")] {
        let name = format!("nodes/node {end} takes no connections from outside, {ranks} ranks each");
        trials.push(trial(name, move || one_direction(end, ranks)));
    }
    trials.push(trial("nodes/no node takes connections from outside".into(), no_direction));
    trials
}

/// A wire that passes frames on, until it is dropped.
pub struct Wire(Child);

impl Wire {
    /// Takes the place of the network between two hosts.
    ///
    /// # Errors
    /// What the system refused.
    pub fn between(hosts: &Hosts, faults: &[&str]) -> Result<Self, String> {
        hosts.change();
        let ends = [0, 1].map(|host| format!("{}-{host}", hosts.name()));
        let mut wire = Command::new("python3")
            .arg(place::root().join("tests/programs/tools/wire.py"))
            .args(ends)
            .args(faults)
            .stdout(Stdio::piped())
            .spawn()
            .map(Self)
            .map_err(|error| format!("wire.py: {error}"))?;
        let mut line = String::new();
        let said = wire.0.stdout.take();
        let read = said.map(|said| BufReader::new(said).read_line(&mut line));
        match (read, line.trim()) {
            (Some(Ok(_)), "ready") => Ok(wire),
            _ => Err("wire.py did not begin".into()),
        }
    }
}

/// Whether there can be wires here; says so if not.
pub fn wires_work() -> bool {
    let work = namespaces_work() && std::path::Path::new("/dev/net/tun").exists();
    if !work {
        eprintln!("nodes: no wires of our own here");
    }
    work
}

impl Wire {
    /// Passes nothing on for so long.
    pub fn stall(&self, time: Duration) {
        let pid = Pid::from_child(&self.0);
        let _ = kill_process(pid, Signal::STOP);
        event::pass(time);
        let _ = kill_process(pid, Signal::CONT);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Messages of random sizes between the ranks of two hosts, each byte verified.
fn traffic(network: Network, faults: &[&str]) -> Outcome {
    if !wires_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?.over(network);
    let _wire = Wire::between(&hosts, faults)?;
    let source = programs::source("sendrecv.c");
    let name = format!("nodes-wire-{}", hosts.name());
    let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    let job = hosts.pip_exec("2")?.arg(program).seconds(120);
    job.run()?.expect_code(0)?.expect_text("passed").map(drop)
}

/// A job of one rank on each host that sends long messages both ways.
fn exchange(hosts: &Hosts) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools/exchange.c");
    let program = programs::compile(&source, Abi::Mpi5, &[])?;
    Ok(hosts.pip_exec("1")?.arg(program).env("COHORT_NET_TIMEOUT", "3"))
}

/// Both sides have something that is not acknowledged, and the nodes answer each other elsewhere.
fn cut(encrypts: &str) -> Outcome {
    if !wires_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let _wire = Wire::between(&hosts, &["cut=50000"])?;
    let job = exchange(&hosts)?.env("COHORT_NET_ENCRYPT", encrypts);
    let ended = job.seconds(60).run()?.expect_code(1)?;
    let ended = ended.expect_text("bytes have not been acknowledged for")?;
    ended.expect_text("10.77.0.1:")?.expect_text("10.77.0.2:").map(drop)
}

/// A receiver without room answers the system's questions for as long as it computes.
fn computes() -> Outcome {
    if !wires_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let _wire = Wire::between(&hosts, &[])?;
    let job = exchange(&hosts)?.env("COHORT_PROGRESS", "none").arg("12");
    let ended = job.seconds(60).run()?.expect_code(0)?;
    match ended.says("acknowledged") {
        true => Err(ended.failure("expected no complaint")),
        false => ended.expect_text("passed").map(drop),
    }
}

/// Connections lead out of a node, and not into it: whoever can calls the other.
fn one_direction(end: &str, ranks: &str) -> Outcome {
    if !wires_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let _wire = Wire::between(&hosts, &[&format!("closed={end}")])?;
    let program = programs::compile(&programs::source("sendrecv.c"), Abi::Mpi5, &[])?;
    let job = hosts.pip_exec(ranks)?.arg(program).env("COHORT_NET_PORTS", PORTS);
    let ended = job.seconds(60).run()?.expect_code(0)?;
    // Launchers call one way only.
    let ended = match end {
        "0" => ended
            .expect_text("node 1 does not reach node 0")?
            .expect_text("it goes on trying for 1")?
            .expect_text("firewall")?,
        _ => ended,
    };
    ended.expect_text("passed").map(drop)
}

/// It is said soon, and the job does not wait for ever.
fn no_direction() -> Outcome {
    if !wires_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let _wire = Wire::between(&hosts, &["closed=2"])?;
    let job = exchange(&hosts)?.env("COHORT_NET_TIMEOUT", "6").env("COHORT_NET_PORTS", PORTS);
    let ended = job.seconds(60).run()?.expect_code(1)?;
    ended
        .expect_text("still no connection from 10.77.0.")?
        .expect_text("no connection in 6 s from 10.77.0.")?
        .expect_text("firewall")
        .map(drop)
}

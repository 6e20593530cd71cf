//! Jobs over bad networks: slow, lossy, and others. A program between two hosts takes the place of the network
//! (`wire.py`), as not every kernel has netem.

use super::hosts::{Hosts, Network, namespaces_work};
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
    (
        "bad in all ways",
        &["lost=1", "swapped=5", "doubled=5", "broken=1", "delay=2"],
        true,
    ),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, faults, over_libfabric) in WIRES {
        let networks = [Network::Default, Network::Libfabric];
        for network in networks.into_iter().take(1 + usize::from(over_libfabric)) {
            let name = format!(
                "nodes/traffic over a wire that is {name}{}",
                network.suffix()
            );
            trials.push(trial(name, move || traffic(network, faults)));
        }
    }
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

//! Jobs of several nodes: process managers, programs and suites across nodes, addresses, and the network's faults.

mod aborts;
mod addresses;
mod clusters;
mod deadlocks;
mod departures;
mod encryption;
mod faults;
mod hosts;
mod jobs;
mod limits;
pub mod managers;
mod pictures;
mod programs;
mod rails;
mod spawned;
mod strangers;
mod survival;
mod wires;

use crate::trials::Trial;
pub use hosts::{Hosts, Network, remove_free};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = managers::trials();
    trials.extend(aborts::trials());
    trials.extend(addresses::trials());
    trials.extend(clusters::trials());
    trials.extend(deadlocks::trials());
    trials.extend(departures::trials());
    trials.extend(encryption::trials());
    trials.extend(faults::trials());
    trials.extend(jobs::trials());
    trials.extend(limits::trials());
    trials.extend(pictures::trials());
    trials.extend(rails::trials());
    trials.extend(spawned::trials());
    trials.extend(strangers::trials());
    trials.extend(survival::trials());
    trials.extend(wires::trials());
    trials.extend(programs::trials());
    trials
}

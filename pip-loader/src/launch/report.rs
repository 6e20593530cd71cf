//! What `--verbose`, `--report-bindings` and their like say when a job starts.

use super::binding::{Binding, ranges};
use super::options::Report;
use pip_ground::say;
use std::path::Path;

/// A job that is about to start on this node.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    /// The ranks of this node.
    pub numbers: &'a [u32],
    /// What they are bound to, if they are.
    pub bindings: Option<&'a [Binding]>,
    /// How many ranks the job has.
    pub world: usize,
    /// This node and how many there are.
    pub place: cohort_manager::Place,
    /// Where the libraries are, if the job uses MPI.
    pub libraries: Option<&'a Path>,
    /// Each rank has an address space of its own.
    pub isolated: bool,
}

/// Says what the options ask for.
pub fn report(wanted: Report, job: &Started<'_>) {
    if wanted.start {
        say(format_args!("{}", start(job)));
    }
    if wanted.ranks {
        let host = nix::sys::utsname::uname();
        let host = host.map(|host| host.nodename().to_string_lossy().into_owned());
        let host = host.unwrap_or_default();
        say(format_args!("({host}:{})", ranges(job.numbers)));
    }
    if wanted.bindings {
        for (index, rank) in job.numbers.iter().enumerate() {
            match job.bindings {
                Some(bindings) => {
                    let cpus = ranges(&bindings[index].cpus);
                    say(format_args!("rank {rank} is bound to the CPUs {cpus}"));
                }
                None => say(format_args!("rank {rank} is not bound (--bind-to core binds it)")),
            }
        }
    }
}

fn start(job: &Started<'_>) -> String {
    let spaces = match job.isolated {
        true => "an address space each",
        false => "one address space",
    };
    let libraries = match job.libraries {
        Some(folder) => format!("libraries of {}", folder.display()),
        None => "no MPI".to_owned(),
    };
    let (ranks, node) = (job.numbers.len(), job.place.index);
    let (world, nodes) = (job.world, job.place.count);
    format!(
        "version {}: node {node} of {nodes}, {ranks} of {world} ranks in {spaces}, {libraries}",
        env!("CARGO_PKG_VERSION")
    )
}

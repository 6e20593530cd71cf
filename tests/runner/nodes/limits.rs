//! What there may be many of: ranks with few descriptors, where what a node opens grows with the nodes and not with the
//! pairs of ranks, and messages that nobody receives.

use super::hosts::{Hosts, Network};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// A crowd of ranks.
#[derive(Clone, Copy)]
struct Crowd {
    nodes: u32,
    /// Ranks of each node.
    ranks: u32,
    /// Files that each process may have.
    files: u32,
    /// A setting.
    variable: (&'static str, &'static str),
    network: Network,
    /// Sockets that a rank may have in the end.
    sockets: u32,
}

const DIRECT: Crowd = Crowd {
    nodes: 2,
    ranks: 56,
    files: 256,
    variable: ("COHORT_NET_RAILS", "1"),
    network: Network::Default,
    // Connections, those of the service and of the connector, and what the manager gives.
    sockets: 8,
};

const LIBFABRIC: Crowd = Crowd {
    variable: ("COHORT_NET_ENDPOINTS", "auto"),
    network: Network::Libfabric,
    // A mailbox, listeners, and for each other node some that belong to a connection.
    sockets: 14,
    ..DIRECT
};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let run = |(name, crowd): (&str, Crowd)| {
        // Hundreds of processes leave others no time, and libfabric takes twice as much of it.
        let few = if matches!(crowd.network, Network::Libfabric) { 64 } else { 112 };
        let long = crowd.nodes * crowd.ranks > few;
        let trial = trial(format!("nodes/{name}"), move || crowd.run());
        trial.alone(true).long(long)
    };
    let crowds = over_sockets().into_iter().chain(over_libfabric());
    let mut trials: Vec<Trial> = crowds.map(run).collect();
    trials.push(trial("nodes/messages that nobody receives take bounded memory".into(), flood));
    trials
}

/// 200,000 messages whose records alone took 40 MB.
fn flood() -> Outcome {
    let source = place::root().join("tests/programs/tools/flood.c");
    let program = programs::compile(&source, Abi::Mpi5, &[])?;
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("1")?.arg(program);
    let ended = job.args(["200000", "16"]).run()?;
    ended.expect_code(0)?.expect_text("passed").map(drop)
}

fn over_sockets() -> [(&'static str, Crowd); 5] {
    [
        ("56 ranks on each of two nodes", Crowd { files: 1024, ..DIRECT }),
        ("128 ranks on each of two nodes, 256 files", Crowd { ranks: 128, ..DIRECT }),
        ("32 ranks on each of eight nodes, 256 files", Crowd { nodes: 8, ranks: 32, sockets: 16, ..DIRECT }),
        (
            "three rails between three nodes",
            Crowd { nodes: 3, ranks: 4, variable: ("COHORT_NET_RAILS", "3"), sockets: 14, ..DIRECT },
        ),
        (
            "32 ranks on each of two nodes, encrypted",
            Crowd { ranks: 32, files: 1024, variable: ("COHORT_NET_ENCRYPT", "1"), ..DIRECT },
        ),
    ]
}

fn over_libfabric() -> [(&'static str, Crowd); 4] {
    [
        ("56 ranks on each of two nodes, 256 files (libfabric)", LIBFABRIC),
        (
            "16 ranks on each of four nodes, 256 files (libfabric)",
            Crowd { nodes: 4, ranks: 16, sockets: 20, ..LIBFABRIC },
        ),
        (
            "8 ranks on each of two nodes, three endpoints (libfabric)",
            Crowd { ranks: 8, variable: ("COHORT_NET_ENDPOINTS", "3"), sockets: 40, ..LIBFABRIC },
        ),
        (
            "8 ranks on each of two nodes, two endpoints (psm2)",
            Crowd {
                ranks: 8,
                files: 1024,
                variable: ("COHORT_NET_ENDPOINTS", "2"),
                network: Network::Psm2,
                ..LIBFABRIC
            },
        ),
    ]
}

impl Crowd {
    /// Everybody sends to everybody.
    fn run(self) -> Outcome {
        let hosts = Hosts::new(self.nodes)?.over(self.network);
        let source = place::root().join("tests/programs/tools/crowd.c");
        let name = format!("nodes-crowd-{}", hosts.name());
        let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
        let limited =
            ["sh".to_owned(), "-c".to_owned(), format!("ulimit -n {}; exec \"$@\"", self.files), "sh".to_owned()];
        let (variable, value) = self.variable;
        let job = hosts.pip_exec_after(&limited, &self.ranks.to_string())?;
        // Descriptors are the subject: how long hundreds of ranks leave a node without a CPU is not.
        let job = job.arg(program).env(variable, value).env("COHORT_NET_TIMEOUT", "200");
        let ended = job.seconds(240).run()?.expect_code(0)?;
        let all = self.nodes * self.ranks;
        let expected = format!("{all} ranks, {} files: 0 wrong bytes", self.files);
        let ended = ended.expect_text(&expected)?;
        let line = ended.stdout.lines();
        let mut counts = line.filter_map(|line| line.strip_prefix("sockets of a rank: "));
        let count = counts.next().and_then(|count| count.parse::<u32>().ok());
        match count {
            Some(count) if count <= self.sockets => Ok(()),
            _ => Err(ended.failure(&format!("more than {} sockets", self.sockets))),
        }
    }
}

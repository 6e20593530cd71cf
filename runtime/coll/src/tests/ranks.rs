//! Ranks of several nodes that a made-up network joins, as threads of a test.

use cohort_base::WorldRank;
use cohort_base::settings::Settings;
use cohort_core::lifecycle;
use cohort_core::{Node, Owner, Rank};
use cohort_fabric_fake::{Job, Options};
use std::boxed::Box;
use std::vec::Vec;

/// A job whose ranks are threads of the test.
pub(crate) struct Ranks {
    pub(crate) job: Job,
    nodes: Vec<&'static Node>,
    homes: Vec<(usize, u32)>,
}

impl Ranks {
    /// `nodes[node][local_rank]` is a rank in `MPI_COMM_WORLD`.
    pub(crate) fn new(nodes: &[&[WorldRank]], options: Options, settings: Settings) -> Self {
        let job = Job::new(nodes, options);
        let mut homes = std::vec![(0, 0); nodes.iter().map(|ranks| ranks.len()).sum()];
        for (node, ranks) in nodes.iter().enumerate() {
            for (local, &world) in (0..).zip(*ranks) {
                homes[world as usize] = (node, local);
            }
        }
        let make = |node| {
            let transport = Box::leak(Box::new(job.node(node)));
            Node::for_test_in_job(nodes, node, settings, transport)
        };
        Self { nodes: (0..nodes.len()).map(make).collect(), job, homes }
    }

    /// The rank with this rank in `MPI_COMM_WORLD`.
    pub(crate) fn rank(&self, world: WorldRank) -> &'static Rank {
        let (node, local) = self.homes[world as usize];
        self.nodes[node].rank(local)
    }

    /// Has every rank run `work` on a thread of its own, and end its use of the network.
    pub(crate) fn run(&self, work: impl Fn(&'static Rank) + Sync) {
        std::thread::scope(|scope| {
            for world in 0..self.homes.len() {
                let (rank, work) = (self.rank(world as u32), &work);
                scope.spawn(move || {
                    lifecycle::begin(Owner::for_test(rank));
                    work(rank);
                    lifecycle::end(Owner::for_test(rank));
                });
            }
        });
        assert_eq!(self.job.exposed(), 0, "regions are left");
    }
}

/// Networks that differ in what a test should not depend on.
pub(crate) fn networks() -> [Options; 4] {
    let usual = Options::default();
    [
        usual,
        // No reads and writes, completions in any order.
        Options { transfer: 0, reorder: true, ..usual },
        // Hardly any room: nearly everything is busy at first.
        Options { queue: 2, operations: 1, ..usual },
        // Many short transfers, offsets for addresses, everything pending.
        Options { transfer: 5000, offsets: true, inject: 0, reorder: true, ..usual },
    ]
}

//! Nodes for tests: their ranks are played by threads of the test.

use super::Node;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use cohort_base::WorldRank;
use cohort_base::boot::{NodeBoot, RankBoot, RankLocation};
use cohort_base::settings::Settings;
use cohort_base::sync::atomic::Ordering;
use cohort_fabric::Transport;

impl Node {
    /// A node of `ranks` ranks with the default settings, for tests: any thread may play a rank.
    #[must_use]
    pub fn for_test(ranks: u32) -> &'static Self {
        Self::for_test_with(ranks, Settings::DEFAULT)
    }

    /// [`Node::for_test`] with settings. It believes in two CPUs.
    ///
    /// # Panics
    /// When memory is short.
    #[must_use]
    pub fn for_test_with(ranks: u32, settings: Settings) -> &'static Self {
        let records = (0..ranks).map(|rank| rank_boot(rank, rank)).collect();
        Self::create(node_boot(records, ranks), settings, None).expect("memory for a node")
    }

    /// Has all numbers of communicators drawn but `left`, for tests.
    pub fn leave_contexts(&self, left: u32) {
        self.contexts.store(self.contexts() - left, Ordering::Relaxed);
    }

    /// One node of a job of several, for tests: `homes[node][local_rank]` is a rank in
    /// `MPI_COMM_WORLD`, `network` joins the nodes.
    ///
    /// # Panics
    /// When memory is short.
    #[must_use]
    pub fn for_test_in_job(
        nodes: &[&[WorldRank]],
        node: usize,
        settings: Settings,
        network: &'static dyn Transport,
    ) -> &'static Self {
        let world_ranks: usize = nodes.iter().map(|ranks| ranks.len()).sum();
        let mut homes = vec![RankLocation::default(); world_ranks];
        for (node, ranks) in (0..).zip(nodes) {
            for (local_rank, &world) in (0..).zip(*ranks) {
                homes[world as usize] = RankLocation { node, local_rank };
            }
        }
        let records = (0..).zip(nodes[node]);
        let records = records.map(|(local, &world)| rank_boot(local, world));
        let boot = node_boot(records.collect(), world_ranks as u32);
        boot.node = node as u32;
        boot.nodes = nodes.len() as u32;
        boot.job = 77;
        boot.homes = Box::leak(homes.into_boxed_slice()).as_ptr();
        Self::create(boot, settings, Some(network)).expect("memory for a node")
    }
}

/// The record of a node that is alone in its job.
fn node_boot(ranks: Vec<RankBoot>, world_ranks: u32) -> &'static mut NodeBoot {
    let count = ranks.len() as u32;
    let ranks = Box::leak(ranks.into_boxed_slice()).as_ptr();
    Box::leak(Box::new(NodeBoot { world_ranks, cpus: 2, ..NodeBoot::new(ranks, count) }))
}

fn rank_boot(rank: u32, world_rank: u32) -> RankBoot {
    RankBoot { local_rank: rank, world_rank, ..RankBoot::new() }
}

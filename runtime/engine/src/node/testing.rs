//! Nodes for tests: their ranks are played by threads of the test.

use super::Node;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_base::boot::{MAGIC, NodeBoot, RankBoot, VERSION};
use cohort_base::settings::Settings;
use cohort_base::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use core::ptr::{null, null_mut};

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
        let records: Vec<RankBoot> = (0..ranks).map(rank_boot).collect();
        let boot = NodeBoot {
            magic: MAGIC,
            version: VERSION,
            node_ranks: ranks,
            world_ranks: ranks,
            cpus: 2,
            environment: null(),
            ranks: Box::leak(records.into_boxed_slice()).as_ptr(),
            places: null(),
            places_len: 0,
            report_fd: 2,
            node: 0,
            nodes: 1,
            homes: core::ptr::null(),
            network: core::ptr::null(),
        };
        Self::create(Box::leak(Box::new(boot)), settings).expect("memory for a node")
    }
}

fn rank_boot(rank: u32) -> RankBoot {
    RankBoot {
        magic: MAGIC,
        version: VERSION,
        local_rank: rank,
        world_rank: rank,
        app_number: 0,
        cpu: -1,
        lifecycle: AtomicU32::new(0),
        abort: AtomicU64::new(0),
        pid: AtomicI32::new(0),
        reserved: 0,
        api: null(),
        node: null_mut(),
    }
}

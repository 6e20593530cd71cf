//! The node: all ranks of one address space.

use crate::rank::Rank;
use cohort_base::LocalRank;
use cohort_base::boot::NodeBoot;
use cohort_base::settings::Settings;

/// All ranks of one address space.
#[derive(Debug)]
pub struct Node {
    size: u32,
}

impl Node {
    /// Makes the node that `boot` describes; `None` when memory is short. It is never unmade.
    #[must_use]
    pub fn create(boot: &'static NodeBoot, settings: Settings) -> Option<&'static Self> {
        unimplemented!("{} {settings:?}", boot.version)
    }

    /// A node of `ranks` ranks with the default settings, for tests: any thread may play a rank.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn for_test(ranks: u32) -> &'static Self {
        Self::for_test_with(ranks, Settings::DEFAULT)
    }

    /// [`Node::for_test`] with settings.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn for_test_with(ranks: u32, settings: Settings) -> &'static Self {
        unimplemented!("{ranks} {settings:?}")
    }

    /// The rank with this index. Panics when there is none.
    #[must_use]
    pub fn rank(&'static self, index: LocalRank) -> &'static Rank {
        unimplemented!("{index}")
    }

    /// Number of ranks.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        unimplemented!()
    }

    /// A number that no communicator of this node has had: it owns contexts `2n` and `2n + 1`.
    pub fn next_context(&self) -> u32 {
        unimplemented!()
    }

    /// Writes every rank's counters to the report descriptor.
    pub fn report(&self) {
        unimplemented!()
    }
}

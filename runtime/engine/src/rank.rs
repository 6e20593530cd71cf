//! One rank of the node.

use crate::claim::Claim;
use crate::node::Node;
use cohort_base::boot::RankBoot;
use cohort_base::{LocalRank, WorldRank};
use core::ffi::c_void;

/// One rank. Any task of the node may hold a reference; what only one may touch at a time is
/// behind its [`Claim`].
#[derive(Debug)]
pub struct Rank {
    id: LocalRank,
}

impl Rank {
    /// Index on the node.
    #[must_use]
    pub fn id(&self) -> LocalRank {
        self.id
    }

    /// Rank in `MPI_COMM_WORLD`.
    #[must_use]
    pub fn world_rank(&self) -> WorldRank {
        unimplemented!()
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> &'static Node {
        unimplemented!()
    }

    /// The loader's record of this rank.
    #[must_use]
    pub fn boot(&self) -> &'static RankBoot {
        unimplemented!()
    }

    /// The claim of this rank, for its own tasks; waits while another task holds it.
    /// Not reentrant.
    pub fn enter(&self) -> Claim<'_> {
        unimplemented!()
    }

    /// The claim of this rank, for other ranks' tasks: `None` if anybody holds it.
    pub fn try_steal(&self) -> Option<Claim<'_>> {
        unimplemented!()
    }

    /// The slot of the object layer. Owner only.
    #[must_use]
    pub fn local(&self) -> *mut c_void {
        unimplemented!()
    }

    /// Fills the slot of the object layer. Owner only.
    pub fn set_local(&self, value: *mut c_void) {
        unimplemented!("{value:?}")
    }

    /// Whether several threads of the rank may call at once (`MPI_THREAD_MULTIPLE`): waits then
    /// give the claim back between turns.
    pub fn set_threads_multiple(&self, multiple: bool) {
        unimplemented!("{multiple}")
    }
}

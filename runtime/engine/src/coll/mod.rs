//! Collectives among ranks of one node.
//!
//! All members live in one address space, so a collective sends no messages: members *post*
//! small data or the addresses of their buffers in the communicator's shared memory and read
//! each other's buffers directly, in any datatype ([`datatype::copy`](crate::datatype::copy)).
//! `shared.rs` holds the memory, `round.rs` the protocol and who wakes whom; each family is a
//! module of its own:
//!
//! | module | operations | small | large |
//! |---|---|---|---|
//! | `barrier` | barrier | exchange of presence | |
//! | `bcast` | bcast | root's entry | direct reads of root's buffer |
//! | `gather` | gather(v), scatter(v) | entries | direct reads |
//! | `allgather` | allgather(v) | entries | direct reads |
//! | `alltoall` | alltoall(v, w) | entries | direct reads |
//! | `reduce` | reduce, allreduce, reduce_scatter(_block) | everyone folds the entries | each member folds a share of the elements for all |
//! | `scan` | scan, exscan | fold of the entries | each member scans a share for all |
//! | `exchange` | neighbourhoods, intercommunicators: blocks between some members | messages | messages |
//! | `inter` | intercommunicators: barrier, bcast, reductions | the groups' own, and messages of their leaders | |
//! | `schedule` | all of them, nonblocking and persistent | the last to post does all | steps that anybody takes |
//!
//! MPI's variants are arguments: [`Blocks`] describes equal, varying (`v`) or typed (`w`)
//! blocks, [`Scan`] tells scan from exscan, `reduce_scatter` takes every member's count.
//!
//! "Small" is what an entry carries (240 bytes), or, where that saves a wait, a parcel beside it (16 KB; 64 KB for some). Operands are folded in rank order whatever
//! the algorithm, so results are the same bit for bit in every run and at every member, and
//! operations that do not commute need no special case.
//!
//! # Rules for callers
//! The functions block, run user operations, and allocate: they are called by the owner of
//! `group.rank`, without a claim, never under a steal. All members call the same collectives
//! in the same order. In-place is `None` for the buffer that MPI says is `MPI_IN_PLACE`.
//! Groups of one member only move data. A member that returns an error about its
//! arguments has not taken part, which leaves the others waiting, as in any MPI;
//! [`EngineError::Truncated`](crate::EngineError::Truncated) alone is reported after taking part.

mod allgather;
mod alltoall;
mod barrier;
mod bcast;
mod blocks;
mod call;
mod choice;
pub mod exchange;
mod fold;
mod gather;
pub mod inter;
mod reduce;
mod round;
mod scan;
pub(crate) mod schedule;
mod shared;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub(crate) mod wide;

pub use allgather::allgather;
pub use alltoall::alltoall;
pub use barrier::barrier;
pub use bcast::bcast;
pub use blocks::Blocks;
pub use call::{Call, Neighbour, run};
pub use fold::Reduction;
pub use gather::{gather, scatter};
pub use reduce::{allreduce, reduce, reduce_scatter};
pub use scan::{Scan, scan};
pub use schedule::{Repeated, start, start_between};
pub use shared::CommShared;
pub use state::Coll;

use crate::rank::Rank;
use cohort_base::Peer;

/// One member's view of the communicator it calls a collective on.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// The calling rank.
    pub rank: &'a Rank,
    /// The communicator's collective context.
    pub context: u32,
    /// The caller's rank in the communicator.
    pub me: u32,
    /// The members, by rank in the communicator.
    pub world: &'a [Peer],
    /// What the members share.
    pub shared: &'a CommShared,
}

impl Group<'_> {
    fn size(&self) -> usize {
        self.world.len()
    }

    fn me(&self) -> usize {
        self.me as usize
    }
}

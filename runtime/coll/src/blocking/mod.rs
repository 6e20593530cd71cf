//! Blocking collectives, in calls of their own.
//!
//! # Rules for callers
//! The functions block, run user operations, and allocate: they are called by the owner of
//! `group.rank()`, without a claim, never under a steal. All members call the same collectives
//! in the same order. In-place is `None` for the buffer that MPI says is `MPI_IN_PLACE`.
//! Groups of one member only move data. A member that returns an error about its
//! arguments has not taken part, which leaves the others waiting, as in any MPI;
//! [`EngineError::Truncated`](cohort_core::EngineError::Truncated), and layouts that differ, are reported after taking
//! part.

mod calls;
mod choice;
mod crossed;
mod inter;
mod local;
mod nodes;
mod operands;
mod post;
mod record;
mod round;
mod schedule;
mod shared_copy;

#[cfg(test)]
pub(crate) use calls::{allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scan, scatter};
pub use calls::{barrier_within, compare_persistent, run, run_known, run_within, view};

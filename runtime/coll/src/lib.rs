//! Collectives.
//!
//! Members on one node live in one address space, so they send no messages there: members *post* small data or the
//! addresses of their buffers in the communicator's shared memory and read each other's buffers directly, in any
//! datatype ([`datatype::copy`](cohort_datatype::copy)). Between nodes, and between the groups of an intercommunicator,
//! collectives are *schedules*: messages, copies and folds, in stages.
//!
//! # Layers
//! A module uses only modules above it in this table. Those of the upper half any task may run: a thief, a progress
//! thread, the handler of a signal. Those of the lower half allocate memory of the node, wait, or take locks of the
//! node. They run in calls of the rank's owner only.
//!
//! | module | what it holds | who runs it |
//! |---|---|---|
//! | `meeting`, `board`, `batch` | where members meet without waiting for each other | any task |
//! | `called` | who tells a rank that one of its schedules may go on | any task |
//! | `fold` | an operation on elements, and the order of operands | any task (a user's operation: its owner) |
//! | `args` | a call's arguments as plain values: [`Call`], [`Blocks`], [`Reduction`] | any task |
//! | `data` | copies of what they describe | any task |
//! | `bytes`, `bundle` | messages that are put together and taken apart: blocks of several members as one | any task |
//! | `pool` | pending collectives within a node: steps that anybody takes | any task |
//! | `schedule` | pending collectives that send messages: lists of steps, and how they go on | any task |
//! | `spin` | short waits on the spot | owner |
//! | `memory` | scratch, packed copies, the memory of schedules | owner |
//! | `subsystem` | their part of a turn, and what the owner finds besides | any task, but what asks for an `Owner` |
//! | `members` | who is where, and the memory that the members on a node share | owner |
//! | [`exchange`], [`inter`] | messages among some members; intercommunicators | owner |
//! | `compare` | what members must agree on, compared where that is asked for | owner |
//! | `write` | the algorithms that send messages, as writers of schedules | owner |
//! | `nonblocking` | starts of nonblocking and persistent collectives | owner |
//! | `simulation` | schedules of jobs of any size, played together without data; for tests | owner |
//! | `blocking` | the blocking ones: `local` within a node, `nodes` among nodes, `inter` between groups | owner |
//!
//! Each operation is described once, by a [`Call`]: the blocking form runs it ([`run`], [`run_known`]),
//! the nonblocking one starts it ([`start`]), a persistent one starts it again and again ([`Repeated`]).
//!
//! # Algorithms within a node
//! | operations | small | large |
//! |---|---|---|
//! | barrier | exchange of presence | |
//! | bcast | root's entry | direct reads of root's buffer |
//! | gather(v), scatter(v), allgather(v), alltoall(v, w) | entries | direct reads |
//! | reduce, allreduce, reduce_scatter(_block) | all fold the entries | each folds a share of the elements for all |
//! | scan, exscan | fold of the entries | each member scans a share for all |
//! | neighbourhoods | entries with lists of edges | messages |
//! | all, nonblocking and persistent | the last to post does all | steps that anybody takes |
//!
//! MPI's variants are arguments: [`Blocks`] describes equal, varying (`v`) or typed (`w`)
//! blocks, [`Scan`] tells scan from exscan, `reduce_scatter` takes every member's count.
//!
//! "Small" is what an entry carries (240 bytes), or, where that saves a wait, a buffer beside it (16 KB; 64 KB for
//! some). Operands are folded in rank order whatever the algorithm, so results are the same bit for bit in every run
//! and at every member, and operations that do not commute need no special case.

#![no_std]
#![cfg_attr(loom, allow(dead_code, reason = "the models use parts"))]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(not(loom))]
mod args;
mod batch;
#[cfg(not(loom))]
mod blocking;
mod board;
#[cfg(not(loom))]
mod bundle;
#[cfg(not(loom))]
mod bytes;
mod called;
#[cfg(not(loom))]
mod compare;
#[cfg(not(loom))]
mod data;
#[cfg(not(loom))]
pub mod exchange;
#[cfg(not(loom))]
mod fold;
#[cfg(not(loom))]
pub mod inter;
mod meeting;
#[cfg(not(loom))]
mod members;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod nonblocking;
#[cfg(not(loom))]
mod picture;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod schedule;
#[cfg(not(loom))]
mod shortage;
#[cfg(all(any(test, feature = "testing"), not(loom)))]
pub mod simulation;
#[cfg(not(loom))]
mod spin;
#[cfg(not(loom))]
mod subsystem;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
mod write;

#[cfg(not(loom))]
pub use args::small::Agreed;
#[cfg(not(loom))]
pub use args::{Blocks, Call, Neighbour, Reduction, Scan, Table};
#[cfg(all(test, not(loom)))]
use blocking::{allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scan, scatter};
#[cfg(not(loom))]
pub use blocking::{barrier_within, compare_persistent, run, run_known, run_within, view};
#[cfg(not(loom))]
pub use compare::words_of;
#[cfg(not(loom))]
pub use members::{CommShared, Count, Group, Roster, forget_remote, know_remote};
#[cfg(not(loom))]
pub use nonblocking::{
    Helpers, Left, Record, Repeated, Short, Small, Started, begin, begin_claimed, begin_plain, start, start_between,
};
#[cfg(not(loom))]
pub use picture::tell_missing;
#[cfg(not(loom))]
pub use shortage::left_out;

/// The subsystem.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct Coll;

#[cfg(all(test, not(loom)))]
mod joined_for_tests {
    use crate::Coll;
    use crate::tests::Probe;
    use cohort_net::Network;
    use cohort_p2p::{P2p, Remote};
    use cohort_progress::Machinery;

    cohort_core::engine!(Network, P2p, Remote, Coll, Machinery, Probe);
    cohort_net::receivers!(Remote);
}

//! Collectives of communicators whose members live on several nodes.
//!
//! An algorithm is a [`Script`]: messages to and from other members, copies and folds, in stages. A
//! script can be run by a member that waits for it, step by step.
//!
//! | module | what it holds |
//! |---|---|
//! | `spread` | which members live where |
//! | `script` | stages and who runs them |
//! | `moving`, `reducing` | scripts in which members speak for themselves |
//! | `station` | nonblocking and persistent forms: their order, and their scripts |
//! | `joint` | those in which one member of each node has the script, for all of them |
//! | `running` | how scripts go on, by whoever looks at the rank |
//! | `between` | the same for intercommunicators |
//! | `leaders`, `gathering`, `crossing` | one member of each node speaks for all of them |
//! | `bundle` | what it says for them in one message |

mod between;
mod bundle;
mod crossing;
mod gathering;
mod joint;
mod leaders;
mod moving;
mod reducing;
mod running;
mod script;
mod spread;
mod station;

pub(super) use crossing::alltoall_by_node;
pub(super) use gathering::{allgather_by_node, gather, scatter};
pub(super) use leaders::{allreduce, barrier, bcast, reduce, reduce_scatter};
pub(super) use moving::{allgather, alltoall};
pub(super) use reducing::scan;
pub(crate) use running::{IN_SCRIPTS, Running, free_ended, next};
pub(super) use spread::Spread;
pub(super) use station::{Station, start_once};

use super::Group;
use script::Script;

//! Blocking collectives of communicators whose members live on several nodes.
//!
//! | module | what it holds |
//! |---|---|
//! | `leaders`, `gather`, `alltoall` | one member of each node sends and receives for all of them |
//! | `bundle` | what it sends for them in one message |
//! | `view` | what all members say, in one table for the members of a node |

mod alltoall;
mod bundle;
mod gather;
mod leaders;
mod view;

pub(crate) use view::view;

use super::script::run_alone;
use crate::args::{Call, Form, Label};
use crate::compare;
use crate::members::{Caller, Group, Hierarchy};
use crate::nonblocking::{finish, start};
use cohort_core::EngineError;

/// Compares the members' arguments. Collective.
///
/// # Errors
/// [`EngineError::Disagreement`], no memory.
#[cold]
pub(crate) fn tell(group: &Group<'_>, hierarchy: &Hierarchy, call: &Call<'_>, form: Form) -> Result<(), EngineError> {
    let mine = compare::said(call, form, group.me);
    let label = Label::TABLE;
    view(&Caller { group, label }, hierarchy, mine, compare::compare)?
}

/// Runs an operation and waits for its end.
///
/// # Errors
/// Those of the operation.
pub(crate) fn run(group: &Caller<'_>, hierarchy: &Hierarchy, call: &Call<'_>) -> Result<(), EngineError> {
    if group.rank().node().settings().check_members {
        tell(group, hierarchy, call, Form::Blocking)?;
    }
    // A wrong operation is refused before anything is sent.
    call.folder()?;
    match call {
        Call::Barrier => leaders::barrier(group, hierarchy),
        Call::Bcast { buffer, root } => leaders::bcast(group, hierarchy, *buffer, *root as usize),
        Call::Gather { send, receive, root } => gather::gather(group, hierarchy, *send, *receive, *root as usize),
        Call::Scatter { send, receive, root } => gather::scatter(group, hierarchy, *send, *receive, *root as usize),
        Call::Allgather { send, receive } if hierarchy.shares_nodes() => {
            gather::allgather(group, hierarchy, *send, receive)
        }
        Call::Alltoall { send, receive } => match receive.equal_bytes(1) {
            Some(block) if hierarchy.shares_nodes() => {
                alltoall::alltoall(group, hierarchy, send.as_ref(), receive, block)
            }
            _ => run_alone(group, call),
        },
        Call::Reduce { reduction, root } => leaders::reduce(group, hierarchy, reduction, *root),
        Call::Allreduce { reduction } => leaders::allreduce(group, hierarchy, reduction),
        Call::ReduceScatter { reduction, counts } => leaders::reduce_scatter(group, hierarchy, reduction, counts),
        Call::Allgather { .. } | Call::Scan { .. } => run_alone(group, call),
        Call::Neighbours { .. } => {
            // SAFETY: what the call refers to lives to the end of this call, which waits for the request.
            let request = unsafe { start(group, call)? };
            finish(group.owner, request)
        }
    }
}

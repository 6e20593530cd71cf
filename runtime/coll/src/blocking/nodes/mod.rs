//! Blocking collectives of communicators whose members live on several nodes.
//!
//! | module | what it holds |
//! |---|---|
//! | this file | what schedules do (`write/led.rs`), or each member for itself |
//! | `gather`, `allgather`, `alltoall` | one member of each node, or several, send and receive for all of them |
//! | `scan` | the same, of prefixes |
//! | `view` | what all members say, in one table for the members of a node |

mod allgather;
mod alltoall;
mod gather;
mod scan;
mod view;

pub(crate) use view::view;

use super::local;
use super::schedule::{endpoint, run_alone, run_schedule};
use crate::args::{Call, Form, Label, Table};
use crate::compare;
use crate::exchange::{Channel, Edges, may_communicate};
use crate::fold::Folder;
use crate::members::{Caller, Group, Hierarchy};
use crate::write::{Led, has_carriers, is_led, write_led};
use cohort_core::EngineError;
use core::cell::OnceCell;

/// Compares the members' arguments. Collective.
///
/// # Errors
/// [`EngineError::Disagreement`], no memory.
#[cold]
pub(crate) fn tell(group: &Group<'_>, hierarchy: &Hierarchy, call: &Call<'_>, form: Form) -> Result<(), EngineError> {
    let mine = compare::said(call, form, group.me);
    let label = Label::of_table(Table::Arguments);
    view(&Caller { group, label }, hierarchy, mine, compare::compare)?
}

/// Runs an operation and waits for its end.
///
/// # Errors
/// Those of the operation.
pub(crate) fn run(group: &Caller<'_>, hierarchy: &Hierarchy, call: &Call<'_>) -> Result<(), EngineError> {
    may_communicate(group.rank(), group.context)?;
    // Each member knows its own edges alone.
    if let Some(edges) = Edges::of(call) {
        let channel = Channel { owner: group.owner, context: group.context, me: group.me };
        return channel.exchange(edges.outgoing(group.world), edges.incoming(group.world));
    }
    if group.rank().node().settings().check_members {
        tell(group, hierarchy, call, Form::Blocking)?;
    }
    // A wrong operation is refused before anything is sent.
    let folder = call.folder()?;
    let is_led = is_led(group.rank(), call, hierarchy);
    match call {
        // With one member on each node these send as each member does for itself.
        _ if !has_carriers(group.rank(), hierarchy) => run_alone(group, call, folder),
        Call::Gather { send, receive, root, .. } => gather::gather(group, hierarchy, *send, *receive, *root as usize),
        Call::Scatter { send, receive, root, .. } => gather::scatter(group, hierarchy, *send, *receive, *root as usize),
        // Not only leaders carry.
        Call::Alltoall { send, receive } => alltoall::alltoall(group, hierarchy, send.as_ref(), receive),
        Call::Allgather { send, receive } if is_led => allgather::allgather(group, hierarchy, *send, receive),
        Call::Scan { reduction, kind } if is_led => match folder {
            Some(folder) => scan::scan(group, hierarchy, (reduction, &folder), *kind),
            None => Ok(()),
        },
        _ if is_led => run_led(group, hierarchy, call, folder),
        _ => run_alone(group, call, folder),
    }
}

/// Runs an operation in which leaders send and receive for their nodes.
fn run_led(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    call: &Call<'_>,
    folder: Option<Folder<'_>>,
) -> Result<(), EngineError> {
    let shares = OnceCell::new();
    let Led { before, among, after } = write_led(endpoint(group), hierarchy, call, folder, &shares)?;
    let here = group.local(hierarchy);
    let outcome = before.map_or(Ok(()), |call| local::run_any(&here, &call));
    if !goes_on(outcome) {
        return outcome;
    }
    let outcome = outcome.and(among.as_ref().map_or(Ok(()), |schedule| run_schedule(group.owner, schedule)));
    outcome.and(after.map_or(Ok(()), |call| local::run_any(&here, &call)))
}

/// Whether a member goes on with the other nodes, which wait for it. Members that disagree about a length or a layout
/// have folded nothing, but have taken part.
fn goes_on(outcome: Result<(), EngineError>) -> bool {
    matches!(outcome, Ok(()) | Err(EngineError::Truncated { .. } | EngineError::Disagreement(_)))
}

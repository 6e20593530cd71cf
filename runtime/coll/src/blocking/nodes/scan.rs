//! Scan and exscan in which members of each node send and receive for all of them.
//!
//! The members of a node scan their operands among themselves. So its last one knows what they fold to together. What
//! comes before a node is folded into the prefix of each of its members. Only where nodes have consecutive members, and
//! where operands may be grouped by node.
//!
//! A few nodes are a chain: the last member of each sends what all so far fold to, and the first one of the next
//! receives it. Nobody waits for a later member then, so that scans which follow each other overlap. Of more nodes the
//! last members scan what their nodes fold to in few steps.

use super::goes_on;
use crate::args::{Call, Reduction, Scan};
use crate::blocking::local;
use crate::blocking::round::{Finish, Posted, Round};
use crate::blocking::schedule::{builder, run};
use crate::data::copy_whole;
use crate::fold::{Folder, Runner};
use crate::members::{Caller, Hierarchy, LocalGroup};
use crate::memory::{Scratch, reserve};
use crate::write::{SCAN_CHAIN_MOST, Subgroup, scan_before};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// Scan and exscan.
///
/// # Errors
/// As [`scan`](crate::scan).
pub(super) fn scan(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    (call, folder): (&Reduction<'_>, &Folder<'_>),
    kind: Scan,
) -> Result<(), EngineError> {
    let here = group.local(hierarchy);
    let is_chain = hierarchy.nodes() <= SCAN_CHAIN_MOST;
    let (is_first_node, is_last) = (hierarchy.this_node() == 0, here.me() + 1 == here.size());
    let is_passed_on = !is_chain || hierarchy.this_node() + 1 < hierarchy.nodes();
    // What the node's members fold to, unless that is a result, and what comes before the node, unless that is one.
    let has_total = is_last && is_passed_on && kind == Scan::Exclusive;
    let has_before = match is_chain {
        true => here.me() == 0 && !is_first_node && kind == Scan::Inclusive,
        false => is_last,
    };
    let rooms = [has_total, has_before].map(|is_needed| if is_needed { call.count() } else { 0 });
    let scratch = [Scratch::new(folder, rooms[0])?, Scratch::new(folder, rooms[1])?];
    // SAFETY: there is room for so many elements, to the end of this call.
    let [total, before] = [0, 1].map(|it| unsafe { folder.buffer(scratch[it].base, rooms[it]) });
    if has_total {
        copy_whole(total, call.operand())?;
    }
    let outcome = local::run_any(&here, &Call::Scan { reduction: *call, kind });
    if !goes_on(outcome) {
        return outcome;
    }
    if has_total && here.size() > 1 {
        folder.combine_buffers(call.result, total, Runner::Owner);
    }
    if is_chain {
        let before = if kind == Scan::Inclusive { before } else { call.result };
        return outcome.and(along_nodes(group, hierarchy, (call, folder), kind, [total, before]));
    }
    let outcome = match is_last {
        true => outcome.and(among_nodes(group, hierarchy, (call, folder), kind, [total, before])),
        false => outcome,
    };
    if hierarchy.this_node() == 0 {
        return outcome;
    }
    outcome.and(put_before(&here, (call, folder), kind, (here.size() - 1, before), |_| Ok(())))
}

/// At each member, once the prefixes among those of its node are there: what comes before the node is received, and
/// what all so far fold to is sent on.
fn along_nodes<'a>(
    group: &Caller<'a>,
    hierarchy: &Hierarchy,
    (call, folder): (&Reduction<'a>, &Folder<'a>),
    kind: Scan,
    [total, before]: [Buffer<'a>; 2],
) -> Result<(), EngineError> {
    let here = group.local(hierarchy);
    let node = hierarchy.this_node();
    let is_passed_on = here.me() + 1 == here.size() && node + 1 < hierarchy.nodes();
    let next = is_passed_on.then(|| hierarchy.members(node + 1)[0] as usize);
    let send_on = |so_far: Buffer<'a>| {
        let Some(next) = next else {
            return Ok(());
        };
        let mut schedule = builder(group, Some(*folder));
        schedule.send(next, so_far);
        run(group.owner, schedule)
    };
    let mut outcome = Ok(());
    let mut is_sent = false;
    if node > 0 {
        if here.me() == 0 {
            let last_before = hierarchy.members(node - 1).last().map_or(0, |&it| it as usize);
            let mut schedule = builder(group, Some(*folder));
            schedule.receive_operand(last_before, before);
            outcome = run(group.owner, schedule);
        }
        // The next node waits for this one: it comes before the caller's own result.
        let pass_on = |before: Buffer<'_>| {
            if next.is_none() || kind == Scan::Inclusive {
                return Ok(());
            }
            is_sent = true;
            folder.combine_buffers(before, total, Runner::Owner);
            send_on(total)
        };
        outcome = outcome.and(put_before(&here, (call, folder), kind, (0, before), pass_on));
    }
    match kind {
        _ if is_sent => outcome,
        Scan::Inclusive => outcome.and(send_on(call.result)),
        Scan::Exclusive => outcome.and(send_on(total)),
    }
}

/// At the last member of a node: what it folds to, and what the nodes before it do.
fn among_nodes<'a>(
    group: &Caller<'a>,
    hierarchy: &Hierarchy,
    (call, folder): (&Reduction<'a>, &Folder<'a>),
    kind: Scan,
    [total, before]: [Buffer<'a>; 2],
) -> Result<(), EngineError> {
    let total = match kind {
        Scan::Inclusive => call.result,
        Scan::Exclusive => total,
    };
    let mut last: Vec<usize> = reserve(hierarchy.nodes())?;
    last.extend((0..hierarchy.nodes()).filter_map(|node| hierarchy.members(node).last().map(|&it| it as usize)));
    let mut schedule = builder(group, Some(*folder));
    let among = Subgroup::of(&last, hierarchy.this_node());
    scan_before(&mut schedule, among, folder, call.op, ([total, before], kind == Scan::Exclusive))?;
    run(group.owner, schedule)
}

/// Folds what comes before the node, which the member at a place has, into a member's prefix, after `pass_on`: straight
/// from there if it is long.
fn put_before(
    here: &LocalGroup<'_>,
    (call, folder): (&Reduction<'_>, &Folder<'_>),
    kind: Scan,
    (place, before): (usize, Buffer<'_>),
    pass_on: impl FnOnce(Buffer<'_>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let put = |before: Buffer<'_>| {
        let outcome = pass_on(before);
        match kind {
            Scan::Exclusive if here.me() == 0 => Folder::copy_buffer(before, call.result),
            _ => folder.combine_buffers(before, call.result, Runner::Owner),
        }
        outcome
    };
    if here.size() == 1 {
        return put(before);
    }
    let round = Round::begin(here);
    if here.me() == place {
        let exposed = round.post_copied(&before);
        round.announce();
        let outcome = put(before);
        round.finish(Finish::after(exposed, Finish::Everyone));
        return outcome;
    }
    round.await_member(place);
    let outcome = match round.posted::<Buffer<'_>>(place) {
        // Members that disagree about lengths or layouts fail, and go on.
        Posted::Address(theirs) if theirs.count() == call.count() && folder.takes(theirs.datatype()) => put(*theirs),
        // Only who came later has noticed; what is missing is not folded.
        posted if length_of(&posted) < call.result.bytes() => {
            Err(EngineError::Truncated { message: call.result.bytes(), buffer: length_of(&posted) })
        }
        _ => Scratch::new(folder, call.count()).and_then(|scratch| {
            // SAFETY: there is room for so many elements, as long as they are used.
            let own = unsafe { folder.buffer(scratch.base, call.count()) };
            round.receive_buffer(place, own).and_then(|()| put(own))
        }),
    };
    round.finish(Finish::Nobody);
    outcome
}

/// Bytes that a member has posted.
fn length_of(posted: &Posted<'_, Buffer<'_>>) -> u64 {
    match posted {
        Posted::Inline(data) => data.len() as u64,
        Posted::Address(theirs) => theirs.bytes(),
    }
}

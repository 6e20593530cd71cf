//! The beginning of schedules that go on after the call that starts them.

use super::operation::Operation;
use crate::Coll;
use crate::args::Call;
use crate::exchange::may_communicate;
use crate::members::{Group, Hierarchy, NodeMap};
use crate::memory::{begin_schedule, free_ended_schedules, reserve};
use crate::schedule::node_meeting::{NodeMeetingRef, Part, Place, Plan, Posted};
use crate::schedule::{Running, Schedule, ScheduleRef};
use crate::write::{ScheduleBuilder, has_node_schedules, partners, write, write_between, write_for_node};
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_base::picture::{Fact, Told};
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::request::{Request, RequestKind, RequestRef};
use cohort_datatype::op::Op;
use cohort_net as net;
use core::ptr::{NonNull, null_mut};

/// Starts the caller's next operation among nodes, which is not persistent.
///
/// # Safety
/// As [`Operation::start`].
///
/// # Errors
/// As [`Operation::start`].
pub(crate) unsafe fn start_once(
    group: &Group<'_>,
    hierarchy: &Hierarchy,
    call: &Call<'_>,
) -> Result<RequestRef, EngineError> {
    may_communicate(group.rank(), group.context)?;
    let operation = Operation::next(group, hierarchy);
    // SAFETY: the caller's promise.
    unsafe {
        match root_of(operation.rank, call, hierarchy) {
            Some(root) => {
                let (place, call) = (hierarchy.place(group.me), *call.outliving());
                start_at_node(group.owner, &operation, &place, hierarchy, call, root)
            }
            None => operation.start(group.owner, call),
        }
    }
}

/// The operation's root, or member 0 if it has none, if leaders have schedules for their nodes in it. A user's
/// operation is called by each member for itself.
fn root_of(rank: &Rank, call: &Call<'_>, map: &NodeMap) -> Option<u32> {
    let calls_user = call.reduction().is_some_and(|it| !matches!(it.op, Op::Predefined(_)));
    (!calls_user && has_node_schedules(rank, call, map)).then_some(call.root() as u32)
}

impl Operation {
    /// Starts an operation; the one before at this place is complete.
    ///
    /// # Safety
    /// All that `call` refers to lives until the request is complete.
    ///
    /// # Errors
    /// No memory, or a predefined operation that does not take the type; then the member has not taken part.
    pub(crate) unsafe fn start(&self, owner: Owner<'_>, call: &Call<'_>) -> Result<RequestRef, EngineError> {
        // SAFETY: the caller's promise; the schedule uses them until then.
        let call = unsafe { *call.outliving() };
        if let Some((map, chain)) = &self.meetings
            && let Some(root) = root_of(self.rank, &call, map)
        {
            // SAFETY: the caller's promise.
            return unsafe { start_at_node(owner, self, &chain.place(), map, call, root) };
        }
        let folder = call.folder()?;
        let mut schedule = ScheduleBuilder::new(self.endpoint(self.rank, self.me), folder);
        match &self.sides {
            Some(sides) => write_between(&mut schedule, &call, sides, folder)?,
            None => write(&mut schedule, &call, folder.as_ref())?,
        }
        start(owner, schedule.done())
    }
}

/// Starts a schedule in a call of its owner, and takes its first stage.
///
/// # Errors
/// [`EngineError::OutOfMemory`]: nothing was started.
fn start(owner: Owner<'_>, schedule: Schedule<'static>) -> Result<RequestRef, EngineError> {
    let rank = schedule.endpoint.rank;
    let messages = reserve(schedule.most_messages())?;
    let mut claim = rank.enter();
    free_ended_schedules(owner, &mut claim);
    let request = Request::bare_of(&mut claim, &Scheduled).ok_or(EngineError::OutOfMemory)?;
    connect(&mut claim, schedule.receivers());
    let is_private = schedule.calls_user();
    let schedule = (Some(schedule), messages);
    let running = Running::new(schedule, None, request.as_ptr(), is_private, rank.forever());
    let schedule = begin_schedule(owner, &mut claim, running);
    drop(claim);
    schedule.work(u32::MAX);
    // SAFETY: fresh; it lives until it is released.
    Ok(unsafe { RequestRef::new(request) })
}

/// What the requests of schedules are.
#[derive(Debug)]
struct Scheduled;

impl RequestKind for Scheduled {
    /// A step that can be taken is taken by those who are awake. If all ranks sleep and no packet is on its way, what a
    /// schedule waits for is another member's call.
    unsafe fn tell(&self, request: NonNull<Request>, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(Fact { key: request.addr().get() as u64, ..Fact::new(Told::Collective) });
    }
}

/// Has connections made to the peers of a schedule.
fn connect(claim: &mut Claim<'_>, peers: impl Iterator<Item = Peer>) {
    for peer in peers {
        net::greet(claim, peer);
    }
    net::kick(claim);
}

/// Starts an operation of which the leaders have schedules for all members: for `root`, or member 0 if there is none.
///
/// # Safety
/// As [`Operation::start`].
///
/// # Errors
/// As [`Operation::start`].
unsafe fn start_at_node(
    owner: Owner<'_>,
    operation: &Operation,
    place: &Place<'_>,
    map: &NodeMap,
    call: Call<'static>,
    root: u32,
) -> Result<RequestRef, EngineError> {
    call.folder()?;
    let rank = operation.rank;
    let mut claim = rank.enter();
    free_ended_schedules(owner, &mut claim);
    let request = Request::bare_of(&mut claim, &Scheduled).ok_or(EngineError::OutOfMemory)?;
    let Some(joined) = place.advance(&mut claim) else {
        // SAFETY: the fresh request is ours.
        let unused = unsafe {
            Request::complete_quietly(request.as_ptr(), Status::EMPTY);
            RequestRef::new(request)
        };
        unused.release(&mut claim);
        return Err(EngineError::OutOfMemory);
    };
    let schedule = (place.me == 0).then(|| {
        let meeting = NodeMeetingRef::new(joined);
        let here = map.this_node();
        let partners = partners(&call, map.nodes(), here, map.node_of(root as usize));
        let leader = |node: usize| operation.members[map.members(node)[0] as usize];
        connect(&mut claim, partners.into_iter().map(leader));
        let nothing_yet = (None, Vec::new());
        let running = Running::new(nothing_yet, Some(meeting), request.as_ptr(), false, rank);
        begin_schedule(owner, &mut claim, running)
    });
    drop(claim);
    let part = Part::new(Posted {
        call,
        request: request.as_ptr(),
        rank,
        schedule: schedule.as_ref().map_or(null_mut(), ScheduleRef::call),
    });
    // SAFETY: our cursor keeps the meeting. Each member comes to it once; the last one opens it.
    unsafe {
        if joined.post(place.me, part) {
            let parts = joined.all();
            let Posted { rank: leader, schedule: call, .. } = parts[0].posted;
            let endpoint = operation.endpoint(leader, map.local_members()[0]);
            let prepared = write_for_node(parts, map, root, endpoint);
            leader.shared::<Coll>().calls.met.call(call);
            joined.open(Plan::new(prepared), 1);
            if schedule.is_none() {
                leader.announce();
            }
        }
    }
    if let Some(schedule) = schedule {
        schedule.work(u32::MAX);
    }
    // SAFETY: fresh; it lives until it is released.
    Ok(unsafe { RequestRef::new(request) })
}

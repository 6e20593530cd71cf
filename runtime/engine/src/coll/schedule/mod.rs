//! Nonblocking and persistent collectives: schedules whose steps anybody runs.
//!
//! A member *posts* its arguments at a [`Meeting`](crate::meeting) and returns. The last to
//! post cuts the operation into steps (`plan.rs`): bounded pieces of copying from one member's
//! buffer straight to another's, or of reducing a range of elements from all operands into
//! all results (`step.rs`). The steps are independent of each other, so whoever has time takes the
//! next one: a member in any MPI call, a thief, a polling thread. Whoever
//! finishes the last step completes the requests of all members. So a member's one call is all that
//! an operation needs of it.
//!
//! * What is small is done at once by the last to post ([`AT_ONCE_MAX`]; more in a call that blocks, where ranks outnumber CPUs).
//! * A user's operation runs on the tasks of members only, in any MPI call of theirs that makes
//!   progress: thieves leave such schedules alone.
//! * Each member's pending schedules are in a list of its rank, where the rank and its thieves
//!   find them under the rank's claim; steps are run outside of any claim.
//! * Where MPI lets a result overwrite an operand that others have yet to read, the member
//!   posts a copy of its operand instead (`copies.rs`).
//!
//! Results do not depend on who runs a step: each element is folded in rank order by one
//! task, in the same grouping as the blocking forms fold it.

mod copies;
mod plan;
mod step;

use super::inter::Intergroup;
use super::wide::{Station, start_once};
use super::{Call, Group};
use crate::EngineError;
use crate::Piece;
use crate::claim::Claim;
use crate::coll::state::{Coll, Listed};
use crate::meeting::{self, End, Meeting, release};
use crate::message::Status;
use crate::rank::Rank;
use crate::request::{Request, RequestRef};
use cohort_base::sync::atomic::{AtomicBool, Ordering};
use cohort_steal::TaskKind;
use copies::Operand;
use core::fmt;
use core::ptr::NonNull;
pub(crate) use plan::Plan;
use plan::Weight;

/// Nonblocking operations that move at most this many bytes in total are done by the last member to post,
/// in its call.
pub(super) const AT_ONCE_MAX: u64 = 16 << 10;

/// What one member posts.
pub(crate) struct Part {
    /// The arguments; what they refer to lives until the request is complete.
    call: Call<'static>,
    operand: Operand,
    weight: Weight,
    request: *mut Listed,
    rank: &'static Rank,
    truncated: AtomicBool,
}

// SAFETY: the addresses in a part lead to buffers that their owners leave to the runtime
// until the operation is complete; user operations are called by their owner only.
unsafe impl Send for Part {}

/// A nonblocking collective of one communicator.
pub(crate) type Schedule = Meeting<Part, Plan>;

/// A request's part in a schedule, with a reference to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Membership {
    schedule: NonNull<Schedule>,
    member: u32,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part({:?})", self.rank)
    }
}

/// Begins the operation: the next one of the group's nonblocking collectives at this member.
///
/// # Safety
/// All that `call` refers to, and the buffers, live until the request is complete; the request is not
/// released before.
///
/// # Errors
/// No memory, or a predefined operation that does not take the type; then the member has not taken part.
pub unsafe fn start(group: &Group<'_>, call: &Call<'_>) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { start_alone(group, call, AT_ONCE_MAX) }
}

/// [`start`] in which the last to post moves up to `alone` bytes itself.
///
/// # Safety
/// As for [`start`].
///
/// # Errors
/// As [`start`].
pub(super) unsafe fn start_alone(
    group: &Group<'_>,
    call: &Call<'_>,
    alone: u64,
) -> Result<RequestRef, EngineError> {
    if let Some(spread) = group.shared.spread() {
        // SAFETY: the caller's conditions.
        return unsafe { start_once(group, spread, call) };
    }
    let rank = group.rank.node().rank(group.rank.id());
    // SAFETY: the caller's conditions.
    unsafe { post(rank, &place(group), call, alone) }
}

/// [`start`] on an intercommunicator. Roots of `call` are [`Intergroup::place_of`].
///
/// # Safety
/// As for [`start`].
///
/// # Errors
/// As [`start`].
pub unsafe fn start_between(
    inter: &Intergroup<'_>,
    call: &Call<'_>,
) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { Station::between(inter).start(call) }
}

/// A persistent collective: all its starts meet in a chain of their own, so that members may
/// start several such operations in any order.
#[derive(Debug)]
pub struct Repeated(Form);

#[derive(Debug)]
enum Form {
    WithinNode(Chain),
    /// Among nodes, or between the groups of an intercommunicator.
    Scripts(Station),
}

impl Repeated {
    /// Begins a persistent operation: the members' nonblocking collectives and persistent ones meet in the order
    /// in which they are begun.
    ///
    /// # Errors
    /// No memory.
    pub fn open(group: &Group<'_>) -> Result<Self, EngineError> {
        Ok(Self(match group.shared.spread() {
            Some(spread) => Form::Scripts(Station::repeated(group, spread)?),
            None => Form::WithinNode(Chain::open(group)?),
        }))
    }

    /// [`Repeated::open`] on an intercommunicator, whose calls are as [`start_between`] takes them.
    #[must_use]
    pub fn open_between(inter: &Intergroup<'_>) -> Self {
        Self(Form::Scripts(Station::between(inter)))
    }

    /// Starts the operation once.
    ///
    /// # Safety
    /// As for [`start`]; the previous start is complete.
    ///
    /// # Errors
    /// As [`start`].
    pub unsafe fn start(&self, call: &Call<'_>) -> Result<RequestRef, EngineError> {
        // SAFETY: the caller's conditions.
        unsafe {
            match &self.0 {
                Form::WithinNode(chain) => chain.start(call),
                Form::Scripts(station) => station.start(call),
            }
        }
    }
}

/// A persistent collective within a node.
#[derive(Debug)]
struct Chain {
    rank: &'static Rank,
    meetings: meeting::Chain<Part, Plan>,
}

impl Chain {
    fn open(group: &Group<'_>) -> Result<Self, EngineError> {
        let meetings = meeting::Chain::open(&place(group), &mut group.rank.enter());
        Ok(Self {
            rank: group.rank.node().rank(group.rank.id()),
            meetings: meetings.ok_or(EngineError::OutOfMemory)?,
        })
    }

    /// # Safety
    /// As for [`Repeated::start`].
    unsafe fn start(&self, call: &Call<'_>) -> Result<RequestRef, EngineError> {
        // SAFETY: the caller's conditions.
        unsafe { post(self.rank, &self.meetings.place(), call, AT_ONCE_MAX) }
    }
}

/// One member's place in a chain.
type Place<'a> = meeting::Place<'a, Part, Plan>;

/// The caller's place in the chain of a group's nonblocking collectives.
fn place<'a>(group: &Group<'a>) -> Place<'a> {
    Place {
        first: group.shared.schedules(),
        cursor: group.shared.cursor(group.me),
        me: group.me,
        size: group.world.len() as u32,
    }
}

/// Posts the caller's part at its next meeting. Up to `alone` bytes are moved by the last to post, in its call.
///
/// # Safety
/// As for [`start`].
unsafe fn post(
    rank: &'static Rank,
    place: &Place<'_>,
    call: &Call<'_>,
    alone: u64,
) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller keeps what the arguments refer to until the request is complete,
    // and the schedule uses them until then.
    let call = unsafe { core::mem::transmute::<Call<'_>, Call<'static>>(*call) };
    plan::check(&call)?;
    let mut held = rank.enter();
    let claim = &mut held;
    let request = Listed::make(claim).ok_or(EngineError::OutOfMemory)?;
    // SAFETY: the caller's buffers; the fresh request is ours.
    let (operand, schedule) = unsafe {
        let joined =
            Operand::of(claim, &call, place.me, place.size).and_then(|operand| {
                match place.advance(claim) {
                    Some(schedule) => Some((operand, schedule)),
                    None => {
                        operand.free();
                        None
                    }
                }
            });
        let Some(joined) = joined else {
            Request::complete_quietly(request.as_ptr().cast(), Status::EMPTY);
            Listed::handle(request).release(claim);
            return Err(EngineError::OutOfMemory);
        };
        joined
    };
    let part = Part {
        call,
        operand,
        weight: Weight::of(&call, place.me, place.size),
        request: request.as_ptr(),
        rank,
        truncated: AtomicBool::new(false),
    };
    let membership = Membership {
        schedule,
        member: place.me,
    };
    // SAFETY: our cursor keeps the schedule, and the request gets a reference of its own; the
    // request is ours, pending, and in no list.
    let opened = unsafe {
        schedule.as_ref().retain();
        (*request.as_ptr()).membership = Some(membership);
        if schedule.as_ref().post(place.me, part) {
            Some(open(claim, membership, place.size, alone))
        } else {
            enlist(claim, request.as_ptr());
            None
        }
    };
    drop(held);
    match opened {
        Some(Opened::Small(work)) => {
            work.work(u32::MAX);
        }
        Some(Opened::Large { steps }) => call_helpers(membership, rank, place.size, steps),
        Some(Opened::Done) | None => {}
    }
    Ok(Listed::handle(request))
}

/// Adds a request to the claimed rank's pending schedules.
///
/// # Safety
/// It is the claimed rank's, has a membership, and is in no list.
unsafe fn enlist(claim: &mut Claim<'_>, request: *mut Listed) {
    // SAFETY: the caller's promise.
    unsafe {
        (*request).is_listed = true;
        claim.of::<Coll>().schedules.push(request);
    }
    claim.expect_more(TaskKind::Shm);
}

/// Takes a request out of the claimed rank's pending schedules.
///
/// # Safety
/// It is in there.
pub(crate) unsafe fn delist(claim: &mut Claim<'_>, request: *mut Listed) {
    // SAFETY: the caller's promise.
    unsafe {
        (*request).is_listed = false;
        claim.of::<Coll>().schedules.remove(request);
    }
    claim.expect_less(TaskKind::Shm);
}

/// What the last member to post still has to do, without its claim.
enum Opened {
    /// Nothing: the operation moves no data, and is over.
    Done,
    /// All of it.
    Small(ScheduleRef),
    /// To find helpers for this many steps.
    Large { steps: u64 },
}

/// The last member has posted: makes the plan.
///
/// # Safety
/// The claimed rank is that member, and has just been told so.
unsafe fn open(claim: &mut Claim<'_>, membership: Membership, size: u32, alone: u64) -> Opened {
    // SAFETY: the caller's promise.
    unsafe {
        let schedule = membership.schedule.as_ref();
        let request = schedule.part_of(membership.member).request;
        let (plan, steps) = plan::make(schedule, size);
        let is_small = plan.bytes() <= alone;
        schedule.open(plan, steps);
        if steps == 0 {
            complete(schedule, size);
            return Opened::Done;
        }
        if is_small {
            return Opened::Small(ScheduleRef::new(membership));
        }
        enlist(claim, request);
        Opened::Large { steps }
    }
}

/// Wakes members that wait, and then sleeping workers, as many as the node has CPUs for.
#[cold]
fn call_helpers(membership: Membership, rank: &Rank, size: u32, steps: u64) {
    let node = rank.node();
    let mut wanted = steps.min(u64::from(node.boot().cpus.max(1)));
    // SAFETY: the request that the membership is of is not released yet, and the schedule is open.
    let schedule = unsafe { membership.schedule.as_ref() };
    // The caller's own rank comes last: it does not sleep, but its polling thread may.
    for distance in 1..=size {
        // SAFETY: open.
        let part = unsafe { schedule.part_of((membership.member + distance) % size) };
        if wanted > 0 && part.rank.wake() {
            rank.counters().count_wake();
            wanted -= 1;
        }
    }
    while wanted > 0 && node.wake_worker(rank.id()) {
        rank.counters().count_wake();
        wanted -= 1;
    }
}

/// Completes the requests of all members.
///
/// # Safety
/// All steps are finished, and only the caller knows it; it has a reference.
unsafe fn complete(schedule: &Schedule, size: u32) {
    for member in 0..size {
        // SAFETY: the caller's promise; a request and what the part refers to are not touched
        // after the request is complete.
        unsafe {
            let part = schedule.part_of(member);
            part.operand.free();
            let error = match part.truncated.load(Ordering::Relaxed) {
                true => Status::TRUNCATE,
                false => Status::SUCCESS,
            };
            let status = Status {
                error,
                ..Status::EMPTY
            };
            Request::complete(part.request.cast(), status);
        }
    }
}

/// A reference to a schedule, for work on it.
#[derive(Debug)]
pub(crate) struct ScheduleRef(Membership);

impl ScheduleRef {
    /// # Safety
    /// The caller has a reference already.
    unsafe fn new(membership: Membership) -> Self {
        // SAFETY: the caller's promise.
        unsafe { membership.schedule.as_ref() }.retain();
        Self(membership)
    }

    /// Takes up to `limit` steps, and completes the operation after the last. Returns the bytes
    /// moved. Outside of any claim; for any task, unless the operation is a user's.
    pub(crate) fn work(&self, limit: u32) -> u64 {
        let Membership { schedule, member } = self.0;
        // SAFETY: our reference.
        let schedule = unsafe { schedule.as_ref() };
        let end = match u64::from(member) * 2 < schedule.members() {
            true => End::Front,
            false => End::Back,
        };
        let mut bytes = 0;
        for _ in 0..limit {
            let Some((step, plan)) = schedule.take(end) else {
                break;
            };
            // SAFETY: we have the step.
            bytes += unsafe { step::run(schedule, plan, step, member) };
            if schedule.finish() {
                // SAFETY: we were told so.
                unsafe { complete(schedule, plan.size) };
            }
        }
        bytes
    }
}

impl Piece for ScheduleRef {
    fn run(&self, pieces: u32) -> u64 {
        self.work(pieces)
    }
}

impl Drop for ScheduleRef {
    fn drop(&mut self) {
        // SAFETY: our reference.
        unsafe { release(self.0.schedule) };
    }
}

impl Membership {
    /// Gives the request's reference back.
    ///
    /// # Safety
    /// The request is about to be freed.
    pub(crate) unsafe fn end(self) {
        // SAFETY: the caller's promise.
        unsafe { release(self.schedule) };
    }
}

/// A pending schedule of the claimed rank. Forgets exhausted ones on the way. Those with a user's
/// operation are for the rank's owner only.
pub(crate) fn next(claim: &mut Claim<'_>, by_owner: bool) -> Option<ScheduleRef> {
    let mut request = claim.of::<Coll>().schedules.first();
    while !request.is_null() {
        // SAFETY: requests in the list are valid and have a reference to their schedule; the next
        // one is taken before this one leaves.
        unsafe {
            let following = claim.of::<Coll>().schedules.next(request);
            if let Some(membership) = (*request).membership {
                let schedule = membership.schedule.as_ref();
                if schedule.is_exhausted() {
                    delist(claim, request);
                } else if let Some(plan) = schedule.pending()
                    && (by_owner || !plan.calls_user())
                {
                    return Some(ScheduleRef::new(membership));
                }
            }
            request = following;
        }
    }
    None
}

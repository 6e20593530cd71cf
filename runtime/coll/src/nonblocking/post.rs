//! A member's part in a schedule, in a call of the member's own.

use super::operand;
use super::plan;
use crate::args::{Call, Form};
use crate::compare;
use crate::fold::Runner;
use crate::schedule::{
    Listed, Membership, Operand, Part, Place, Schedule, ScheduleRef, complete, enlist,
};
use cohort_base::sync::atomic::{AtomicBool, AtomicU32};
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::request::{Request, RequestRef};
use cohort_core::wait;
use core::ptr::NonNull;

/// Nonblocking operations that move at most this many bytes in total are done by the last member to post,
/// in its call.
pub(crate) const AT_ONCE_MAX: u64 = 16 << 10;

/// Posts the caller's part at its next meeting. Up to `alone` bytes are moved by the last to post, in its call. With a
/// `form`, it also compares the arguments of all members, and the operation of members that disagree fails.
///
/// # Safety
/// All that `call` refers to, and the buffers, live until the request is complete; the request is not
/// released before.
///
/// # Errors
/// No memory, or a predefined operation that does not take the type; then the member has not taken part.
pub(crate) unsafe fn post(
    rank: &'static Rank,
    place: &Place<'_>,
    call: &Call<'_>,
    alone: u64,
    form: Option<Form>,
) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller keeps what the arguments refer to until the request is complete,
    // and the schedule uses them until then.
    let call = unsafe { call.outliving() };
    let moves_data = form.is_none_or(Form::moves_data);
    if moves_data {
        call.folder()?;
    }
    let mut held = rank.enter();
    let claim = &mut held;
    let request = Listed::make(claim).ok_or(EngineError::OutOfMemory)?;
    // SAFETY: the caller's buffers; the fresh request is ours.
    let (operand, schedule) = unsafe {
        let Some(joined) = join(claim, place, &call, moves_data) else {
            Request::complete_quietly(request.as_ptr().cast(), Status::EMPTY);
            Listed::handle(request).release(claim);
            return Err(EngineError::OutOfMemory);
        };
        joined
    };
    let part = Part {
        call,
        operand,
        weight: plan::weight_of(&call, place.me, place.size),
        request: request.as_ptr(),
        rank,
        truncated: AtomicBool::new(false),
        form,
        disagreement: AtomicU32::new(0),
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
    // SAFETY: fresh, and this is its only reference.
    Ok(unsafe { Listed::handle(request) })
}

/// The member's operand, if it gives any data, and its next meeting. `None` when there is no memory.
///
/// # Safety
/// The buffers of `call` are live.
unsafe fn join(
    claim: &mut Claim<'_>,
    place: &Place<'_>,
    call: &Call<'_>,
    moves_data: bool,
) -> Option<(Operand, NonNull<Schedule>)> {
    // SAFETY: the caller's buffers; nobody has heard of the operand.
    unsafe {
        let operand = match moves_data {
            true => operand::posted(claim, call, place.me, place.size)?,
            false => Operand::NONE,
        };
        let meeting = place.advance(claim);
        if meeting.is_none() {
            operand.free();
        }
        Some((operand, meeting?))
    }
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
        let (plan, steps) = match schedule.part_of(membership.member).form {
            Some(form) if !compare::agree(schedule, size) || !form.moves_data() => {
                (plan::nothing(size), 0)
            }
            _ => plan::make(schedule, size),
        };
        let is_small = plan.bytes <= alone;
        schedule.open(plan, steps);
        if steps == 0 {
            complete(schedule, size);
            return Opened::Done;
        }
        if is_small {
            return Opened::Small(ScheduleRef::new(membership, Runner::Owner));
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

/// Waits for the end of an operation that was started, and releases its request.
///
/// # Errors
/// [`EngineError::Truncated`], [`EngineError::OutOfMemory`], [`EngineError::Disagreement`].
pub(crate) fn finish(owner: Owner<'_>, request: RequestRef) -> Result<(), EngineError> {
    wait::until(owner, &request, || request.is_complete());
    let Status { error, bytes, .. } = request.status();
    request.release(&mut owner.rank().enter());
    match error {
        Status::SUCCESS => Ok(()),
        Status::NOT_SAME => Err(EngineError::Disagreement(bytes as u32)),
        Status::NO_MEMORY => Err(EngineError::OutOfMemory),
        _ => Err(EngineError::Truncated {
            message: 0,
            buffer: 0,
        }),
    }
}

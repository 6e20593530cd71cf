//! Nonblocking and persistent collectives, as their owners start them: pools within a node, schedules among nodes.

mod absent;
mod exchange;
mod opening;
mod operand;
mod operation;
mod plan;
mod post;
mod repeated;
mod role;
mod small;
mod start;
mod taking;
mod varying;
mod word;

use super::args::small::{Agreed, MEMBERS_MAX};
use super::args::{Call, Form, Label};
use super::inter::Intergroup;
use super::members::{Extent, Group, LocalGroup};
use super::pool::Listed;
use cohort_core::EngineError;
use cohort_core::claim::Claim;
use cohort_core::request::RequestRef;
pub(crate) use opening::AT_ONCE_MAX;
pub use opening::Helpers;
use operation::Operation;
use post::post_claimed;
pub use post::{Left, Record, Short};
pub(crate) use post::{Manner, Spot, finish, post};
pub use repeated::Repeated;
use small::Begun;
pub use small::Small;
use start::start_once;

/// A nonblocking operation under way.
#[derive(Debug)]
pub enum Started {
    /// Others may do it all.
    Request(RequestRef),
    /// The same, with the [`Record::Spent`] that was given for it.
    Again,
    /// One of a few bytes, which the member itself looks after.
    Small(Small),
}

/// Begins the operation: the next one of the group's nonblocking collectives at this member.
///
/// # Safety
/// As for [`start`].
///
/// # Errors
/// As [`start`].
pub unsafe fn begin(group: &Group<'_>, call: &Call<'_>) -> Result<Started, EngineError> {
    if let Some(agreed) = Agreed::of(call, group.place()).filter(|it| it.is_varying)
        // SAFETY: the caller's conditions.
        && let Some(small) = unsafe { begin_plain(group, call, agreed)? }
    {
        return Ok(Started::Small(small));
    }
    let mut claim = group.owner.rank().enter();
    let (mut started, mut left) = (None, Left::Nothing);
    let results = (&mut started, &mut left);
    // SAFETY: the caller's conditions.
    let begun = unsafe { begin_claimed(&mut claim, group, call, Record::Fresh, results) };
    drop(claim);
    begun?;
    match started {
        Some(started) => {
            left.finish();
            Ok(started)
        }
        // SAFETY: the caller's conditions.
        None => unsafe { start(group, call) }.map(Started::Request),
    }
}

/// [`begin`] by the holder of the claim, who finds in `results` what has begun and what is left to do. None has begun:
/// [`start`] is to do it, without the claim.
///
/// The results have places of their own, and what this calls is inlined: a result of several words is written in pieces
/// and moved in wide words, which wait until the pieces have left the processor's store buffer, behind all else there.
///
/// # Safety
/// As for [`start`]; and a request is not released, or spent, before what is left is done.
///
/// # Errors
/// As [`start`].
pub unsafe fn begin_claimed(
    claim: &mut Claim<'_>,
    group: &Group<'_>,
    call: &Call<'_>,
    record: Record<'_>,
    (started, left): (&mut Option<Started>, &mut Left),
) -> Result<(), EngineError> {
    let Some(group) = in_rows(group) else {
        return Ok(());
    };
    // SAFETY: the caller's conditions.
    unsafe {
        let row = match small::begin(claim, &group, call)? {
            Begun::Small(small) => {
                *started = Some(Started::Small(small));
                return Ok(());
            }
            Begun::Large(row) => row,
        };
        let (request, rest) = post_claimed(claim, &Spot::Row(&group, &row), call, Manner::ONCE, record)?;
        *left = rest;
        // When all have come to the meeting, nobody takes the operation for a small one.
        if !left.is_of_last() {
            absent::tell_small(claim, &group, &row);
        }
        group.cursor().leave_behind();
        *started = Some(match record {
            Record::Spent(_) => Started::Again,
            // Fresh, and this is its only reference.
            _ => Started::Request(Listed::handle(request)),
        });
        Ok(())
    }
}

/// [`begin`] of an operation of a few bytes, [`Agreed::of`] the call, of which nothing but its buffers must live until
/// it is complete. `None`: it is another one, and has not begun.
///
/// # Safety
/// As for [`start`], but for what `call` refers to besides buffers.
///
/// # Errors
/// As [`start`].
#[inline]
pub unsafe fn begin_plain(group: &Group<'_>, call: &Call<'_>, agreed: Agreed) -> Result<Option<Small>, EngineError> {
    match in_rows(group) {
        // SAFETY: the caller's conditions.
        Some(group) => unsafe { small::begin_plain(&group, call, agreed) },
        None => Ok(None),
    }
}

/// The group, if its nonblocking collectives have rows.
#[inline]
fn in_rows<'a>(group: &Group<'a>) -> Option<LocalGroup<'a>> {
    match group.extent(Label::NONE) {
        Extent::OneNode(group) => {
            let has_rows = (2..=MEMBERS_MAX as usize).contains(&group.size());
            has_rows.then_some(group)
        }
        _ => None,
    }
}

/// Begins an operation that meets the others of this function at this member, and has a request.
///
/// # Safety
/// All that `call` refers to lives until the request is complete; the request is not released before.
///
/// # Errors
/// No memory, or a predefined operation that does not take the type; then the member has not taken part.
pub unsafe fn start(group: &Group<'_>, call: &Call<'_>) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller's conditions.
    unsafe {
        match group.extent(Label::NONE) {
            Extent::OneNode(group) => post(group.rank().forever(), &Spot::Next(&group.place()), call, Manner::ONCE),
            Extent::Compared(group) => {
                let manner = Manner { form: Some(Form::Nonblocking), ..Manner::ONCE };
                post(group.rank().forever(), &Spot::Next(&group.place()), call, manner)
            }
            Extent::Nodes(hierarchy) => start_once(group, hierarchy, call),
        }
    }
}

/// [`start`] on an intercommunicator. Roots of `call` are [`Intergroup::place_of`].
///
/// # Safety
/// As for [`start`].
///
/// # Errors
/// As [`start`].
pub unsafe fn start_between(inter: &Intergroup<'_>, call: &Call<'_>) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { Operation::between(inter).start(inter.local.owner, call) }
}

/// Compares the members' arguments of an operation that does not begin yet, and waits for that. Collective.
///
/// # Errors
/// [`EngineError::Disagreement`], no memory.
#[cold]
pub(crate) fn meet(group: &LocalGroup<'_>, call: &Call<'_>, form: Form) -> Result<(), EngineError> {
    let rank = group.rank().forever();
    let manner = Manner { form: Some(form), ..Manner::ONCE };
    // SAFETY: what the call refers to lives to the end of this call, which waits for the request.
    let request = unsafe { post(rank, &Spot::Next(&group.place()), call, manner)? };
    finish(group.owner, request)
}

//! The nonblocking form (MPI-4.1 section 6.12): the operation begins, and the program gets a request.

use super::described::{Arguments, Beside};
use super::forms::Form;
use super::parts::{Members, On};
use super::{apart, messages};
use crate::arguments::{self, Outcome};
use crate::process::requests::{Describe, EngineRequest, RequestState};
use crate::request::{has_room, publish, publish_claimed};
use cohort_abi::parameters::ResultPlace;
use cohort_abi::{Abi, Handle, HandleKind, dynamic, neutral};
use cohort_engine::Claim;
use cohort_engine::coll::{self, Agreed, Call, Group, Left, Record, Started};
use cohort_engine::rank_box::RankBox;

/// Starts the operation of this call, and writes a handle of it there.
pub struct Nonblocking<'a, 'c, A: Abi>(pub On<'a, 'c, A>, pub ResultPlace<'c, A::Request>);

impl<A: Abi> Form for Nonblocking<'_, '_, A> {
    #[inline(always)]
    fn with(self, arguments: impl Arguments) -> Outcome<()> {
        let Self(on, mut target) = self;
        let (call, comm, _) = on;
        let is_plain = arguments.is_plain();
        if !comm.is_inter() {
            let described = arguments.call();
            if let Call::Neighbours { .. } = described {
                return messages::start(on, &described, target);
            }
            if start_plain(on, &described, is_plain, target.reborrow())? {
                return Ok(());
            }
        }
        // One claim for all of it.
        let mut claim = call.rank().enter();
        let kept = RankBox::<dyn Describe>::new(&mut claim, arguments, |it| it);
        start_kept(on, claim, kept, is_plain, target)
    }

    fn beside(self) -> Outcome<()> {
        self.with(Beside {})
    }
}

/// Refuses buffers that overlap. Begins the operation if it is a short one, or if its arguments refer to nothing that
/// has to be let go of and a record of an earlier one is kept; says whether it has.
///
/// # Errors
/// `MPI_ERR_BUFFER`, no memory, no handle.
#[inline(never)]
fn start_plain<A: Abi>(
    (call, comm, handle): On<'_, '_, A>,
    described: &Call<'_>,
    is_plain: bool,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<bool> {
    let (group, comm) = (comm.collective(), handle.neutral());
    apart::described(&group, described)?;
    if let Some(agreed) = Agreed::of(described, group.place()) {
        // Before anything has begun, which the other members would wait for.
        if !call.pending().spares.has_slot() {
            has_room(call)?;
        }
        // SAFETY: checked arguments of this call; the buffers stay until the operation is complete.
        let small = unsafe { coll::begin_plain(&group, described, agreed) };
        if let Some(small) = small.map_err(|error| group.failure(error))? {
            return publish_small(call, small, comm, target).map(|()| true);
        }
    }
    match is_plain {
        true => start_again(call, &group, described, comm, target),
        false => Ok(false),
    }
}

/// Gives the program a handle of an operation of a few bytes: in a slot that an earlier one has left, if there is one.
///
/// # Errors
/// No handle.
#[inline(always)]
fn publish_small<A: Abi>(
    call: &arguments::Call<'_, A>,
    small: coll::Small,
    comm: u32,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let (pending, rank) = (call.pending(), call.rank());
    let state = RequestState::Small(small, None, comm);
    let claim = rank.threads_multiple().then(|| rank.enter());
    let Some(index) = pending.spares.take_slot() else {
        drop(claim);
        return publish(call, state, target);
    };
    // SAFETY: the slot was vacated, and is filled once.
    unsafe { pending.requests.fill(index, state) };
    let handle = dynamic(HandleKind::Request, index);
    target.write(A::Request::from_neutral(call.context(), handle));
    Ok(())
}

/// Starts the operation in one group with a record that is kept, in its slot. The arguments are
/// [plain](Arguments::is_plain): they refer to the program's buffers and to what lives for ever, so nothing of them
/// is kept. `false`: there is no such record, or the group has no rows; nothing has begun.
///
/// # Errors
/// No memory, no handle.
#[inline(never)]
fn start_again<A: Abi>(
    call: &arguments::Call<'_, A>,
    group: &Group<'_>,
    described: &Call<'_>,
    comm: u32,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<bool> {
    let spares = &call.pending().spares;
    // One claim for all of it.
    let mut claim = call.rank().enter();
    let Some(spare) = spares.last_collective() else {
        return Ok(false);
    };
    // One of a few bytes takes another slot than the record's.
    if !spares.has_slot() && !call.pending().requests.has_room(&mut claim) {
        return Err(neutral::ERR_NO_MEM.into());
    }
    let record = Record::Spent(&spare.operation().request);
    let (mut started, mut left) = (None, Left::Nothing);
    let results = (&mut started, &mut left);
    // SAFETY: buffers of this call, which stay until the operation is complete, and types that always do. Nobody
    // releases the request before this call has returned.
    let begun = unsafe { coll::begin_claimed(&mut claim, group, described, record, results) };
    begun.map_err(|error| group.failure(error))?;
    match started {
        Some(Started::Again) => {
            spares.take_collective();
            spare.operation().comm.set(comm);
            let handle = dynamic(HandleKind::Request, spare.index);
            target.write(A::Request::from_neutral(call.context(), handle));
            drop(claim);
            left.finish();
            Ok(true)
        }
        Some(Started::Small(small)) => {
            drop(claim);
            publish_small(call, small, comm, target).map(|()| true)
        }
        Some(Started::Request(_)) => unreachable!("the record is the one that was given"),
        None => Ok(false),
    }
}

/// Starts the operation with arguments that live until it is complete.
///
/// # Errors
/// No memory, also that of the arguments; no handle.
#[inline(never)]
fn start_kept<A: Abi>(
    (call, comm, handle): On<'_, '_, A>,
    mut claim: Claim<'_>,
    arguments: Result<RankBox<dyn Describe>, cohort_engine::EngineError>,
    is_plain: bool,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let handle = handle.neutral();
    // Before anything has begun, which the other members would wait for.
    if !call.pending().requests.has_room(&mut claim) {
        return Err(neutral::ERR_NO_MEM.into());
    }
    if let Some(inter) = comm.inter() {
        drop(claim);
        let arguments = arguments.map_err(|error| inter.failure(error))?;
        // SAFETY: the arguments live in the request's state until the operation is complete.
        let started = unsafe { coll::start_between(&inter, &arguments.call()) };
        let request = started.map_err(|error| inter.failure(error))?;
        return publish(call, RequestState::Collective(EngineRequest::new(request, handle), arguments), target);
    }
    let group = comm.collective();
    let failure = |error| group.failure(error);
    let record = match is_plain {
        true => Record::Plain,
        false => Record::Fresh,
    };
    let arguments = arguments.map_err(failure)?;
    let (mut started, mut left) = (None, Left::Nothing);
    let results = (&mut started, &mut left);
    // SAFETY: the arguments live in the request's state until the operation is complete, and nobody gives that back
    // before this call has returned, or at its end.
    let begun = unsafe { coll::begin_claimed(&mut claim, &group, &arguments.call(), record, results) };
    begun.map_err(failure)?;
    let state = match started {
        Some(Started::Small(small)) => RequestState::Small(small, Some(arguments), handle),
        Some(Started::Request(request)) => RequestState::Collective(EngineRequest::new(request, handle), arguments),
        Some(Started::Again) => unreachable!("no record was given"),
        None => {
            drop(claim);
            // SAFETY: as above.
            let started = unsafe { coll::start(&group, &arguments.call()) };
            let operation = EngineRequest::new(started.map_err(failure)?, handle);
            return publish(call, RequestState::Collective(operation, arguments), target);
        }
    };
    let published = publish_claimed(call, &mut claim, state, target);
    drop(claim);
    left.finish();
    published.map_err(|state| {
        state.release(&mut call.rank().enter());
        neutral::ERR_NO_MEM.into()
    })
}

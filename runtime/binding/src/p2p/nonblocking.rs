//! `MPI_Isend` in its modes, and `MPI_Irecv`.

use super::buffered::post_buffered;
use super::fast_path;
use super::message::{Incoming, Outgoing, with_request};
use crate::arguments::{Call, Comm, Outcome, engine_error};
use crate::process::buffers::Owners;
use crate::process::requests::{EngineRequest, RequestState};
use crate::status::neutral_status;
use cohort_abi::parameters::{Buffer, Out, ResultPlace};
use cohort_abi::{Abi, Count, Handle, HandleKind, SENT_REQUEST, dynamic, neutral};
use cohort_engine::offload::Poster;
use cohort_engine::watch::{leave_behind, leave_send_behind};
use cohort_engine::{Claim, Received, RequestRef, SendMode, Status, fast_path as engine_fast_path};
use core::ffi::c_int;

/// Gives the program a handle of `request`, whose failures `comm` hears of.
///
/// # Errors
/// No handle is left; the operation goes on without one.
#[inline]
pub(super) fn publish<A: Abi>(
    call: &Call<'_, A>,
    claim: &mut Claim<'_>,
    request: RequestRef,
    comm: A::Comm,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    if request.is_shared() {
        target.write(A::Request::from_neutral(call.context(), SENT_REQUEST));
        return Ok(());
    }
    let state = RequestState::Once(EngineRequest::new(request, comm.neutral()));
    match call.pending().requests.try_insert(claim, state) {
        Ok(index) => {
            let handle = dynamic(HandleKind::Request, index);
            target.write(A::Request::from_neutral(call.context(), handle));
            Ok(())
        }
        Err(state) => {
            state.release(claim);
            Err(neutral::ERR_NO_MEM.into())
        }
    }
}

/// Gives the program a handle of a receive that has its message already, whose failure `comm` hears of.
///
/// # Errors
/// No handle is left.
#[inline]
fn publish_received<A: Abi>(
    call: &Call<'_, A>,
    claim: &mut Claim<'_>,
    status: &Status,
    comm: A::Comm,
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let spares = &call.pending().spares;
    let Some(spare) = spares.last() else {
        // The first ones are made to be kept.
        let record = match spares.wants_one() {
            true => engine_fast_path::ended(claim, *status),
            false => None,
        };
        if let Some(record) = record {
            return publish(call, claim, record, comm, target);
        }
        let (status, comm) = (neutral_status(status), comm.neutral());
        let state = RequestState::Received { status, comm };
        let index = call.pending().requests.insert(claim, state);
        let handle = dynamic(HandleKind::Request, index.ok_or(neutral::ERR_NO_MEM)?);
        target.write(A::Request::from_neutral(call.context(), handle));
        return Ok(());
    };
    spares.take();
    engine_fast_path::end_spent(claim, &spare.operation().request, *status);
    spare.operation().comm.set(comm.neutral());
    let handle = dynamic(HandleKind::Request, spare.index);
    target.write(A::Request::from_neutral(call.context(), handle));
    Ok(())
}

/// Leaves an operation of so many bytes to a dedicated worker and returns its handle. `None`: it is to be started
/// in the usual way.
#[inline]
fn offload<A: Abi>(
    call: &Call<'_, A>,
    (comm, communicator): (A::Comm, &Comm),
    bytes: u64,
    leave: impl FnOnce(&mut Poster<'_>) -> Option<RequestRef>,
) -> Option<A::Request> {
    let mut poster = Poster::of(call.rank(), bytes, || communicator.progress.get())?;
    let index = call.pending().reserve_request(&mut poster)?;
    let Some(request) = leave(&mut poster) else {
        call.pending().unreserve_request(&mut poster);
        return None;
    };
    let state = RequestState::Once(EngineRequest::new(request, comm.neutral()));
    // SAFETY: the slot was reserved by this poster, and is filled once.
    unsafe { call.pending().requests.fill(index, state) };
    Some(A::Request::from_neutral(call.context(), dynamic(HandleKind::Request, index)))
}

/// Starts a send, and gives the program a request for it.
#[inline(always)]
fn started<A: Abi, C: Count>(
    call: &Call<'_, A>,
    (buffer, to, tag): (Buffer<A, C>, c_int, c_int),
    comm: A::Comm,
    mode: SendMode,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let check = |comm: &Comm| Outgoing::check(call, comm, buffer, to, tag);
    let (communicator, request, message) = with_request(call, comm, request, check)?;
    if let SendMode::Buffered = mode {
        let claim = &mut call.rank().enter();
        post_buffered(call.pending(), claim, Owners::of(comm.neutral(), communicator), &message)?;
        // The copy is the runtime's, so the program's operation is already complete.
        let done = RequestRef::completed(claim, Status::EMPTY).ok_or(neutral::ERR_NO_MEM)?;
        return publish(call, claim, done, comm, request);
    }
    let leave = |poster: &mut Poster<'_>| message.leave(poster, mode);
    if let Some(left) = offload(call, (comm, communicator), message.bytes(), leave) {
        request.write(left);
        return Ok(());
    }
    let claim = &mut call.rank().enter();
    let started = message.start(claim, mode).map_err(engine_error)?;
    leave_send_behind(claim, &started, communicator.progress.get());
    publish(call, claim, started, comm, request)
}

/// `MPI_Isend`.
#[inline(always)]
pub fn isend<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    to: c_int,
    tag: c_int,
    comm: A::Comm,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    match fast_path::isend(call, &buffer, (to, tag), comm, &request) {
        true => Ok(()),
        false => long_isend(call, buffer, to, tag, comm, request),
    }
}

sends! {
    started(request: Out<'_, A::Request>):
    /// [`isend`] of any message.
    #[inline(never)]
    long_isend Standard;
    /// `MPI_Issend`.
    issend Synchronous;
    /// `MPI_Irsend`.
    irsend Ready;
    /// `MPI_Ibsend`.
    ibsend Buffered;
}

/// `MPI_Irecv`.
#[inline(always)]
pub fn irecv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    match fast_path::irecv(call, &buffer, (from, tag), comm, &request) {
        true => Ok(()),
        false => long_irecv(call, buffer, from, tag, comm, request),
    }
}

/// [`irecv`] of any message.
#[inline(never)]
fn long_irecv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let check = |comm: &Comm| Incoming::check(call, comm, buffer, from, tag);
    let (communicator, request, message) = with_request(call, comm, request, check)?;
    let leave = |poster: &mut Poster<'_>| message.leave(poster);
    if let Some(left) = offload(call, (comm, communicator), message.bytes(), leave) {
        request.write(left);
        return Ok(());
    }
    let claim = &mut call.rank().enter();
    // Before anything is received: what has begun cannot be taken back.
    if !call.pending().requests.has_room(claim) {
        return Err(neutral::ERR_NO_MEM.into());
    }
    let mut status = Status::EMPTY;
    let received = message.receive_or_start(claim, &mut status);
    match received.map_err(engine_error)? {
        Received::Now => publish_received(call, claim, &status, comm, request),
        Received::Later(started) => {
            leave_behind(claim, &started, communicator.progress.get());
            publish(call, claim, started, comm, request)
        }
    }
}

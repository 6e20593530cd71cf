//! `MPI_Sendrecv` and its like (MPI-4.1 sections 3.11 and 3.7.8).

use super::message::{Incoming, Outgoing};
use crate::arguments::{Call, Comm, Outcome, engine_error};
use crate::process::requests::RequestState;
use crate::request;
use crate::status::{failure_of, neutral_status};
use cohort_abi::parameters::{Buffer, Out, ResultPlace, StatusOut};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::wait::{WaitKind, until};
use cohort_engine::watch::{leave_behind, leave_send_behind};
use cohort_engine::{RequestRef, SendMode};
use core::ffi::c_int;

/// A send and a receive under way.
struct Both {
    receive: RequestRef,
    send: RequestRef,
}

/// Buffer, partner and tag of a send or a receive.
type Half<A, C> = (Buffer<A, C>, c_int, c_int);

/// Checks and starts the receive and the send, for whose ends the call waits or not. Without a buffer of its own the
/// send has a copy of the receive's, because the receive writes there.
#[inline(always)]
fn start<A: Abi, C: Count>(
    call: &Call<'_, A>,
    communicator: &Comm,
    (send_buffer, to, send_tag): (Option<Buffer<A, C>>, c_int, c_int),
    (buffer, from, tag): Half<A, C>,
    waits: bool,
) -> Outcome<Both> {
    let replace = send_buffer.is_none();
    let send_buffer = send_buffer.unwrap_or(buffer);
    let outgoing = Outgoing::check(call, communicator, send_buffer, to, send_tag)?;
    let incoming = Incoming::check(call, communicator, buffer, from, tag)?;
    let claim = &mut call.rank().enter();
    let send = match replace {
        // The copy is made before the receive can write.
        true => outgoing.start_copy(claim),
        false if waits => outgoing.start_waiting(claim),
        false => outgoing.start(claim, SendMode::Standard),
    };
    let send = send.map_err(engine_error)?;
    match incoming.start(claim) {
        Ok(receive) => Ok(Both { receive, send }),
        Err(error) => {
            send.release(claim);
            Err(engine_error(error))
        }
    }
}

/// Waits for both; the status is the receive's. Of two errors the receive's is told.
fn finish<A: Abi>(call: &Call<'_, A>, both: Both, status: StatusOut<'_, A>) -> Outcome<()> {
    let done = || both.receive.is_complete() && both.send.is_complete();
    if !done() {
        until(call.owner(), WaitKind::Request, done);
    }
    let (received, sent) = (neutral_status(&both.receive.status()), both.send.status().error);
    let claim = &mut call.rank().enter();
    both.receive.release(claim);
    both.send.release(claim);
    status.write(&received);
    match (received.error, sent) {
        (neutral::SUCCESS, neutral::SUCCESS) => Ok(()),
        (neutral::SUCCESS, _) => Err(sent.into()),
        _ => Err(failure_of(&received)),
    }
}

/// Gives the program one handle for both.
fn publish<A: Abi>(
    call: &Call<'_, A>,
    both: Both,
    (comm, communicator): (A::Comm, &Comm),
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let comm = comm.neutral();
    let progress = communicator.progress.get();
    let mut claim = call.rank().enter();
    leave_send_behind(&mut claim, &both.send, progress);
    leave_behind(&mut claim, &both.receive, progress);
    drop(claim);
    let state = RequestState::Exchange { receive: both.receive, send: both.send, comm };
    request::publish(call, state, target)
}

/// `MPI_Sendrecv`.
#[inline(always)]
pub fn sendrecv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Buffer<A, C>,
    to: c_int,
    send_tag: c_int,
    buffer: Buffer<A, C>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    let (send, receive) = ((Some(send_buffer), to, send_tag), (buffer, from, tag));
    let both = start(call, communicator, send, receive, true)?;
    finish(call, both, status)
}

/// `MPI_Sendrecv_replace`.
pub fn sendrecv_replace<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    to: c_int,
    send_tag: c_int,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    let (send, receive) = ((None, to, send_tag), (buffer, from, tag));
    let both = start(call, communicator, send, receive, true)?;
    finish(call, both, status)
}

/// `MPI_Isendrecv`.
pub fn isendrecv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    send_buffer: Buffer<A, C>,
    to: c_int,
    send_tag: c_int,
    buffer: Buffer<A, C>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    let target = call.output(request, "request")?;
    request::has_room(call)?;
    let (send, receive) = ((Some(send_buffer), to, send_tag), (buffer, from, tag));
    let both = start(call, communicator, send, receive, false)?;
    publish(call, both, (comm, communicator), target)
}

/// `MPI_Isendrecv_replace`.
pub fn isendrecv_replace<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    to: c_int,
    send_tag: c_int,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    let target = call.output(request, "request")?;
    request::has_room(call)?;
    let (send, receive) = ((None, to, send_tag), (buffer, from, tag));
    let both = start(call, communicator, send, receive, false)?;
    publish(call, both, (comm, communicator), target)
}

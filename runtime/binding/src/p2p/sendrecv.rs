//! `MPI_Sendrecv` and its like (MPI-4.1 sections 3.11 and 3.7.8).

use super::message::{Incoming, Outgoing};
use crate::arguments::{Call, Comm, Outcome, engine_error};
use crate::process::requests::RequestState;
use crate::request;
use crate::status::{failure_of, neutral_status};
use cohort_abi::parameters::{Buffer, Out, ResultPlace, StatusOut};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::wait::until;
use cohort_engine::watch::{leave_behind, leave_send_behind};
use cohort_engine::{Claim, RequestRef, SendMode};
use core::ffi::c_int;

/// A send and a receive under way.
struct Both {
    receive: RequestRef,
    send: RequestRef,
}

/// Buffer, partner and tag of a send or a receive.
type Half<A, C> = (Buffer<A, C>, c_int, c_int);

/// A send and a receive whose arguments are checked.
struct Halves {
    outgoing: Outgoing,
    incoming: Incoming,
    /// The send has a copy of the receive's buffer, because the receive writes there.
    replace: bool,
}

impl Halves {
    /// Checks both. Without a buffer of its own the send has the receive's.
    #[inline(always)]
    fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        communicator: &Comm,
        (send_buffer, to, send_tag): (Option<Buffer<A, C>>, c_int, c_int),
        (buffer, from, tag): Half<A, C>,
    ) -> Outcome<Self> {
        let replace = send_buffer.is_none();
        let send_buffer = send_buffer.unwrap_or(buffer);
        let outgoing = Outgoing::check(call, communicator, send_buffer, to, send_tag)?;
        let incoming = Incoming::check(call, communicator, buffer, from, tag)?;
        Ok(Self { outgoing, incoming, replace })
    }

    /// Starts the send, for whose end the call `waits`.
    #[inline(always)]
    fn send(&self, claim: &mut Claim<'_>, waits: bool) -> Outcome<RequestRef> {
        let send = match self.replace {
            // The copy is made before the receive can write.
            true => self.outgoing.start_copy(claim),
            false if waits => self.outgoing.start_waiting(claim),
            false => self.outgoing.start(claim, SendMode::Standard),
        };
        send.map_err(engine_error)
    }

    /// Starts the receive behind its send.
    fn receive_after(&self, claim: &mut Claim<'_>, send: RequestRef) -> Outcome<Both> {
        match self.incoming.start(claim) {
            Ok(receive) => Ok(Both { receive, send }),
            Err(error) => {
                send.release(claim);
                Err(engine_error(error))
            }
        }
    }
}

/// Sends and receives. Behind a send that is over, as that of a short message is, the receive waits as any does.
#[inline(always)]
fn exchange<A: Abi>(call: &Call<'_, A>, halves: &Halves, status: StatusOut<'_, A>) -> Outcome<()> {
    let mut claim = call.rank().enter();
    let send = halves.send(&mut claim, true)?;
    if !send.is_complete() || send.status().error != neutral::SUCCESS {
        let both = halves.receive_after(&mut claim, send)?;
        drop(claim);
        return finish(call, both, status);
    }
    send.release(&mut claim);
    drop(claim);
    let mut received = cohort_engine::Status::EMPTY;
    halves.incoming.receive(call.owner(), &mut received).map_err(engine_error)?;
    let received = neutral_status(&received);
    status.write(&received);
    match received.error {
        neutral::SUCCESS => Ok(()),
        _ => Err(failure_of(&received)),
    }
}

/// Waits for both; the status is the receive's. Of two errors the receive's is told.
fn finish<A: Abi>(call: &Call<'_, A>, both: Both, status: StatusOut<'_, A>) -> Outcome<()> {
    for request in [&both.receive, &both.send] {
        until(call.owner(), request, || request.is_complete());
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

/// Starts both.
fn start<A: Abi>(
    call: &Call<'_, A>,
    halves: &Halves,
    comm: (A::Comm, &Comm),
    target: ResultPlace<'_, A::Request>,
) -> Outcome<()> {
    let mut claim = call.rank().enter();
    let send = halves.send(&mut claim, false)?;
    let both = halves.receive_after(&mut claim, send)?;
    drop(claim);
    publish(call, both, comm, target)
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
    let halves = Halves::check(call, communicator, (Some(send_buffer), to, send_tag), (buffer, from, tag))?;
    exchange(call, &halves, status)
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
    let halves = Halves::check(call, communicator, (None, to, send_tag), (buffer, from, tag))?;
    exchange(call, &halves, status)
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
    let halves = Halves::check(call, communicator, (Some(send_buffer), to, send_tag), (buffer, from, tag))?;
    start(call, &halves, (comm, communicator), target)
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
    let halves = Halves::check(call, communicator, (None, to, send_tag), (buffer, from, tag))?;
    start(call, &halves, (comm, communicator), target)
}

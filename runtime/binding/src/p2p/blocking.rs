//! `MPI_Send` in its modes, and `MPI_Recv`.

use super::buffered::post_buffered;
use super::fast_path;
use super::message::{Incoming, Outgoing};
use crate::arguments::{Call, Outcome, engine_error};
use crate::process::buffers::Owners;
use crate::status::{failure_of, neutral_status};
use cohort_abi::parameters::{Buffer, StatusOut};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::fast_path::Then;
use cohort_engine::{SendMode, Status};
use core::ffi::c_int;

/// Sends, and waits until the program may use its buffer again.
#[inline(always)]
fn finished<A: Abi, C: Count>(
    call: &Call<'_, A>,
    (buffer, to, tag): (Buffer<A, C>, c_int, c_int),
    comm: A::Comm,
    mode: SendMode,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    let message = Outgoing::check(call, communicator, buffer, to, tag)?;
    match mode {
        SendMode::Buffered => {
            let claim = &mut call.rank().enter();
            post_buffered(call.pending(), claim, Owners::of(comm.neutral(), communicator), &message)
        }
        mode => message.send(call.owner(), mode).map_err(engine_error),
    }
}

/// `MPI_Send`.
#[inline(always)]
pub fn send<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    to: c_int,
    tag: c_int,
    comm: A::Comm,
) -> Outcome<()> {
    match fast_path::send(call, &buffer, (to, tag), comm, Then::Anything) {
        true => Ok(()),
        false => long_send(call, buffer, to, tag, comm),
    }
}

sends! {
    finished():
    /// [`send`] of any message.
    #[inline(never)]
    long_send Standard;
    /// `MPI_Ssend`.
    #[inline(always)]
    ssend Synchronous;
    /// `MPI_Rsend`.
    #[inline(always)]
    rsend Ready;
    /// `MPI_Bsend`.
    bsend Buffered;
}

/// `MPI_Recv`.
#[inline(always)]
pub fn recv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    status: StatusOut<'_, A>,
) -> Outcome<()> {
    let received = match fast_path::recv(call, &buffer, (from, tag), comm) {
        Some(Ok(received)) => received,
        Some(Err(error)) => {
            call.on_comm(comm)?;
            return Err(error);
        }
        None => {
            let mut received = Status::EMPTY;
            long_recv(call, buffer, (from, tag), comm, &mut received)?;
            received
        }
    };
    status.write(&neutral_status(&received));
    match received.error {
        neutral::SUCCESS => Ok(()),
        _ => {
            call.on_comm(comm)?;
            Err(failure_of(&neutral_status(&received)))
        }
    }
}

/// The message of any [`recv`].
#[inline(never)]
fn long_recv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    (from, tag): (c_int, c_int),
    comm: A::Comm,
    status: &mut Status,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let message = Incoming::check(call, comm, buffer, from, tag)?;
    let received = message.receive(call.owner(), status);
    received.map_err(engine_error)
}

//! `MPI_Send` in its modes, and `MPI_Recv`.

use super::buffered::post_buffered;
use super::message::{Incoming, Outgoing};
use crate::arguments::{Call, Outcome, engine_error};
use crate::passed::{Buffer, StatusOut};
use crate::process::buffers::Owners;
use crate::status::{failure_of, neutral_status};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::SendMode;
use core::ffi::c_int;

macro_rules! sends {
    ($($(#[$page:meta])* $name:ident $mode:ident;)*) => {$(
        $(#[$page])*
        #[inline(always)]
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            buffer: Buffer<A, C>,
            to: c_int,
            tag: c_int,
            comm: A::Comm,
        ) -> Outcome<()> {
            let comm = call.on_comm(comm)?;
            let message = Outgoing::check(call, comm, buffer, to, tag)?;
            let sent = message.send(call.owner(), SendMode::$mode);
            sent.map_err(engine_error)
        }
    )*};
}

sends! {
    /// `MPI_Send`.
    send Standard;
    /// `MPI_Ssend`.
    ssend Synchronous;
    /// `MPI_Rsend`.
    rsend Ready;
}

/// `MPI_Bsend`.
pub fn bsend<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: Buffer<A, C>,
    to: c_int,
    tag: c_int,
    comm: A::Comm,
) -> Outcome<()> {
    let communicator = call.on_comm(comm)?;
    let message = Outgoing::check(call, communicator, buffer, to, tag)?;
    let claim = &mut call.rank().enter();
    let owners = Owners::of(comm.neutral(), communicator);
    post_buffered(call.pending(), claim, owners, &message)
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
    let comm = call.on_comm(comm)?;
    let message = Incoming::check(call, comm, buffer, from, tag)?;
    let received = message.receive(call.owner()).map_err(engine_error)?;
    status.write(&neutral_status(&received));
    match received.error {
        neutral::SUCCESS => Ok(()),
        _ => Err(failure_of(&neutral_status(&received))),
    }
}

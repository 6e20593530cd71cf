//! `MPI_Send` in its modes, and `MPI_Recv`.

use super::buffered::{Owners, post_buffered};
use super::message::{FROM_NOBODY, Incoming, Outgoing};
use crate::arguments::{engine_error, ignored, on_comm};
use crate::status::neutral_status;
use cohort_abi::{Abi, Count, Handle, StatusLayout, neutral};
use cohort_engine::SendMode;
use core::ffi::{c_int, c_void};

macro_rules! sends {
    ($($(#[$page:meta])* $name:ident $mpi:literal $mode:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: the buffer holds `elements` elements; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi, C: Count>(
            caller: *const c_void,
            buffer: *const c_void,
            elements: C,
            datatype: A::Datatype,
            to: c_int,
            tag: c_int,
            comm: A::Comm,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $mpi, comm, |call, comm| {
                    let message =
                        Outgoing::check(call, comm, buffer, elements, datatype, to, tag)?;
                    let Some(to) = message.to else { return Ok(()) };
                    cohort_engine::send(
                        call.owner(),
                        message.buffer,
                        message.count,
                        &message.datatype,
                        to,
                        message.envelope,
                        SendMode::$mode,
                    )
                    .map_err(engine_error)
                })
            }
        }
    )*};
}

sends! {
    /// `MPI_Send`.
    send "MPI_Send" Standard;
    /// `MPI_Ssend`.
    ssend "MPI_Ssend" Synchronous;
    /// `MPI_Rsend`.
    rsend "MPI_Rsend" Ready;
}

/// `MPI_Bsend`.
///
/// # Safety
/// MPI's: the buffer holds `elements` elements; `caller` is the calling rank.
pub unsafe extern "C" fn bsend<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *const c_void,
    elements: C,
    datatype: A::Datatype,
    to: c_int,
    tag: c_int,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Bsend", comm, |call, communicator| {
            let message = Outgoing::check(call, communicator, buffer, elements, datatype, to, tag)?;
            let claim = &mut call.rank().enter();
            let owners = Owners::of(comm.neutral(), communicator);
            post_buffered(call.pending(), claim, owners, &message)
        })
    }
}

/// `MPI_Recv`.
///
/// # Safety
/// MPI's: the buffer takes `elements` elements, `status` is `MPI_STATUS_IGNORE` or valid;
/// `caller` is the calling rank.
pub unsafe extern "C" fn recv<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Recv", comm, |call, comm| {
            let message = Incoming::check(call, comm, buffer, elements, datatype, from, tag)?;
            let received = match message.from {
                None => FROM_NOBODY,
                Some(from) => cohort_engine::recv(
                    call.owner(),
                    message.buffer,
                    message.count,
                    &message.datatype,
                    from,
                    message.context,
                    message.tag,
                )
                .map_err(engine_error)?,
            };
            if !ignored::<A>(status) {
                (*status).write(&neutral_status(&received));
            }
            match received.error {
                neutral::SUCCESS => Ok(()),
                class => Err(class),
            }
        })
    }
}

//! `MPI_Sendrecv` and its like (MPI-4.1 sections 3.11 and 3.7.8).

use super::message::{Incoming, Outgoing};
use crate::arguments::{Call, Comm, Outcome, engine_error, on_comm};
use crate::request::State;
use crate::status::neutral_status;
use cohort_abi::{Abi, Count, Handle, Kind, Status, dynamic, neutral};
use cohort_engine::wait::{WaitKind, until};
use cohort_engine::watch::leave_behind;
use cohort_engine::{RequestRef, SendMode};
use core::ffi::{c_int, c_void};

/// A send and a receive under way.
struct Both {
    receive: RequestRef,
    send: RequestRef,
}

/// Starts the receive and the send. `replace` sends a copy, because the receive writes to the
/// same buffer.
///
/// # Safety
/// The buffers of both are valid until both requests are complete.
unsafe fn start<A: Abi>(
    call: &Call<'_, A>,
    outgoing: &Outgoing,
    incoming: &Incoming,
    replace: bool,
) -> Outcome<Both> {
    let claim = &mut call.rank().enter();
    // SAFETY: the caller's contract; the copy is made before the receive can write.
    unsafe {
        let send = match replace {
            true => outgoing.start_copy(claim),
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
}

/// Waits for both; the status is the receive's.
fn finish<A: Abi>(call: &Call<'_, A>, both: &Both) -> Status {
    let done = || both.receive.is_complete() && both.send.is_complete();
    if !done() {
        until(call.owner(), WaitKind::Request, done);
    }
    let status = neutral_status(&both.receive.status());
    let claim = &mut call.rank().enter();
    both.receive.release(claim);
    both.send.release(claim);
    status
}

/// Gives the program one handle for both.
///
/// # Safety
/// `target` is valid for writes.
unsafe fn publish<A: Abi>(
    call: &Call<'_, A>,
    both: &Both,
    (comm, communicator): (A::Comm, &Comm),
    target: *mut A::Request,
) -> Outcome<()> {
    let comm = comm.neutral();
    let state = State::Exchange {
        receive: both.receive,
        send: both.send,
        comm,
    };
    let claim = &mut call.rank().enter();
    leave_behind(claim, both.receive, communicator.progress.get());
    let index = call
        .pending()
        .requests
        .insert(claim, state)
        .ok_or(neutral::ERR_NO_MEM)?;
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Request::from_neutral(dynamic(Kind::Request, index))) };
    Ok(())
}

fn outcome(status: &Status) -> Outcome<()> {
    match status.error {
        neutral::SUCCESS => Ok(()),
        class => Err(class),
    }
}

/// `MPI_Sendrecv`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements, `status` is `MPI_STATUS_IGNORE` or valid; `caller` is the
/// calling rank.
pub unsafe extern "C" fn sendrecv<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_elements: C,
    send_type: A::Datatype,
    to: c_int,
    send_tag: c_int,
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
        on_comm::<A>(caller, "MPI_Sendrecv", comm, |call, communicator| {
            let outgoing = Outgoing::check(
                call,
                communicator,
                send_buffer,
                send_elements,
                send_type,
                to,
                send_tag,
            )?;
            let incoming =
                Incoming::check(call, communicator, buffer, elements, datatype, from, tag)?;
            let both = start(call, &outgoing, &incoming, false)?;
            let received = finish(call, &both);
            A::write_status(status, &received);
            outcome(&received)
        })
    }
}

/// `MPI_Sendrecv_replace`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements, `status` is `MPI_STATUS_IGNORE` or valid; `caller` is the
/// calling rank.
pub unsafe extern "C" fn sendrecv_replace<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    to: c_int,
    send_tag: c_int,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(
            caller,
            "MPI_Sendrecv_replace",
            comm,
            |call, communicator| {
                let outgoing =
                    Outgoing::check(call, communicator, buffer, elements, datatype, to, send_tag)?;
                let incoming =
                    Incoming::check(call, communicator, buffer, elements, datatype, from, tag)?;
                let both = start(call, &outgoing, &incoming, true)?;
                let received = finish(call, &both);
                A::write_status(status, &received);
                outcome(&received)
            },
        )
    }
}

/// `MPI_Isendrecv`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements until the request is complete, `request` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn isendrecv<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_elements: C,
    send_type: A::Datatype,
    to: c_int,
    send_tag: c_int,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Isendrecv", comm, |call, communicator| {
            call.output(request, "request")?;
            let outgoing = Outgoing::check(
                call,
                communicator,
                send_buffer,
                send_elements,
                send_type,
                to,
                send_tag,
            )?;
            let incoming =
                Incoming::check(call, communicator, buffer, elements, datatype, from, tag)?;
            let both = start(call, &outgoing, &incoming, false)?;
            publish(call, &both, (comm, communicator), request)
        })
    }
}

/// `MPI_Isendrecv_replace`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements until the request is complete, `request` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn isendrecv_replace<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    to: c_int,
    send_tag: c_int,
    from: c_int,
    tag: c_int,
    comm: A::Comm,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(
            caller,
            "MPI_Isendrecv_replace",
            comm,
            |call, communicator| {
                call.output(request, "request")?;
                let outgoing =
                    Outgoing::check(call, communicator, buffer, elements, datatype, to, send_tag)?;
                let incoming =
                    Incoming::check(call, communicator, buffer, elements, datatype, from, tag)?;
                let both = start(call, &outgoing, &incoming, true)?;
                publish(call, &both, (comm, communicator), request)
            },
        )
    }
}

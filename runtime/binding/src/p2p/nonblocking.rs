//! `MPI_Isend` in its modes, and `MPI_Irecv`.

use super::buffered::{Owners, post_buffered};
use super::message::{Incoming, Outgoing};
use crate::arguments::{Call, Comm, Outcome, engine_error, on_comm};
use crate::request::{Operation, SENT, State};
use crate::status::neutral_status;
use cohort_abi::{Abi, Count, Handle, Kind, dynamic, neutral};
use cohort_engine::offload::Poster;
use cohort_engine::watch::leave_behind;
use cohort_engine::{Claim, RequestRef, SendMode, Status};
use core::ffi::{c_int, c_void};

/// Gives the program a handle of `request`, whose failures `comm` hears of.
///
/// # Safety
/// `target` is valid for writes.
///
/// # Errors
/// No handle is left; the operation goes on without one.
#[inline]
pub(super) unsafe fn publish<A: Abi>(
    call: &Call<'_, A>,
    claim: &mut Claim<'_>,
    request: RequestRef,
    comm: A::Comm,
    target: *mut A::Request,
) -> Outcome<()> {
    if request.is_shared() {
        // SAFETY: the caller's contract.
        unsafe { target.write(A::Request::from_neutral(SENT)) };
        return Ok(());
    }
    let comm = comm.neutral();
    let state = State::Once(Operation { request, comm });
    match call.pending().requests.insert(claim, state) {
        Some(index) => {
            let handle = dynamic(Kind::Request, index);
            // SAFETY: the caller's contract.
            unsafe { target.write(A::Request::from_neutral(handle)) };
            Ok(())
        }
        None => {
            request.release(claim);
            Err(neutral::ERR_NO_MEM)
        }
    }
}

/// Gives the program a handle of a receive that has its message already, whose failure `comm` hears of.
///
/// # Safety
/// `target` is valid for writes.
///
/// # Errors
/// No handle is left.
#[inline]
unsafe fn publish_received<A: Abi>(
    call: &Call<'_, A>,
    claim: &mut Claim<'_>,
    status: &Status,
    comm: A::Comm,
    target: *mut A::Request,
) -> Outcome<()> {
    let (status, comm) = (neutral_status(status), comm.neutral());
    let state = State::Received { status, comm };
    let index = call.pending().requests.insert(claim, state);
    let handle = dynamic(Kind::Request, index.ok_or(neutral::ERR_NO_MEM)?);
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Request::from_neutral(handle)) };
    Ok(())
}

/// Leaves an operation of so many bytes to a dedicated worker and gives the program its handle. `false`: it is to be started
/// in the usual way.
///
/// # Safety
/// `target` is valid for writes.
#[inline]
unsafe fn offload<A: Abi>(
    call: &Call<'_, A>,
    (comm, communicator): (A::Comm, &Comm),
    bytes: u64,
    leave: impl FnOnce(&mut Poster<'_>) -> Option<RequestRef>,
    target: *mut A::Request,
) -> bool {
    let Some(mut poster) = Poster::of(call.rank(), bytes, || communicator.progress.get()) else {
        return false;
    };
    let Some(index) = call.pending().reserve_request(&mut poster) else {
        return false;
    };
    let Some(request) = leave(&mut poster) else {
        call.pending().unreserve_request(&mut poster);
        return false;
    };
    let comm = comm.neutral();
    let state = State::Once(Operation { request, comm });
    // SAFETY: the slot was reserved by this poster; the caller's contract.
    unsafe {
        call.pending().requests.fill(index, state);
        target.write(A::Request::from_neutral(dynamic(Kind::Request, index)));
    }
    true
}

macro_rules! sends {
    ($($(#[$page:meta])* $name:ident $mpi:literal $mode:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: the buffer holds `elements` elements until the request is complete, `request` is
        /// valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi, C: Count>(
            caller: *const c_void,
            buffer: *const c_void,
            elements: C,
            datatype: A::Datatype,
            to: c_int,
            tag: c_int,
            comm: A::Comm,
            request: *mut A::Request,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $mpi, comm, |call, communicator| {
                    call.output(request, "request")?;
                    let message =
                        Outgoing::check(call, communicator, buffer, elements, datatype, to, tag)?;
                    let leave = |poster: &mut Poster<'_>| message.leave(poster, SendMode::$mode);
                    if offload(call, (comm, communicator), message.bytes(), leave, request) {
                        return Ok(());
                    }
                    let claim = &mut call.rank().enter();
                    let started = message.start(claim, SendMode::$mode).map_err(engine_error)?;
                    publish(call, claim, started, comm, request)
                })
            }
        }
    )*};
}

sends! {
    /// `MPI_Isend`.
    isend "MPI_Isend" Standard;
    /// `MPI_Issend`.
    issend "MPI_Issend" Synchronous;
    /// `MPI_Irsend`.
    irsend "MPI_Irsend" Ready;
}

/// `MPI_Ibsend`.
///
/// # Safety
/// MPI's: the buffer holds `elements` elements, `request` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn ibsend<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *const c_void,
    elements: C,
    datatype: A::Datatype,
    to: c_int,
    tag: c_int,
    comm: A::Comm,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Ibsend", comm, |call, communicator| {
            call.output(request, "request")?;
            let message = Outgoing::check(call, communicator, buffer, elements, datatype, to, tag)?;
            let claim = &mut call.rank().enter();
            let owners = Owners::of(comm.neutral(), communicator);
            post_buffered(call.pending(), claim, owners, &message)?;
            // The copy is the runtime's, so the program's operation is already complete.
            let done = RequestRef::completed(claim, Status::EMPTY).ok_or(neutral::ERR_NO_MEM)?;
            publish(call, claim, done, comm, request)
        })
    }
}

/// `MPI_Irecv`.
///
/// # Safety
/// MPI's: the buffer takes `elements` elements and is not touched until the request is complete,
/// `request` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn irecv<A: Abi, C: Count>(
    caller: *const c_void,
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
        on_comm::<A>(caller, "MPI_Irecv", comm, |call, communicator| {
            call.output(request, "request")?;
            let message =
                Incoming::check(call, communicator, buffer, elements, datatype, from, tag)?;
            let leave = |poster: &mut Poster<'_>| message.leave(poster);
            if offload(call, (comm, communicator), message.bytes(), leave, request) {
                return Ok(());
            }
            let claim = &mut call.rank().enter();
            if let Some(status) = message.receive_now(claim) {
                return publish_received(call, claim, &status, comm, request);
            }
            let started = message.start(claim).map_err(engine_error)?;
            leave_behind(claim, started, communicator.progress.get());
            publish(call, claim, started, comm, request)
        })
    }
}

//! Persistent operations (MPI-4.1 sections 3.9 and 6.13).

use super::completion::{State, live};
use crate::arguments::{Call, Comm, Outcome, engine_error, length, on_comm, on_process};
use crate::coll::Repeated;
use crate::p2p::{Incoming, Outgoing, Owners, post_buffered};
use alloc::boxed::Box;
use cohort_abi::{Abi, Count, Handle, Kind, dynamic, neutral};
use cohort_engine::offload::Poster;
use cohort_engine::watch::leave_behind;
use cohort_engine::{Claim, RequestRef, SendMode, Status};
use core::cell::Cell;
use core::ffi::{c_int, c_void};

/// What each start begins.
#[derive(Debug)]
pub enum Plan {
    /// A send; `SendMode::Buffered` copies the data at each start.
    Send(Outgoing, SendMode),
    /// A receive.
    Receive(Incoming),
    /// A collective operation.
    Collective(Repeated),
}

impl From<Repeated> for Plan {
    fn from(operation: Repeated) -> Self {
        Self::Collective(operation)
    }
}

/// A persistent operation.
#[derive(Debug)]
pub struct Persistent {
    plan: Plan,
    active: Cell<Option<RequestRef>>,
    /// Neutral handle of the communicator.
    pub comm: u32,
    /// Whose buffers a buffered send uses.
    owners: Owners,
}

impl Persistent {
    /// The operation under way, if it is started and not yet completed.
    #[inline]
    pub fn active(&self) -> Option<RequestRef> {
        self.active.get()
    }

    /// Whether it is a collective.
    pub fn is_collective(&self) -> bool {
        matches!(self.plan, Plan::Collective(_))
    }

    /// Makes the operation inactive; one that is under way goes on by itself.
    pub fn deactivate(&self, claim: &mut Claim<'_>) {
        if let Some(request) = self.active.take() {
            request.release(claim);
        }
    }

    /// Starts the operation.
    ///
    /// # Safety
    /// The buffers that it was made with are still there.
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` if it is active, `MPI_ERR_BUFFER`, no memory.
    unsafe fn start<A: Abi>(&self, call: &Call<'_, A>) -> Outcome<()> {
        if self.active().is_some() {
            return Err(neutral::ERR_REQUEST);
        }
        let enter = || call.rank().enter();
        // The program may have freed the communicator meanwhile.
        let progress = || match call.objects().comm(self.comm) {
            Ok(comm) => comm.progress.get(),
            Err(_) => call.rank().progress(),
        };
        // SAFETY: the caller's contract.
        let request = unsafe {
            match &self.plan {
                Plan::Send(message, SendMode::Buffered) => {
                    let claim = &mut enter();
                    post_buffered(call.pending(), claim, self.owners, message)?;
                    RequestRef::completed(claim, Status::EMPTY).ok_or(neutral::ERR_NO_MEM)?
                }
                Plan::Send(message, mode) => {
                    let poster = Poster::of(call.rank(), message.bytes(), progress);
                    match poster.and_then(|mut poster| message.leave(&mut poster, *mode)) {
                        Some(request) => request,
                        None => message.start(&mut enter(), *mode).map_err(engine_error)?,
                    }
                }
                Plan::Receive(message) => {
                    let poster = Poster::of(call.rank(), message.bytes(), progress);
                    match poster.and_then(|mut poster| message.leave(&mut poster)) {
                        Some(request) => request,
                        None => {
                            let claim = &mut enter();
                            let started = message.start(claim).map_err(engine_error)?;
                            leave_behind(claim, started, progress());
                            started
                        }
                    }
                }
                Plan::Collective(operation) => operation.start()?,
            }
        };
        self.active.set(Some(request));
        Ok(())
    }
}

/// Gives the program a handle of an inactive operation.
///
/// # Safety
/// `target` is valid for writes.
///
/// # Errors
/// No handle is left.
pub unsafe fn publish_persistent<A: Abi>(
    call: &Call<'_, A>,
    plan: Plan,
    comm: A::Comm,
    communicator: &Comm,
    target: *mut A::Request,
) -> Outcome<()> {
    let operation = Persistent {
        plan,
        active: Cell::new(None),
        comm: comm.neutral(),
        owners: Owners::of(comm.neutral(), communicator),
    };
    let state = State::Persistent(Box::new(operation));
    let index = call
        .pending()
        .requests
        .insert(&mut call.rank().enter(), state)
        .ok_or(neutral::ERR_NO_MEM)?;
    // SAFETY: the caller's contract.
    unsafe { target.write(A::Request::from_neutral(dynamic(Kind::Request, index))) };
    Ok(())
}

macro_rules! sends {
    ($($(#[$page:meta])* $name:ident $mpi:literal $mode:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: the buffer outlives the request, `request` is valid for writes; `caller` is the
        /// calling rank.
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
                    publish_persistent(call, Plan::Send(message, SendMode::$mode), comm, communicator, request)
                })
            }
        }
    )*};
}

sends! {
    /// `MPI_Send_init`.
    send_init "MPI_Send_init" Standard;
    /// `MPI_Ssend_init`.
    ssend_init "MPI_Ssend_init" Synchronous;
    /// `MPI_Rsend_init`.
    rsend_init "MPI_Rsend_init" Ready;
    /// `MPI_Bsend_init`.
    bsend_init "MPI_Bsend_init" Buffered;
}

/// `MPI_Recv_init`.
///
/// # Safety
/// MPI's: the buffer outlives the request, `request` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn recv_init<A: Abi, C: Count>(
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
        on_comm::<A>(caller, "MPI_Recv_init", comm, |call, communicator| {
            call.output(request, "request")?;
            let message =
                Incoming::check(call, communicator, buffer, elements, datatype, from, tag)?;
            publish_persistent(call, Plan::Receive(message), comm, communicator, request)
        })
    }
}

/// Starts the operation of one handle.
///
/// # Safety
/// Of [`Persistent::start`]; no other thread uses the handle.
unsafe fn start_one<A: Abi>(call: &Call<'_, A>, handle: A::Request) -> Outcome<()> {
    // SAFETY: the caller's contract.
    unsafe {
        match live(call, handle)?.map(|request| request.state()) {
            Some(State::Persistent(operation)) => operation.start(call),
            Some(State::Partitioned(operation)) => operation.start(),
            _ => Err(neutral::ERR_REQUEST),
        }
    }
}

/// `MPI_Start`.
///
/// # Safety
/// MPI's: `request` is valid; `caller` is the calling rank.
pub unsafe extern "C" fn start<A: Abi>(caller: *const c_void, request: *mut A::Request) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Start", |call| {
            call.output(request, "request")?;
            start_one(call, *request)
        })
    }
}

/// `MPI_Startall`.
///
/// # Safety
/// MPI's: `requests` has `count` entries; `caller` is the calling rank.
pub unsafe extern "C" fn startall<A: Abi>(
    caller: *const c_void,
    count: c_int,
    requests: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Startall", |call| {
            let count = length(count)?;
            if count > 0 {
                call.output(requests, "array_of_requests")?;
            }
            (0..count).try_for_each(|entry| start_one(call, *requests.add(entry)))
        })
    }
}

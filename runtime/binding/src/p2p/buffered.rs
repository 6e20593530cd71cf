//! Buffered mode (MPI-4.1 section 3.6): `MPI_Buffer_attach` and its like for communicators
//! and sessions.
//!
//! A buffered send copies the data to the rank's own heap, from where any task can send it. The
//! program's buffer is only a budget: a send for which it would be too small is
//! refused, as the standard asks, and the bytes are given back when the message has left.

use super::message::Outgoing;
use crate::arguments::{Call, Outcome, engine_error};
use crate::process::buffers::{BufferPool, Buffered, Departure, Owners, PROCESS, forget_departure};
use crate::process::pending::Pending;
use crate::process::requests::{RequestKind, Rest};
use crate::request::publish_kind;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::parameters::{Base, Out};
use cohort_abi::{Abi, Constants, Count, Handle, Status, neutral};
use cohort_engine::wait::until;
use cohort_engine::{Claim, Rank};
use cohort_object::blame;
use core::ffi::c_void;
use neutral::handle::COMM_SELF;

/// Sends a copy of the data of `message`.
///
/// # Errors
/// `MPI_ERR_BUFFER` when no buffer is attached or too little of it is free; no memory.
pub fn post_buffered(pending: &Pending, claim: &mut Claim<'_>, owners: Owners, message: &Outgoing) -> Outcome<()> {
    if message.to.is_none() {
        return Ok(());
    }
    let bytes = message.bytes();
    let Some(pool) = pending.buffers(claim).first_of(owners) else {
        let what = format_args!("no buffer is attached; see MPI_Buffer_attach");
        return Err(blame(neutral::ERR_BUFFER, what));
    };
    let used = pool.used(claim);
    if let Some(free) = pool.size.map(|size| size - used.min(size))
        && free < bytes
    {
        let what = format_args!("{bytes} bytes to send, {free} free in the attached buffer");
        return Err(blame(neutral::ERR_BUFFER, what));
    }
    let request = message.start_copy(claim).map_err(engine_error)?;
    if request.is_complete() {
        request.release(claim);
    } else {
        let departure = Arc::new(request);
        pool.sends.push(Buffered { departure, bytes, session: owners.session });
    }
    Ok(())
}

/// The messages of a buffer that have not left.
fn departures<A: Abi>(call: &Call<'_, A>, owner: u32) -> Outcome<Vec<Departure>> {
    let claim = &mut call.rank().enter();
    let Some(pool) = call.pending().buffers(claim).of(owner) else {
        return Err(neutral::ERR_BUFFER.into());
    };
    pool.used(claim);
    let sends = pool.sends.iter();
    Ok(sends.map(|send| send.departure.clone()).collect())
}

/// Waits until all messages of a buffer have left.
fn drain<A: Abi>(call: &Call<'_, A>, owner: u32) -> Outcome<()> {
    await_all(call, departures(call, owner)?);
    Ok(())
}

/// Waits until all of these have left.
fn await_all<A: Abi>(call: &Call<'_, A>, sends: Vec<Departure>) {
    for departure in &sends {
        until(call.owner(), &**departure, || departure.is_complete());
    }
    let claim = &mut call.rank().enter();
    for departure in sends {
        forget_departure(departure, claim);
    }
}

/// Whose buffered messages are to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All: the process ends its last use of MPI.
    Everybody,
    /// Those of communicators of the session with this neutral handle, or of none: what else the process uses goes on.
    Session(u32),
}

impl Whose {
    /// Those of communicators without a session.
    pub const NO_SESSION: Self = Self::Session(PROCESS);
}

/// Waits until messages of all buffers have left, as the end of a use of MPI must.
pub fn flush_buffers<A: Abi>(call: &Call<'_, A>, whose: Whose) {
    let sends = {
        let claim = &mut call.rank().enter();
        let sends = call.pending().buffers(claim).0.iter().flat_map(|pool| &pool.sends);
        let sends = sends.filter(|send| whose == Whose::Everybody || whose == Whose::Session(send.session));
        sends.map(|send| send.departure.clone()).collect()
    };
    await_all(call, sends);
}

/// Detaches the buffer of an object that ends, if it has one, after all its messages have left.
pub fn forget_buffer<A: Abi>(call: &Call<'_, A>, owner: u32) {
    if drain(call, owner).is_ok() {
        let claim = &mut call.rank().enter();
        let pools = &mut call.pending().buffers(claim).0;
        pools.retain(|pool| pool.owner != owner);
    }
}

fn attach_to<A: Abi, C: Count>(call: &Call<'_, A>, owner: u32, address: Base, size: C) -> Outcome<()> {
    let automatic = address.addr() == <A as Constants>::BUFFER_AUTOMATIC;
    let size = match u64::try_from(size.to_i64()) {
        _ if automatic => None,
        Ok(size) => Some(size),
        Err(_) => return Err(neutral::ERR_ARG.into()),
    };
    let claim = &mut call.rank().enter();
    let pools = call.pending().buffers(claim);
    if pools.of(owner).is_some() {
        return Err(neutral::ERR_BUFFER.into());
    }
    pools.0.push(BufferPool { owner, address: address.as_ptr(), size, sends: Vec::new() });
    Ok(())
}

fn detach_from<A: Abi, C: Count>(
    call: &Call<'_, A>,
    owner: u32,
    address: Out<'_, *mut c_void>,
    size: Out<'_, C>,
) -> Outcome<()> {
    let address = call.output(address, "buffer_addr")?;
    let size = call.output(size, "size")?;
    drain(call, owner)?;
    let claim = &mut call.rank().enter();
    let pools = &mut call.pending().buffers(claim).0;
    let place = pools.iter().position(|pool| pool.owner == owner).ok_or(neutral::ERR_BUFFER)?;
    // A buffer whose size the program cannot be told stays: it is to ask with a longer count.
    let bytes = pools[place].size.unwrap_or(0) as i64;
    let bytes = C::from_i64(bytes).ok_or_else(|| {
        let what = format_args!("the buffer has {bytes} bytes, more than an int can say");
        call.blame(neutral::ERR_ARG, what)
    })?;
    address.write(pools.swap_remove(place).address);
    size.write(bytes);
    Ok(())
}

/// Messages in an attached buffer (`MPI_Buffer_iflush`): those that had not left.
#[derive(Debug)]
struct Flush {
    departures: Vec<Departure>,
    /// Neutral handle of the communicator whose error handler hears of failures.
    comm: u32,
}

impl RequestKind for Flush {
    fn comm(&self) -> u32 {
        self.comm
    }

    fn is_complete(&self) -> bool {
        self.departures.iter().all(|it| it.is_complete())
    }

    fn status(&self) -> Status {
        Status::EMPTY
    }

    fn end(&self, _rank: &Rank) -> Rest {
        Rest::Nothing(neutral::SUCCESS)
    }

    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        let departures = self.departures.into_iter();
        departures.for_each(|departure| forget_departure(departure, claim));
    }

    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        Ok(neutral::SUCCESS)
    }

    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        let what = format_args!("a flush of a buffer cannot be cancelled");
        Err(blame(neutral::ERR_REQUEST, what))
    }
}

/// Gives the program a request that is complete when all messages which are in the buffer now have
/// left. `listener` is the communicator whose error handler hears of failures.
fn iflush_of<A: Abi>(call: &Call<'_, A>, owner: u32, listener: u32, request: Out<'_, A::Request>) -> Outcome<()> {
    let request = call.output(request, "request")?;
    let flush = Flush { departures: departures(call, owner)?, comm: listener };
    publish_kind(call, flush, request)
}

/// `MPI_Buffer_attach`.
pub fn attach<A: Abi, C: Count>(call: &Call<'_, A>, address: Base, size: C) -> Outcome<()> {
    attach_to(call, PROCESS, address, size)
}

/// `MPI_Buffer_detach`: waits until all buffered messages have left.
pub fn detach<A: Abi, C: Count>(call: &Call<'_, A>, address: Out<'_, *mut c_void>, size: Out<'_, C>) -> Outcome<()> {
    detach_from(call, PROCESS, address, size)
}

/// `MPI_Buffer_flush`.
pub fn flush<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    drain(call, PROCESS)
}

/// `MPI_Buffer_iflush`.
pub fn iflush<A: Abi>(call: &Call<'_, A>, request: Out<'_, A::Request>) -> Outcome<()> {
    iflush_of(call, PROCESS, COMM_SELF, request)
}

/// `MPI_Comm_attach_buffer`.
pub fn comm_attach<A: Abi, C: Count>(call: &Call<'_, A>, comm: A::Comm, address: Base, size: C) -> Outcome<()> {
    call.on_comm(comm)?;
    attach_to(call, comm.neutral(), address, size)
}

/// `MPI_Comm_detach_buffer`.
pub fn comm_detach<A: Abi, C: Count>(
    call: &Call<'_, A>,
    comm: A::Comm,
    address: Out<'_, *mut c_void>,
    size: Out<'_, C>,
) -> Outcome<()> {
    call.on_comm(comm)?;
    detach_from(call, comm.neutral(), address, size)
}

/// `MPI_Comm_flush_buffer`.
pub fn comm_flush<A: Abi>(call: &Call<'_, A>, comm: A::Comm) -> Outcome<()> {
    call.on_comm(comm)?;
    drain(call, comm.neutral())
}

/// `MPI_Comm_iflush_buffer`.
pub fn comm_iflush<A: Abi>(call: &Call<'_, A>, comm: A::Comm, request: Out<'_, A::Request>) -> Outcome<()> {
    call.on_comm(comm)?;
    iflush_of(call, comm.neutral(), comm.neutral(), request)
}

/// `MPI_Session_attach_buffer`.
pub fn session_attach<A: Abi, C: Count>(
    call: &Call<'_, A>,
    session: A::Session,
    address: Base,
    size: C,
) -> Outcome<()> {
    call.on_session(session)?;
    attach_to(call, session.neutral(), address, size)
}

/// `MPI_Session_detach_buffer`.
pub fn session_detach<A: Abi, C: Count>(
    call: &Call<'_, A>,
    session: A::Session,
    address: Out<'_, *mut c_void>,
    size: Out<'_, C>,
) -> Outcome<()> {
    call.on_session(session)?;
    detach_from(call, session.neutral(), address, size)
}

/// `MPI_Session_flush_buffer`.
pub fn session_flush<A: Abi>(call: &Call<'_, A>, session: A::Session) -> Outcome<()> {
    call.on_session(session)?;
    drain(call, session.neutral())
}

/// `MPI_Session_iflush_buffer`.
pub fn session_iflush<A: Abi>(call: &Call<'_, A>, session: A::Session, request: Out<'_, A::Request>) -> Outcome<()> {
    call.on_session(session)?;
    iflush_of(call, session.neutral(), COMM_SELF, request)
}

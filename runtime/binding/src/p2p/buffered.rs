//! Buffered mode (MPI-4.1 section 3.6): `MPI_Buffer_attach` and its like for communicators
//! and sessions.
//!
//! A buffered send copies the data to the rank's own heap, from where any task can send it. The
//! program's buffer is only a budget: a send for which it would be too small is
//! refused, as the standard asks, and the bytes are given back when the message has left.

use super::message::Outgoing;
use crate::arguments::{Call, Comm, Outcome, engine_error, on_comm, on_process, on_session};
use crate::context::blame;
use crate::pending::Pending;
use crate::request::State;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::{Abi, Constants, Count, Handle, Kind, dynamic, neutral};
use cohort_engine::wait::{WaitKind, until};
use cohort_engine::{Claim, RequestRef};
use core::ffi::{c_int, c_void};
use neutral::handle::COMM_SELF;

/// The owner of the buffer that sends on any communicator may use.
const PROCESS: u32 = 0;

/// Whose buffers a send on a communicator may use: the communicator's own, else that of the
/// session it is derived from, else the process's (MPI-4.1, 3.6).
#[derive(Clone, Copy, Debug)]
pub struct Owners {
    /// Neutral handle of the communicator.
    comm: u32,
    /// Neutral handle of the session, or [`PROCESS`].
    session: u32,
}

impl Owners {
    /// Those of a communicator with this neutral handle.
    pub fn of(handle: u32, comm: &Comm) -> Self {
        Self {
            comm: handle,
            session: comm.group().session(),
        }
    }
}

/// A message in a buffer that has not left; the last one who looks at it gives the request back.
pub type Departure = Arc<RequestRef>;

/// Forgets a departure.
pub fn forget_departure(departure: Departure, claim: &mut Claim<'_>) {
    if let Some(request) = Arc::into_inner(departure) {
        request.release(claim);
    }
}

/// One attached buffer.
#[derive(Debug)]
struct BufferPool {
    /// Neutral handle of a communicator or session, or [`PROCESS`].
    owner: u32,
    address: *mut c_void,
    /// Bytes; `None` is `MPI_BUFFER_AUTOMATIC`.
    size: Option<u64>,
    /// Messages that have not left, and their bytes.
    sends: Vec<(Departure, u64)>,
}

/// The attached buffers of one rank; touched only under its claim.
#[derive(Debug, Default)]
pub struct BufferPools(Vec<BufferPool>);

impl BufferPools {
    fn of(&mut self, owner: u32) -> Option<&mut BufferPool> {
        self.0.iter_mut().find(|pool| pool.owner == owner)
    }

    /// The buffer that a send uses.
    fn first_of(&mut self, owners: Owners) -> Option<&mut BufferPool> {
        let candidates = [owners.comm, owners.session, PROCESS];
        let owner = candidates
            .into_iter()
            .find(|&owner| self.0.iter().any(|pool| pool.owner == owner))?;
        self.of(owner)
    }
}

impl BufferPool {
    /// Forgets messages that have left, and says how many bytes the others take.
    fn used(&mut self, claim: &mut Claim<'_>) -> u64 {
        let left = self
            .sends
            .extract_if(.., |(departure, _)| departure.is_complete());
        left.for_each(|(departure, _)| forget_departure(departure, claim));
        self.sends.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Sends a copy of the data of `message`.
///
/// # Safety
/// The message's buffer is readable.
///
/// # Errors
/// `MPI_ERR_BUFFER` when no buffer is attached or too little of it is free; no memory.
pub unsafe fn post_buffered(
    pending: &Pending,
    claim: &mut Claim<'_>,
    owners: Owners,
    message: &Outgoing,
) -> Outcome<()> {
    if message.to.is_none() {
        return Ok(());
    }
    let (bytes, rank) = (message.bytes(), claim.rank());
    let Some(pool) = pending.buffers(claim).first_of(owners) else {
        let what = format_args!("no buffer is attached; see MPI_Buffer_attach");
        return Err(blame(rank, neutral::ERR_BUFFER, what));
    };
    let used = pool.used(claim);
    if let Some(free) = pool.size.map(|size| size - used.min(size))
        && free < bytes
    {
        let what = format_args!("{bytes} bytes to send, {free} free in the attached buffer");
        return Err(blame(rank, neutral::ERR_BUFFER, what));
    }
    // SAFETY: the caller's contract.
    let request = unsafe { message.start_copy(claim) }.map_err(engine_error)?;
    if request.is_complete() {
        request.release(claim);
    } else {
        pool.sends.push((Arc::new(request), bytes));
    }
    Ok(())
}

/// The messages of a buffer that have not left.
fn departures<A: Abi>(call: &Call<'_, A>, owner: u32) -> Outcome<Vec<Departure>> {
    let claim = &mut call.rank().enter();
    let Some(pool) = call.pending().buffers(claim).of(owner) else {
        return Err(neutral::ERR_BUFFER);
    };
    pool.used(claim);
    let sends = pool.sends.iter();
    Ok(sends.map(|(departure, _)| departure.clone()).collect())
}

/// Waits until all messages of a buffer have left.
fn drain<A: Abi>(call: &Call<'_, A>, owner: u32) -> Outcome<()> {
    let sends = departures(call, owner)?;
    let all_left = || sends.iter().all(|departure| departure.is_complete());
    if !all_left() {
        until(call.owner(), WaitKind::Request, all_left);
    }
    let claim = &mut call.rank().enter();
    for departure in sends {
        forget_departure(departure, claim);
    }
    Ok(())
}

/// Waits until all messages of all buffers have left, as `MPI_Finalize` must.
///
/// # Errors
/// None; the type is that of the other steps of `MPI_Finalize`.
pub fn flush_buffers<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    let owners: Vec<u32> = {
        let claim = &mut call.rank().enter();
        let pools = &call.pending().buffers(claim).0;
        pools.iter().map(|pool| pool.owner).collect()
    };
    owners.into_iter().try_for_each(|owner| drain(call, owner))
}

/// Detaches the buffer of an object that ends, if it has one, after all its messages have left.
pub fn forget_buffer<A: Abi>(call: &Call<'_, A>, owner: u32) {
    if drain(call, owner).is_ok() {
        let claim = &mut call.rank().enter();
        let pools = &mut call.pending().buffers(claim).0;
        pools.retain(|pool| pool.owner != owner);
    }
}

fn attach_to<A: Abi, C: Count>(
    call: &Call<'_, A>,
    owner: u32,
    address: *mut c_void,
    size: C,
) -> Outcome<()> {
    let automatic = address.addr() == <A as Constants>::BUFFER_AUTOMATIC;
    let size = match u64::try_from(size.to_i64()) {
        _ if automatic => None,
        Ok(size) => Some(size),
        Err(_) => return Err(neutral::ERR_ARG),
    };
    let claim = &mut call.rank().enter();
    let pools = call.pending().buffers(claim);
    if pools.of(owner).is_some() {
        return Err(neutral::ERR_BUFFER);
    }
    pools.0.push(BufferPool {
        owner,
        address,
        size,
        sends: Vec::new(),
    });
    Ok(())
}

/// # Safety
/// `address` is valid for writes of a pointer, `size` of a count.
unsafe fn detach_from<A: Abi, C: Count>(
    call: &Call<'_, A>,
    owner: u32,
    address: *mut c_void,
    size: *mut C,
) -> Outcome<()> {
    call.output(address, "buffer_addr")?;
    call.output(size, "size")?;
    drain(call, owner)?;
    let claim = &mut call.rank().enter();
    let pools = &mut call.pending().buffers(claim).0;
    let place = pools
        .iter()
        .position(|pool| pool.owner == owner)
        .ok_or(neutral::ERR_BUFFER)?;
    let pool = pools.swap_remove(place);
    let bytes = C::from_i64(pool.size.unwrap_or(0) as i64).ok_or(neutral::ERR_ARG)?;
    // SAFETY: the caller's contract.
    unsafe {
        address.cast::<*mut c_void>().write(pool.address);
        size.write(bytes);
    }
    Ok(())
}

/// Gives the program a request that is complete when all messages which are in the buffer now have
/// left. `listener` is the communicator whose error handler hears of failures.
///
/// # Safety
/// `request` is valid for writes.
unsafe fn iflush_of<A: Abi>(
    call: &Call<'_, A>,
    owner: u32,
    listener: u32,
    request: *mut A::Request,
) -> Outcome<()> {
    call.output(request, "request")?;
    let state = State::Flush {
        departures: departures(call, owner)?,
        comm: listener,
    };
    let claim = &mut call.rank().enter();
    let index = call.pending().requests.insert(claim, state);
    let index = index.ok_or(neutral::ERR_NO_MEM)?;
    // SAFETY: the caller's contract.
    unsafe { request.write(A::Request::from_neutral(dynamic(Kind::Request, index))) };
    Ok(())
}

/// `MPI_Buffer_attach`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn attach<A: Abi, C: Count>(
    caller: *const c_void,
    address: *mut c_void,
    size: C,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Buffer_attach", |call| {
            attach_to(call, PROCESS, address, size)
        })
    }
}

/// `MPI_Buffer_detach`: waits until all buffered messages have left.
///
/// # Safety
/// MPI's: `address` is the address of a pointer, `size` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn detach<A: Abi, C: Count>(
    caller: *const c_void,
    address: *mut c_void,
    size: *mut C,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Buffer_detach", |call| {
            detach_from(call, PROCESS, address, size)
        })
    }
}

/// `MPI_Buffer_flush`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn flush<A: Abi>(caller: *const c_void) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { on_process::<A>(caller, "MPI_Buffer_flush", |call| drain(call, PROCESS)) }
}

/// `MPI_Buffer_iflush`.
///
/// # Safety
/// MPI's: `request` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn iflush<A: Abi>(caller: *const c_void, request: *mut A::Request) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Buffer_iflush", |call| {
            iflush_of(call, PROCESS, COMM_SELF, request)
        })
    }
}

/// `MPI_Comm_attach_buffer`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn comm_attach<A: Abi, C: Count>(
    caller: *const c_void,
    comm: A::Comm,
    address: *mut c_void,
    size: C,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_attach_buffer", comm, |call, _| {
            attach_to(call, comm.neutral(), address, size)
        })
    }
}

/// `MPI_Comm_detach_buffer`.
///
/// # Safety
/// MPI's: `address` is the address of a pointer, `size` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn comm_detach<A: Abi, C: Count>(
    caller: *const c_void,
    comm: A::Comm,
    address: *mut c_void,
    size: *mut C,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_detach_buffer", comm, |call, _| {
            detach_from(call, comm.neutral(), address, size)
        })
    }
}

/// `MPI_Comm_flush_buffer`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn comm_flush<A: Abi>(caller: *const c_void, comm: A::Comm) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_flush_buffer", comm, |call, _| {
            drain(call, comm.neutral())
        })
    }
}

/// `MPI_Comm_iflush_buffer`.
///
/// # Safety
/// MPI's: `request` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn comm_iflush<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_iflush_buffer", comm, |call, _| {
            iflush_of(call, comm.neutral(), comm.neutral(), request)
        })
    }
}

/// `MPI_Session_attach_buffer`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn session_attach<A: Abi, C: Count>(
    caller: *const c_void,
    session: A::Session,
    address: *mut c_void,
    size: C,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Session_attach_buffer", session, |call, _| {
            attach_to(call, session.neutral(), address, size)
        })
    }
}

/// `MPI_Session_detach_buffer`.
///
/// # Safety
/// MPI's: `address` is the address of a pointer, `size` is valid for writes; `caller` is the
/// calling rank.
pub unsafe extern "C" fn session_detach<A: Abi, C: Count>(
    caller: *const c_void,
    session: A::Session,
    address: *mut c_void,
    size: *mut C,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Session_detach_buffer", session, |call, _| {
            detach_from(call, session.neutral(), address, size)
        })
    }
}

/// `MPI_Session_flush_buffer`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn session_flush<A: Abi>(
    caller: *const c_void,
    session: A::Session,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Session_flush_buffer", session, |call, _| {
            drain(call, session.neutral())
        })
    }
}

/// `MPI_Session_iflush_buffer`.
///
/// # Safety
/// MPI's: `request` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn session_iflush<A: Abi>(
    caller: *const c_void,
    session: A::Session,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_session::<A>(caller, "MPI_Session_iflush_buffer", session, |call, _| {
            iflush_of(call, session.neutral(), COMM_SELF, request)
        })
    }
}

//! Buffered mode (MPI-4.1 section 3.6): `MPI_Buffer_attach` and its like for communicators.
//!
//! A buffered send copies the data to the rank's own heap, from where any task can send it. The
//! program's buffer is only a budget: a send for which it would be too small is
//! refused, as the standard asks, and the bytes are given back when the message has left.

use super::message::Outgoing;
use crate::arguments::{Call, Outcome, engine_error, on_comm, on_process, output};
use crate::pending::Pending;
use crate::request::publish_complete;
use alloc::vec::Vec;
use cohort_abi::{Abi, Constants, Count, Handle, neutral};
use cohort_engine::wait::{WaitKind, until};
use cohort_engine::{Claim, RequestRef};
use core::ffi::{c_int, c_void};

/// The owner of the buffer that sends on any communicator may use.
const PROCESS: u32 = 0;

/// One attached buffer.
#[derive(Debug)]
struct BufferPool {
    /// Neutral handle of a communicator, or [`PROCESS`].
    owner: u32,
    address: *mut c_void,
    /// Bytes; `None` is `MPI_BUFFER_AUTOMATIC`.
    size: Option<u64>,
    /// Messages that have not left, and their bytes.
    sends: Vec<(RequestRef, u64)>,
}

/// The attached buffers of one rank; touched only under its claim.
#[derive(Debug, Default)]
pub struct BufferPools(Vec<BufferPool>);

impl BufferPools {
    fn of(&mut self, owner: u32) -> Option<&mut BufferPool> {
        self.0.iter_mut().find(|pool| pool.owner == owner)
    }
}

impl BufferPool {
    /// Forgets messages that have left, and says how many bytes the others take.
    fn used(&mut self, claim: &mut Claim<'_>) -> u64 {
        self.sends.retain(|(request, _)| {
            let complete = request.is_complete();
            if complete {
                request.release(claim);
            }
            !complete
        });
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
    comm: u32,
    message: &Outgoing,
) -> Outcome<()> {
    if message.to.is_none() {
        return Ok(());
    }
    let bytes = message.bytes();
    let pools = pending.buffers(claim);
    let owner = if pools.of(comm).is_some() {
        comm
    } else {
        PROCESS
    };
    let pool = pools.of(owner).ok_or(neutral::ERR_BUFFER)?;
    let used = pool.used(claim);
    if pool.size.is_some_and(|size| size - used.min(size) < bytes) {
        return Err(neutral::ERR_BUFFER);
    }
    // SAFETY: the caller's contract.
    let request = unsafe { message.start_copy(claim) };
    pool.sends.push((request.map_err(engine_error)?, bytes));
    Ok(())
}

/// Waits until all messages of a buffer have left.
fn drain<A: Abi>(call: &Call<'_, A>, owner: u32) -> Outcome<()> {
    let sends = {
        let claim = &mut call.rank().enter();
        let pool = call
            .pending()
            .buffers(claim)
            .of(owner)
            .ok_or(neutral::ERR_BUFFER)?;
        core::mem::take(&mut pool.sends)
    };
    let all_left = || sends.iter().all(|(request, _)| request.is_complete());
    if !all_left() {
        until(call.rank(), WaitKind::Request, all_left);
    }
    let claim = &mut call.rank().enter();
    sends.iter().for_each(|(request, _)| request.release(claim));
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
    output(address)?;
    output(size)?;
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

/// The nonblocking flushes: nothing of the program's waits for them, so they wait at once.
///
/// # Safety
/// `request` is valid for writes.
unsafe fn iflush_of<A: Abi>(
    call: &Call<'_, A>,
    owner: u32,
    request: *mut A::Request,
) -> Outcome<()> {
    output(request)?;
    drain(call, owner)?;
    let comm = if owner == PROCESS {
        neutral::handle::COMM_SELF
    } else {
        owner
    };
    // SAFETY: the caller's contract.
    unsafe { publish_complete(call, comm, request) }
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
            iflush_of(call, PROCESS, request)
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
            iflush_of(call, comm.neutral(), request)
        })
    }
}

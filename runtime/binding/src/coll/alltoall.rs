//! `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw` (MPI-4.1 section 6.8).

use super::inter;
use super::parts::{Part, Typed, Varying, failure, in_place};
use crate::arguments::on_comm;
use cohort_abi::{Abi, Count};
use cohort_engine::coll;
use core::ffi::{c_int, c_void};

/// `MPI_Alltoall`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn alltoall<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_elements: C,
    send_type: A::Datatype,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Alltoall", comm, |call, comm| {
            let send = match in_place::<A>(send_buffer) {
                true => None,
                false => Some(Part::check(call, send_buffer, send_elements, send_type)?),
            };
            let receive = Part::check(call, buffer, elements, datatype)?;
            if let Some(inter) = comm.inter() {
                return inter::alltoall(&inter, send, &receive);
            }
            let send = send.as_ref().map(Part::blocks);
            coll::alltoall(&comm.collective(), send, receive.blocks()).map_err(failure)
        })
    }
}

/// `MPI_Alltoallv`.
///
/// # Safety
/// MPI's: the buffers hold and take their blocks, the arrays have an entry for each member; `caller` is the
/// calling rank.
pub unsafe extern "C" fn alltoallv<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_counts: *const C,
    send_displacements: *const C::Displacement,
    send_type: A::Datatype,
    buffer: *mut c_void,
    counts: *const C,
    displacements: *const C::Displacement,
    datatype: A::Datatype,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Alltoallv", comm, |call, comm| {
            let send = match in_place::<A>(send_buffer) {
                true => None,
                false => Some(Varying::check::<A, C>(
                    call,
                    send_buffer,
                    send_counts,
                    send_displacements,
                    send_type,
                    comm.peers().size() as usize,
                )?),
            };
            let receive = Varying::check::<A, C>(
                call,
                buffer,
                counts,
                displacements,
                datatype,
                comm.peers().size() as usize,
            )?;
            if let Some(inter) = comm.inter() {
                return inter::alltoall(&inter, send, &receive);
            }
            let send = send.as_ref().map(Varying::blocks);
            coll::alltoall(&comm.collective(), send, receive.blocks()).map_err(failure)
        })
    }
}

/// `MPI_Alltoallw`.
///
/// # Safety
/// MPI's: the buffers hold and take their blocks, the arrays have an entry for each member; `caller` is the
/// calling rank.
pub unsafe extern "C" fn alltoallw<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_counts: *const C,
    send_displacements: *const C::Displacement,
    send_types: *const A::Datatype,
    buffer: *mut c_void,
    counts: *const C,
    displacements: *const C::Displacement,
    datatypes: *const A::Datatype,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Alltoallw", comm, |call, comm| {
            let send = match in_place::<A>(send_buffer) {
                true => None,
                false => Some(Typed::check::<A, C>(
                    call,
                    send_buffer,
                    send_counts,
                    send_displacements,
                    send_types,
                    comm.peers().size() as usize,
                )?),
            };
            let receive = Typed::check::<A, C>(
                call,
                buffer,
                counts,
                displacements,
                datatypes,
                comm.peers().size() as usize,
            )?;
            if let Some(inter) = comm.inter() {
                return inter::alltoall(&inter, send, &receive);
            }
            let send = send.as_ref().map(Typed::blocks);
            coll::alltoall(&comm.collective(), send, receive.blocks()).map_err(failure)
        })
    }
}

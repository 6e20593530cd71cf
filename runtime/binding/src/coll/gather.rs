//! Collectives that move blocks to or from one member, or to all (MPI-4.1 sections 6.5 to 6.7).

use super::inter;
use super::parts::{Part, Varying, failure, in_place, root};
use crate::arguments::on_comm;
use cohort_abi::{Abi, Count};
use cohort_engine::coll;
use core::ffi::{c_int, c_void};

/// `MPI_Gather`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn gather<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_elements: C,
    send_type: A::Datatype,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    at: c_int,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Gather", comm, |call, comm| {
            if let Some(inter) = comm.inter() {
                let at = inter::root::<A>(&inter, at)?;
                return inter::gather(
                    &inter,
                    at,
                    || Part::check(call, send_buffer, send_elements, send_type),
                    || Part::check(call, buffer, elements, datatype),
                );
            }
            let group = comm.collective();
            let at = root::<A>(&group, at)?;
            if group.me != at {
                let send = Part::check(call, send_buffer, send_elements, send_type)?;
                return coll::gather(&group, Some(send.layout()), None, at).map_err(failure);
            }
            let send = match in_place::<A>(send_buffer) {
                true => None,
                false => Some(Part::check(call, send_buffer, send_elements, send_type)?),
            };
            let receive = Part::check(call, buffer, elements, datatype)?;
            let send = send.as_ref().map(Part::layout);
            coll::gather(&group, send, Some(receive.blocks()), at).map_err(failure)
        })
    }
}

/// `MPI_Gatherv`.
///
/// # Safety
/// MPI's: the buffers hold and take their blocks, the arrays have an entry for each member; `caller` is the
/// calling rank.
pub unsafe extern "C" fn gatherv<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_elements: C,
    send_type: A::Datatype,
    buffer: *mut c_void,
    counts: *const C,
    displacements: *const C::Displacement,
    datatype: A::Datatype,
    at: c_int,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Gatherv", comm, |call, comm| {
            if let Some(inter) = comm.inter() {
                let at = inter::root::<A>(&inter, at)?;
                return inter::gather(
                    &inter,
                    at,
                    || Part::check(call, send_buffer, send_elements, send_type),
                    || {
                        Varying::check::<A, C>(
                            call,
                            buffer,
                            counts,
                            displacements,
                            datatype,
                            inter.remote.len(),
                        )
                    },
                );
            }
            let group = comm.collective();
            let at = root::<A>(&group, at)?;
            if group.me != at {
                let send = Part::check(call, send_buffer, send_elements, send_type)?;
                return coll::gather(&group, Some(send.layout()), None, at).map_err(failure);
            }
            let send = match in_place::<A>(send_buffer) {
                true => None,
                false => Some(Part::check(call, send_buffer, send_elements, send_type)?),
            };
            let receive = Varying::check::<A, C>(
                call,
                buffer,
                counts,
                displacements,
                datatype,
                group.world.len(),
            )?;
            let send = send.as_ref().map(Part::layout);
            coll::gather(&group, send, Some(receive.blocks()), at).map_err(failure)
        })
    }
}

/// `MPI_Scatter`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn scatter<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_elements: C,
    send_type: A::Datatype,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    at: c_int,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Scatter", comm, |call, comm| {
            if let Some(inter) = comm.inter() {
                let at = inter::root::<A>(&inter, at)?;
                return inter::scatter(
                    &inter,
                    at,
                    || Part::check(call, send_buffer, send_elements, send_type),
                    || Part::check(call, buffer, elements, datatype),
                );
            }
            let group = comm.collective();
            let at = root::<A>(&group, at)?;
            if group.me != at {
                let receive = Part::check(call, buffer, elements, datatype)?;
                return coll::scatter(&group, None, Some(receive.layout()), at).map_err(failure);
            }
            let receive = match in_place::<A>(buffer) {
                true => None,
                false => Some(Part::check(call, buffer, elements, datatype)?),
            };
            let send = Part::check(call, send_buffer, send_elements, send_type)?;
            let receive = receive.as_ref().map(Part::layout);
            coll::scatter(&group, Some(send.blocks()), receive, at).map_err(failure)
        })
    }
}

/// `MPI_Scatterv`.
///
/// # Safety
/// MPI's: the buffers hold and take their blocks, the arrays have an entry for each member; `caller` is the
/// calling rank.
pub unsafe extern "C" fn scatterv<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_counts: *const C,
    send_displacements: *const C::Displacement,
    send_type: A::Datatype,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    at: c_int,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Scatterv", comm, |call, comm| {
            if let Some(inter) = comm.inter() {
                let at = inter::root::<A>(&inter, at)?;
                return inter::scatter(
                    &inter,
                    at,
                    || {
                        Varying::check::<A, C>(
                            call,
                            send_buffer,
                            send_counts,
                            send_displacements,
                            send_type,
                            inter.remote.len(),
                        )
                    },
                    || Part::check(call, buffer, elements, datatype),
                );
            }
            let group = comm.collective();
            let at = root::<A>(&group, at)?;
            if group.me != at {
                let receive = Part::check(call, buffer, elements, datatype)?;
                return coll::scatter(&group, None, Some(receive.layout()), at).map_err(failure);
            }
            let receive = match in_place::<A>(buffer) {
                true => None,
                false => Some(Part::check(call, buffer, elements, datatype)?),
            };
            let send = Varying::check::<A, C>(
                call,
                send_buffer,
                send_counts,
                send_displacements,
                send_type,
                group.world.len(),
            )?;
            let receive = receive.as_ref().map(Part::layout);
            coll::scatter(&group, Some(send.blocks()), receive, at).map_err(failure)
        })
    }
}

/// `MPI_Allgather`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn allgather<A: Abi, C: Count>(
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
        on_comm::<A>(caller, "MPI_Allgather", comm, |call, comm| {
            let send = match in_place::<A>(send_buffer) {
                true => None,
                false => Some(Part::check(call, send_buffer, send_elements, send_type)?),
            };
            let receive = Part::check(call, buffer, elements, datatype)?;
            if let Some(inter) = comm.inter() {
                return inter::allgather(&inter, send, &receive);
            }
            let send = send.as_ref().map(Part::layout);
            coll::allgather(&comm.collective(), send, receive.blocks()).map_err(failure)
        })
    }
}

/// `MPI_Allgatherv`.
///
/// # Safety
/// MPI's: the buffers hold and take their blocks, the arrays have an entry for each member; `caller` is the
/// calling rank.
pub unsafe extern "C" fn allgatherv<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    send_elements: C,
    send_type: A::Datatype,
    buffer: *mut c_void,
    counts: *const C,
    displacements: *const C::Displacement,
    datatype: A::Datatype,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Allgatherv", comm, |call, comm| {
            let send = match in_place::<A>(send_buffer) {
                true => None,
                false => Some(Part::check(call, send_buffer, send_elements, send_type)?),
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
                return inter::allgather(&inter, send, &receive);
            }
            let send = send.as_ref().map(Part::layout);
            coll::allgather(&comm.collective(), send, receive.blocks()).map_err(failure)
        })
    }
}

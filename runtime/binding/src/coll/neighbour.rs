//! Neighbourhood collectives (MPI-4.1 section 8.6): each member exchanges messages with its
//! neighbours of the communicator's topology.

use super::parts::{Part, Parts, Typed, Varying, failure};
use crate::arguments::{Call, Comm, Outcome, on_comm};
use cohort_abi::{Abi, Count, neutral};
use cohort_engine::coll::exchange::{Elements, Incoming, Outgoing};
use cohort_object::topology::Neighbours;
use core::ffi::{c_int, c_void};

/// The neighbours of the caller.
///
/// # Errors
/// `MPI_ERR_TOPOLOGY` without a topology.
fn neighbours<A: Abi>(call: &Call<'_, A>, comm: &Comm) -> Outcome<Neighbours> {
    match comm.topology() {
        Some(topology) => Ok(topology.neighbours(comm.me())),
        None => {
            let what = format_args!("the communicator has no topology");
            Err(call.blame(neutral::ERR_TOPOLOGY, what))
        }
    }
}

/// Tag of the messages of a lane; collectives have negative tags.
fn tag(lane: u32) -> i32 {
    -1 - lane as i32
}

/// The messages to all destinations; `part` is what goes to the neighbour with this number.
fn outgoing<'a>(
    comm: &'a Comm,
    all: &'a Neighbours,
    part: impl Fn(usize) -> Elements<'a> + 'a,
) -> impl Iterator<Item = Outgoing<'a>> {
    let numbered = all.destinations.iter().enumerate();
    numbered.filter_map(move |(number, neighbour)| {
        Some(Outgoing {
            to: comm.peer(neighbour.rank? as i32)?,
            tag: tag(neighbour.lane),
            data: part(number),
        })
    })
}

/// The messages from all sources.
fn incoming<'a>(
    comm: &'a Comm,
    all: &'a Neighbours,
    parts: &'a impl Parts,
) -> impl Iterator<Item = Incoming<'a>> {
    let numbered = all.sources.iter().enumerate();
    numbered.filter_map(move |(number, neighbour)| {
        let member = neighbour.rank?;
        Some(Incoming {
            from: comm.peer(member as i32)?,
            member,
            tag: tag(neighbour.lane),
            data: parts.part(number),
        })
    })
}

/// Sends all of `send` to every destination and receives a part from every source.
///
/// # Safety
/// Live buffers.
unsafe fn gather(comm: &Comm, all: &Neighbours, send: &Part, receive: &impl Parts) -> Outcome<()> {
    let outgoing = outgoing(comm, all, |_| send.elements());
    let incoming = incoming(comm, all, receive);
    // SAFETY: the caller's contract.
    unsafe { comm.channel().exchange(outgoing, incoming) }.map_err(failure)
}

/// Sends a part to every destination and receives one from every source.
///
/// # Safety
/// Live buffers.
unsafe fn exchange<P: Parts>(comm: &Comm, all: &Neighbours, send: &P, receive: &P) -> Outcome<()> {
    let outgoing = outgoing(comm, all, |number| send.part(number));
    let incoming = incoming(comm, all, receive);
    // SAFETY: the caller's contract.
    unsafe { comm.channel().exchange(outgoing, incoming) }.map_err(failure)
}

/// `MPI_Neighbor_allgather`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the calling rank.
pub unsafe extern "C" fn neighbor_allgather<A: Abi, C: Count>(
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
        on_comm::<A>(caller, "MPI_Neighbor_allgather", comm, |call, comm| {
            let all = neighbours(call, comm)?;
            let send = Part::check(call, send_buffer, send_elements, send_type)?;
            let receive = Part::check(call, buffer, elements, datatype)?;
            gather(comm, &all, &send, &receive)
        })
    }
}

/// `MPI_Neighbor_allgatherv`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements, the arrays have an entry for each source; `caller` is
/// the calling rank.
pub unsafe extern "C" fn neighbor_allgatherv<A: Abi, C: Count>(
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
        on_comm::<A>(caller, "MPI_Neighbor_allgatherv", comm, |call, comm| {
            let all = neighbours(call, comm)?;
            let sources = all.sources.len();
            let send = Part::check(call, send_buffer, send_elements, send_type)?;
            let receive =
                Varying::check::<A, C>(call, buffer, counts, displacements, datatype, sources)?;
            gather(comm, &all, &send, &receive)
        })
    }
}

/// `MPI_Neighbor_alltoall`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the calling rank.
pub unsafe extern "C" fn neighbor_alltoall<A: Abi, C: Count>(
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
        on_comm::<A>(caller, "MPI_Neighbor_alltoall", comm, |call, comm| {
            let all = neighbours(call, comm)?;
            let send = Part::check(call, send_buffer, send_elements, send_type)?;
            let receive = Part::check(call, buffer, elements, datatype)?;
            exchange(comm, &all, &send, &receive)
        })
    }
}

macro_rules! varying {
    ($($(#[$page:meta])* $name:ident $mpi:literal $check:expr, $displacement:ty, $type:ty;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: the buffers hold and take their blocks, the arrays have an entry for each
        /// destination and source; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi, C: Count>(
            caller: *const c_void,
            send_buffer: *const c_void,
            send_counts: *const C,
            send_displacements: *const $displacement,
            send_types: $type,
            buffer: *mut c_void,
            counts: *const C,
            displacements: *const $displacement,
            datatypes: $type,
            comm: A::Comm,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $mpi, comm, |call, comm| {
                    let all = neighbours(call, comm)?;
                    let send = $check(
                        call,
                        send_buffer,
                        send_counts,
                        send_displacements,
                        send_types,
                        all.destinations.len(),
                    )?;
                    let receive = $check(
                        call,
                        buffer,
                        counts,
                        displacements,
                        datatypes,
                        all.sources.len(),
                    )?;
                    exchange(comm, &all, &send, &receive)
                })
            }
        }
    )*};
}

varying! {
    /// `MPI_Neighbor_alltoallv`.
    neighbor_alltoallv "MPI_Neighbor_alltoallv" Varying::check::<A, C>, C::Displacement, A::Datatype;
    /// `MPI_Neighbor_alltoallw`, whose displacements are in bytes.
    neighbor_alltoallw "MPI_Neighbor_alltoallw" Typed::check_bytes::<A, C, isize>, isize, *const A::Datatype;
}

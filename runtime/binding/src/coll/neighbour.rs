//! Neighbourhood collectives (MPI-4.1 section 8.6): each member exchanges messages with its
//! neighbours of the communicator's topology.

use super::parts::{Part, Parts, Typed, Varying, failure};
use crate::arguments::{Call, Comm, Outcome, on_comm, output};
use crate::request::{Messages, publish_messages};
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::coll::exchange::{Elements, Incoming, Outgoing};
use cohort_object::topology::Neighbours;
use core::ffi::{c_int, c_void};

/// The neighbours of the caller.
///
/// # Errors
/// `MPI_ERR_TOPOLOGY` without a topology.
pub fn neighbours<A: Abi>(call: &Call<'_, A>, comm: &Comm) -> Outcome<Neighbours> {
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

/// How a call ends.
enum Ending<A: Abi> {
    /// When everything is done.
    Wait,
    /// At once; the communicator's handle, and where the request's goes.
    Request(A::Comm, *mut A::Request),
}

/// Sends and receives all of these.
///
/// # Safety
/// Live buffers; where the call ends at once, until its request is complete.
unsafe fn run<'a, A: Abi>(
    (call, comm): (&Call<'_, A>, &Comm),
    ending: Ending<A>,
    outgoing: impl Iterator<Item = Outgoing<'a>>,
    incoming: impl Iterator<Item = Incoming<'a>>,
) -> Outcome<()> {
    let channel = comm.channel();
    // SAFETY: the caller's contract.
    unsafe {
        match ending {
            Ending::Wait => channel.exchange(outgoing, incoming).map_err(failure),
            Ending::Request(handle, target) => {
                output(target)?;
                let mut requests = Vec::new();
                let started = channel.start(outgoing, incoming, &mut requests);
                started.map_err(failure)?;
                let comm = handle.neutral();
                publish_messages(call, Messages { requests, comm }, target)
            }
        }
    }
}

/// Sends all of `send` to every destination and receives a part from every source.
///
/// # Safety
/// As [`run`].
unsafe fn gather<A: Abi>(
    (call, comm): (&Call<'_, A>, &Comm),
    all: &Neighbours,
    send: &Part,
    receive: &impl Parts,
    ending: Ending<A>,
) -> Outcome<()> {
    let outgoing = outgoing(comm, all, |_| send.elements());
    // SAFETY: the caller's contract.
    unsafe { run((call, comm), ending, outgoing, incoming(comm, all, receive)) }
}

/// Sends a part to every destination and receives one from every source.
///
/// # Safety
/// As [`run`].
unsafe fn exchange<A: Abi, P: Parts>(
    (call, comm): (&Call<'_, A>, &Comm),
    all: &Neighbours,
    send: &P,
    receive: &P,
    ending: Ending<A>,
) -> Outcome<()> {
    let outgoing = outgoing(comm, all, |number| send.part(number));
    // SAFETY: the caller's contract.
    unsafe { run((call, comm), ending, outgoing, incoming(comm, all, receive)) }
}

/// The blocking and the nonblocking form of a procedure.
macro_rules! forms {
    ($(
        $(#[$page:meta])*
        $name:ident $mpi:literal, $nonblocking:ident $impi:literal
        ($($argument:ident: $type:ty,)*)
        |$here:ident, $all:ident, $ending:ident| $body:block
    )*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: the buffers hold and take their blocks, the arrays have an entry for each
        /// destination or source; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi, C: Count>(
            caller: *const c_void,
            $($argument: $type,)*
            comm: A::Comm,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $mpi, comm, |call, comm| {
                    let $all = &neighbours(call, comm)?;
                    let ($here, $ending) = ((call, comm), Ending::Wait);
                    $body
                })
            }
        }

        $(#[$page])*
        ///
        /// It ends at once, with a request.
        ///
        /// # Safety
        /// As the blocking form, until the request is complete; `request` is valid for writes.
        pub unsafe extern "C" fn $nonblocking<A: Abi, C: Count>(
            caller: *const c_void,
            $($argument: $type,)*
            handle: A::Comm,
            request: *mut A::Request,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $impi, handle, |call, comm| {
                    let $all = &neighbours(call, comm)?;
                    let ($here, $ending) = ((call, comm), Ending::Request(handle, request));
                    $body
                })
            }
        }
    )*};
}

forms! {
    /// `MPI_(I)neighbor_allgather`.
    neighbor_allgather "MPI_Neighbor_allgather", ineighbor_allgather "MPI_Ineighbor_allgather"
    (
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
    )
    |here, all, ending| {
        let send = Part::check(here.0, send_buffer, send_elements, send_type)?;
        let receive = Part::check(here.0, buffer, elements, datatype)?;
        gather(here, all, &send, &receive, ending)
    }

    /// `MPI_(I)neighbor_allgatherv`.
    neighbor_allgatherv "MPI_Neighbor_allgatherv", ineighbor_allgatherv "MPI_Ineighbor_allgatherv"
    (
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        displacements: *const C::Displacement,
        datatype: A::Datatype,
    )
    |here, all, ending| {
        let (call, sources) = (here.0, all.sources.len());
        let send = Part::check(call, send_buffer, send_elements, send_type)?;
        let receive =
            Varying::check::<A, C>(call, buffer, counts, displacements, datatype, sources)?;
        gather(here, all, &send, &receive, ending)
    }

    /// `MPI_(I)neighbor_alltoall`.
    neighbor_alltoall "MPI_Neighbor_alltoall", ineighbor_alltoall "MPI_Ineighbor_alltoall"
    (
        send_buffer: *const c_void,
        send_elements: C,
        send_type: A::Datatype,
        buffer: *mut c_void,
        elements: C,
        datatype: A::Datatype,
    )
    |here, all, ending| {
        let send = Part::check(here.0, send_buffer, send_elements, send_type)?;
        let receive = Part::check(here.0, buffer, elements, datatype)?;
        exchange(here, all, &send, &receive, ending)
    }

    /// `MPI_(I)neighbor_alltoallv`.
    neighbor_alltoallv "MPI_Neighbor_alltoallv", ineighbor_alltoallv "MPI_Ineighbor_alltoallv"
    (
        send_buffer: *const c_void,
        send_counts: *const C,
        send_starts: *const C::Displacement,
        send_type: A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        starts: *const C::Displacement,
        datatype: A::Datatype,
    )
    |here, all, ending| {
        let (call, to, from) = (here.0, all.destinations.len(), all.sources.len());
        let check = Varying::check::<A, C>;
        let send = check(call, send_buffer, send_counts, send_starts, send_type, to)?;
        let receive = check(call, buffer, counts, starts, datatype, from)?;
        exchange(here, all, &send, &receive, ending)
    }

    /// `MPI_(I)neighbor_alltoallw`, whose displacements are in bytes.
    neighbor_alltoallw "MPI_Neighbor_alltoallw", ineighbor_alltoallw "MPI_Ineighbor_alltoallw"
    (
        send_buffer: *const c_void,
        send_counts: *const C,
        send_starts: *const isize,
        send_types: *const A::Datatype,
        buffer: *mut c_void,
        counts: *const C,
        starts: *const isize,
        datatypes: *const A::Datatype,
    )
    |here, all, ending| {
        let (call, to, from) = (here.0, all.destinations.len(), all.sources.len());
        let check = Typed::check_bytes::<A, C, isize>;
        let send = check(call, send_buffer, send_counts, send_starts, send_types, to)?;
        let receive = check(call, buffer, counts, starts, datatypes, from)?;
        exchange(here, all, &send, &receive, ending)
    }
}

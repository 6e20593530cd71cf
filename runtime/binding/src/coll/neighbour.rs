//! Neighbourhood collectives (MPI-4.1 section 8.6): each member exchanges messages with its
//! neighbours of the communicator's topology.

use super::apart;
use super::parts::{Members, Parts, Typed, Varying};
use crate::arguments::{Call, Comm, Outcome, output};
use crate::data::Data;
use crate::passed::{Array, Base, Buffer, Out, Place};
use crate::process::requests::{RequestKind, Rest};
use crate::request::publish_kind;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::{Abi, Count, Handle, Status, neutral};
use cohort_base::picture::Fact;
use cohort_engine::coll::exchange::{Incoming, Outgoing};
use cohort_engine::coll::{self, Blocks};
use cohort_engine::datatype;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Rank, RequestRef};
use cohort_object::blame;
use cohort_object::topology::Neighbours;

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
    part: impl Fn(usize) -> datatype::Buffer<'a> + 'a,
) -> impl Iterator<Item = Outgoing<'a>> {
    let numbered = all.destinations.iter().enumerate();
    numbered.filter_map(move |(number, neighbour)| {
        Some(Outgoing { to: comm.peer(neighbour.rank? as i32)?, tag: tag(neighbour.lane), data: part(number) })
    })
}

/// The messages from all sources.
fn incoming<'a>(comm: &'a Comm, all: &'a Neighbours, parts: &'a impl Parts) -> impl Iterator<Item = Incoming<'a>> {
    let numbered = all.sources.iter().enumerate();
    numbered.filter_map(move |(number, neighbour)| {
        let member = neighbour.rank?;
        Some(Incoming { from: comm.peer(member as i32)?, member, tag: tag(neighbour.lane), data: parts.part(number) })
    })
}

/// Sends and receives with one handle, complete together.
#[derive(Debug)]
struct Messages {
    requests: Vec<RequestRef>,
    /// Neutral handle of the communicator whose error handler hears of failures.
    comm: u32,
}

impl RequestKind for Messages {
    fn comm(&self) -> u32 {
        self.comm
    }

    fn is_complete(&self) -> bool {
        self.requests.iter().all(|it| it.is_complete())
    }

    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        self.requests.iter().for_each(|it| it.tell(claim, tell));
    }

    /// An empty status, with the error of the first message that failed.
    fn status(&self) -> Status {
        let mut errors = self.requests.iter().map(|it| it.status().error);
        Status { error: errors.find(|&it| it != neutral::SUCCESS).unwrap_or(neutral::SUCCESS), ..Status::EMPTY }
    }

    fn end(&self, _rank: &Rank) -> Rest {
        Rest::Nothing(neutral::SUCCESS)
    }

    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        self.requests.into_iter().for_each(|it| it.release(claim));
    }

    fn abandon(&self, _rank: &Rank) -> Outcome<i32> {
        Ok(neutral::SUCCESS)
    }

    fn cancel(&self, _rank: &Rank) -> Outcome<()> {
        let what = format_args!("a collective operation cannot be cancelled");
        Err(blame(neutral::ERR_REQUEST, what))
    }
}

/// How a call ends.
enum Ending<'c, A: Abi> {
    /// When everything is done.
    Wait,
    /// At once; the communicator's handle, and where the request's goes.
    Request(A::Comm, Place<'c, A::Request>),
}

/// Sends and receives all of these.
fn run<'a, A: Abi>(
    (call, comm): (&Call<'_, A>, &Comm),
    ending: Ending<'_, A>,
    outgoing: impl Iterator<Item = Outgoing<'a>>,
    incoming: impl Iterator<Item = Incoming<'a>>,
) -> Outcome<()> {
    let channel = comm.channel();
    let failure = |error| comm.collective().failure(error);
    match ending {
        Ending::Wait => channel.exchange(outgoing, incoming).map_err(failure),
        Ending::Request(handle, target) => {
            let mut requests = Vec::new();
            let started = channel.start(outgoing, incoming, &mut requests);
            started.map_err(failure)?;
            let comm = handle.neutral();
            publish_kind(call, Messages { requests, comm }, target)
        }
    }
}

/// Refuses buffers that overlap, and compares the arguments of all members, if that is asked for and the call blocks:
/// blocks to send, whether all destinations get the first one, and blocks to receive.
fn inspect<A: Abi>(
    comm: &Comm,
    all: &Neighbours,
    (send, to_all, receive): (Blocks<'_>, bool, Blocks<'_>),
    ending: &Ending<'_, A>,
) -> Outcome<()> {
    let group = comm.collective();
    apart::neighbours(&group, (&send, &all.destinations, to_all), (&receive, &all.sources))?;
    if matches!(ending, Ending::Request(..)) {
        return Ok(());
    }
    let call = coll::Call::Neighbours { sources: &all.sources, destinations: &all.destinations, send, to_all, receive };
    coll::compare(&group, &call).map_err(|error| group.failure(error))
}

/// Sends all of `send` to every destination and receives a part from every source.
fn gather<A: Abi>(
    (call, comm): (&Call<'_, A>, &Comm),
    all: &Neighbours,
    send: &Data,
    receive: &impl Parts,
    ending: Ending<'_, A>,
) -> Outcome<()> {
    inspect(comm, all, (send.blocks(), true, receive.blocks()), &ending)?;
    let outgoing = outgoing(comm, all, |_| send.buffer());
    run((call, comm), ending, outgoing, incoming(comm, all, receive))
}

/// Sends a part to every destination and receives one from every source.
fn exchange<A: Abi, P: Parts>(
    (call, comm): (&Call<'_, A>, &Comm),
    all: &Neighbours,
    send: &P,
    receive: &P,
    ending: Ending<'_, A>,
) -> Outcome<()> {
    inspect(comm, all, (send.blocks(), false, receive.blocks()), &ending)?;
    let outgoing = outgoing(comm, all, |number| send.part(number));
    run((call, comm), ending, outgoing, incoming(comm, all, receive))
}

/// The blocking and the nonblocking form of a procedure.
macro_rules! forms {
    ($(
        $(#[$page:meta])*
        $name:ident, $nonblocking:ident
        ($($argument:ident: $type:ty,)*)
        |$here:ident, $all:ident, $ending:ident| $body:block
    )*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            $($argument: $type,)*
            comm: A::Comm,
        ) -> Outcome<()> {
            let comm = call.on_comm(comm)?;
            let $all = &neighbours(call, comm)?;
            let ($here, $ending) = ((call, comm), Ending::Wait);
            $body
        }

        $(#[$page])*
        ///
        /// It ends at once, with a request.
        pub fn $nonblocking<A: Abi, C: Count>(
            call: &Call<'_, A>,
            $($argument: $type,)*
            handle: A::Comm,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let comm = call.on_comm(handle)?;
            let request = output(request)?;
            let $all = &neighbours(call, comm)?;
            let ($here, $ending) = ((call, comm), Ending::Request(handle, request));
            $body
        }
    )*};
}

forms! {
    /// `MPI_(I)neighbor_allgather`.
    neighbor_allgather, ineighbor_allgather
    (
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    |here, all, ending| {
        let send = Data::check(here.0, send_buffer)?;
        let receive = Data::check(here.0, buffer)?;
        gather(here, all, &send, &receive, ending)
    }

    /// `MPI_(I)neighbor_allgatherv`.
    neighbor_allgatherv, ineighbor_allgatherv
    (
        send_buffer: Buffer<A, C>,
        buffer: Base,
        counts: Array<'_, C>,
        displacements: Array<'_, C::Displacement>,
        datatype: A::Datatype,
    )
    |here, all, ending| {
        let (call, sources) = (here.0, all.sources.len());
        let send = Data::check(call, send_buffer)?;
        let receive =
            Varying::check::<A, C>(call, buffer, counts, displacements, datatype, sources)?;
        gather(here, all, &send, &receive, ending)
    }

    /// `MPI_(I)neighbor_alltoall`.
    neighbor_alltoall, ineighbor_alltoall
    (
        send_buffer: Buffer<A, C>,
        buffer: Buffer<A, C>,
    )
    |here, all, ending| {
        let send = Data::check(here.0, send_buffer)?;
        let receive = Data::check(here.0, buffer)?;
        exchange(here, all, &send, &receive, ending)
    }

    /// `MPI_(I)neighbor_alltoallv`.
    neighbor_alltoallv, ineighbor_alltoallv
    (
        send_buffer: Base,
        send_counts: Array<'_, C>,
        send_starts: Array<'_, C::Displacement>,
        send_type: A::Datatype,
        buffer: Base,
        counts: Array<'_, C>,
        starts: Array<'_, C::Displacement>,
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
    neighbor_alltoallw, ineighbor_alltoallw
    (
        send_buffer: Base,
        send_counts: Array<'_, C>,
        send_starts: Array<'_, isize>,
        send_types: Array<'_, A::Datatype>,
        buffer: Base,
        counts: Array<'_, C>,
        starts: Array<'_, isize>,
        datatypes: Array<'_, A::Datatype>,
    )
    |here, all, ending| {
        let (call, to, from) = (here.0, all.destinations.len(), all.sources.len());
        let check = Typed::check_bytes::<A, C, isize>;
        let send = check(call, send_buffer, send_counts, send_starts, send_types, to)?;
        let receive = check(call, buffer, counts, starts, datatypes, from)?;
        exchange(here, all, &send, &receive, ending)
    }
}

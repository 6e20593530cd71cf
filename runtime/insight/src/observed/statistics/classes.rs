//! What kind of call each function is, and where its peer, its count and its datatype are.

use super::files::{FileCall, file_call};
use crate::calls::{self, Description, Form, ParameterKind};
use crate::subject::observers::Observed;
use alloc::vec::Vec;
use spin::Once;

/// Who waits for whom in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// All for all.
    All,
    /// All for the root.
    FromRoot,
    /// The root for all.
    ToRoot,
    /// Some for some.
    Other,
}

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Sends a message; `waits` until it is received.
    Send {
        /// Whether it returns only then, whatever the message's length.
        waits: bool,
    },
    /// Receives, or waits for, one message.
    Receive,
    /// Begins to receive.
    ReceiveBegin,
    /// Sends and receives.
    Exchange,
    /// Begins both.
    ExchangeBegin,
    /// Makes a persistent request that sends.
    SendInit,
    /// Starts persistent requests.
    Start,
    /// Waits for requests.
    Wait,
    /// A blocking collective.
    Collective(Meeting),
    /// Waits for others in another way.
    Waits,
    /// Frees a communicator.
    CommFree,
    /// Names a communicator.
    SetName,
    /// Begins a stage.
    SectionBegin,
    /// Ends a stage.
    SectionEnd,
    /// `MPI_Pcontrol`.
    Pcontrol,
    /// `MPI_Finalize`.
    Finalize,
    /// Anything else.
    Other,
}

/// What is to know of a function.
#[derive(Debug)]
pub struct Shape {
    /// Its kind.
    pub class: Class,
    /// Which argument is the target, or the root.
    pub peer: Option<usize>,
    /// Which argument is the source.
    pub source: Option<usize>,
    /// Which argument is the address of the only request that it makes.
    pub request: Option<usize>,
    /// Which arguments are count and datatype of what it sends, and how.
    data: Option<Data>,
    /// What it does to a file.
    pub file: Option<FileCall>,
}

/// What a call sends.
#[derive(Clone, Copy, Debug)]
struct Data {
    count: usize,
    datatype: usize,
    /// An argument that is `MPI_IN_PLACE` if the two say nothing.
    in_place: Option<usize>,
    /// Whether each member gets so much.
    each: bool,
}

/// By the functions' places in the table.
pub fn shapes() -> &'static [Shape] {
    static SHAPES: Once<Vec<Shape>> = Once::new();
    SHAPES.call_once(|| calls::all().iter().map(shape).collect())
}

impl Shape {
    /// The bytes that a call sends, or gives to a collective.
    pub fn bytes(&self, call: &Observed<'_>) -> u64 {
        let Some(data) = self.data else {
            return 0;
        };
        let is_in_place = |place| call.words.is_in_place(call.word(place));
        if data.in_place.is_some_and(is_in_place) {
            return 0;
        }
        let bytes = call.bytes(data.count, data.datatype);
        match data.each {
            true => bytes * call.comm().map_or(1, |comm| u64::from(comm.peers().size())),
            false => bytes,
        }
    }
}

fn shape(call: &Description) -> Shape {
    let name = call.said().trim_start_matches("MPI_");
    Shape {
        class: class(name),
        peer: ["dest", "root", "target_rank"].iter().find_map(|name| call.named(name)),
        source: call.named("source"),
        request: makes_request(name).then(|| request(call)).flatten(),
        data: data(call, name),
        file: file_call(name),
    }
}

fn class(name: &str) -> Class {
    use Meeting::{All, FromRoot, Other, ToRoot};
    match name {
        "Send" | "Rsend" | "Bsend" | "Isend" | "Irsend" | "Ibsend" | "Issend" => Class::Send { waits: false },
        "Ssend" => Class::Send { waits: true },
        "Recv" | "Mrecv" | "Probe" | "Mprobe" => Class::Receive,
        "Irecv" | "Imrecv" | "Recv_init" => Class::ReceiveBegin,
        "Sendrecv" | "Sendrecv_replace" => Class::Exchange,
        "Isendrecv" | "Isendrecv_replace" => Class::ExchangeBegin,
        "Send_init" | "Ssend_init" | "Bsend_init" | "Rsend_init" => Class::SendInit,
        "Start" | "Startall" => Class::Start,
        "Wait" | "Waitall" | "Waitany" | "Waitsome" => Class::Wait,
        "Barrier"
        | "Allreduce"
        | "Allgather"
        | "Allgatherv"
        | "Alltoall"
        | "Alltoallv"
        | "Alltoallw"
        | "Reduce_scatter"
        | "Reduce_scatter_block" => Class::Collective(All),
        "Bcast" | "Scatter" | "Scatterv" => Class::Collective(FromRoot),
        "Reduce" | "Gather" | "Gatherv" => Class::Collective(ToRoot),
        "Scan"
        | "Exscan"
        | "Neighbor_allgather"
        | "Neighbor_allgatherv"
        | "Neighbor_alltoall"
        | "Neighbor_alltoallv"
        | "Neighbor_alltoallw"
        | "Comm_dup"
        | "Comm_split"
        | "Comm_create" => Class::Collective(Other),
        "Win_fence" | "Win_start" | "Win_complete" | "Win_wait" | "Win_lock" | "Win_unlock" | "Win_lock_all"
        | "Win_unlock_all" | "Win_flush" | "Win_flush_all" | "Win_create" | "Win_allocate" | "Win_free" => Class::Waits,
        "Comm_free" | "Comm_disconnect" => Class::CommFree,
        "Comm_set_name" => Class::SetName,
        "MPIX_Section_begin" => Class::SectionBegin,
        "MPIX_Section_end" => Class::SectionEnd,
        "Pcontrol" => Class::Pcontrol,
        "Finalize" => Class::Finalize,
        _ => Class::Other,
    }
}

/// Whether a function makes a request, rather than looks at one.
fn makes_request(name: &str) -> bool {
    let begins = ["I", "MPIX_Win_i", "Rput", "Rget", "Raccumulate", "Comm_idup"];
    name.ends_with("_init") || begins.iter().any(|begin| name.starts_with(begin))
}

fn request(call: &Description) -> Option<usize> {
    let is_it = |p: &calls::Parameter| p.kind == ParameterKind::Request && p.form == Form::Address;
    call.parameters.iter().position(is_it)
}

/// Count and datatype of what a function sends. Where each member has counts of its own there is none.
fn data(call: &Description, name: &str) -> Option<Data> {
    call.find(ParameterKind::Comm).or(call.find(ParameterKind::Win)).or(call.find(ParameterKind::File))?;
    let base = name.trim_start_matches('I').to_ascii_lowercase();
    let base = base.trim_end_matches("_init");
    let receives = matches!(base, "allgather" | "alltoall" | "scatter" | "neighbor_allgather");
    let names: &[_] = match receives {
        true => &[("recvcount", "recvtype")],
        false => &[("count", "datatype"), ("sendcount", "sendtype"), ("origin_count", "origin_datatype")],
    };
    let is_value = |place: &usize| matches!(call.parameters[*place].form, Form::Narrow | Form::Wide);
    let (count, datatype) = names.iter().find_map(|(count, datatype)| {
        let count = call.named(count).filter(is_value)?;
        Some((count, call.named(datatype).filter(is_value)?))
    })?;
    let in_place = match base {
        "scatter" => call.named("recvbuf"),
        "gather" => call.named("sendbuf"),
        _ => None,
    };
    Some(Data { count, datatype, in_place, each: base == "alltoall" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> &'static Shape {
        let call = calls::all().iter().find(|call| call.name == name).expect(name);
        &shapes()[call.number as usize]
    }

    #[test]
    fn functions_have_their_class_and_their_data() {
        assert_eq!(of("MPI_Send_c").class, Class::Send { waits: false });
        assert_eq!(of("MPI_Allreduce").class, Class::Collective(Meeting::All));
        assert_eq!(of("MPI_Comm_free").class, Class::CommFree);
        assert_eq!(of("MPIX_Section_begin").class, Class::SectionBegin);
        assert_eq!(of("MPI_Irecv").request, Some(6));
        assert_eq!(of("MPI_Wait").request, None);
        assert_eq!(of("MPI_Improbe").request, None);
        let data = |name| of(name).data.map(|data| (data.count, data.datatype));
        assert_eq!(data("MPI_Send"), Some((1, 2)));
        assert_eq!(data("MPI_Sendrecv"), Some((1, 2)));
        assert_eq!(data("MPI_Allgather"), Some((4, 5)));
        assert_eq!(data("MPI_Allgatherv"), Some((1, 2)));
        assert_eq!(data("MPI_Alltoallw"), None);
        assert_eq!(data("MPI_Reduce_local"), None);
        assert_eq!(data("MPI_Put"), Some((1, 2)));
    }
}

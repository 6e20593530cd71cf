//! What the checker makes of each function of MPI.

use crate::calls::{self, Description, Form, Parameter, ParameterKind};
use alloc::vec::Vec;
use spin::Once;

/// What a call does, for the checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing that is followed.
    Other,
    /// Begins MPI.
    Init,
    /// Ends it.
    Finalize,
    /// Makes objects.
    Makes,
    /// Frees an object.
    Free,
    /// Sends a message, and returns when its buffer is the program's again.
    Send,
    /// Receives a message.
    Receive,
    /// Sends one and receives one.
    Exchange,
    /// Takes a message out of the queue for a later receive.
    Match,
    /// Begins to send.
    BeginSend,
    /// Begins to receive.
    BeginReceive,
    /// Begins to do both.
    BeginExchange,
    /// Makes a persistent send.
    InitSend,
    /// Makes a persistent receive.
    InitReceive,
    /// Reads or writes a buffer without a message, and is over when it returns.
    Local,
    /// A collective call on data.
    Collective,
    /// One that goes on.
    BeginCollective,
    /// One that goes on, and makes an object.
    BeginsObject,
    /// A persistent one.
    InitCollective,
    /// Makes a partitioned send.
    InitPartitionedSend,
    /// Makes a partitioned receive.
    InitPartitionedReceive,
    /// Marks partitions ready.
    Mark,
    /// Another operation with a request.
    BeginOther,
    /// Starts persistent operations.
    Start,
    /// Waits for requests, or tests them.
    Complete(Completion),
    /// Gives a request away.
    FreeRequest,
    /// Cancels a request.
    Cancel,
    /// An access to a window.
    Access,
    /// Synchronises a window.
    Synchronise,
    /// Gives memory.
    Allocate,
    /// Frees it.
    Release,
    /// Attaches memory to a window.
    Attach,
    /// Detaches it.
    Detach,
}

/// Which of its requests a call completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The one.
    Wait,
    /// The one, if `flag` says so.
    Test,
    /// All.
    Waitall,
    /// All, if `flag` says so.
    Testall,
    /// That of `index`.
    Any,
    /// Those of `array_of_indices`.
    Some,
}

/// The role of a function.
#[inline]
pub fn role(call: &Description) -> Role {
    static ROLES: Once<Vec<Role>> = Once::new();
    let roles = ROLES.call_once(|| calls::all().iter().map(of).collect());
    roles[call.number as usize]
}

/// Objects that a call may make.
const OBJECTS: [ParameterKind; 8] = [
    ParameterKind::Comm,
    ParameterKind::Group,
    ParameterKind::Datatype,
    ParameterKind::Op,
    ParameterKind::Win,
    ParameterKind::Info,
    ParameterKind::Errhandler,
    ParameterKind::File,
];

/// Collective calls on data, without the letter that says that they go on.
const COLLECTIVES: [&str; 17] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
];

/// Whether a parameter is where a call leaves an object.
pub fn is_made(parameter: &Parameter) -> bool {
    OBJECTS.contains(&parameter.kind) && parameter.form == Form::Address
}

fn of(call: &Description) -> Role {
    let name = call.said().strip_prefix("MPI_").unwrap_or_default();
    named(name).unwrap_or_else(|| by_parameters(call, name))
}

fn named(name: &str) -> Option<Role> {
    Some(match name {
        "Init" | "Init_thread" => Role::Init,
        "Finalize" => Role::Finalize,
        "Send" | "Ssend" | "Rsend" | "Bsend" => Role::Send,
        "Recv" | "Mrecv" => Role::Receive,
        "Sendrecv" | "Sendrecv_replace" => Role::Exchange,
        "Mprobe" | "Improbe" => Role::Match,
        "Isend" | "Issend" | "Irsend" | "Ibsend" => Role::BeginSend,
        "Irecv" | "Imrecv" => Role::BeginReceive,
        "Isendrecv" | "Isendrecv_replace" => Role::BeginExchange,
        "Send_init" | "Ssend_init" | "Rsend_init" | "Bsend_init" => Role::InitSend,
        "Recv_init" => Role::InitReceive,
        "Psend_init" => Role::InitPartitionedSend,
        "Precv_init" => Role::InitPartitionedReceive,
        "Pready" | "Pready_range" | "Pready_list" => Role::Mark,
        "Start" | "Startall" => Role::Start,
        "Wait" => Role::Complete(Completion::Wait),
        "Test" => Role::Complete(Completion::Test),
        "Waitall" => Role::Complete(Completion::Waitall),
        "Testall" => Role::Complete(Completion::Testall),
        "Waitany" | "Testany" => Role::Complete(Completion::Any),
        "Waitsome" | "Testsome" => Role::Complete(Completion::Some),
        "Request_free" => Role::FreeRequest,
        "Cancel" => Role::Cancel,
        "Put" | "Get" | "Accumulate" | "Get_accumulate" | "Fetch_and_op" | "Compare_and_swap" => Role::Access,
        "Win_fence"
        | "Win_complete"
        | "Win_wait"
        | "Win_unlock"
        | "Win_unlock_all"
        | "Win_flush"
        | "Win_flush_all"
        | "Win_flush_local"
        | "Win_flush_local_all"
        | "Win_lock"
        | "Win_lock_all"
        | "Win_start"
        | "Win_post" => Role::Synchronise,
        "Alloc_mem" => Role::Allocate,
        "Free_mem" => Role::Release,
        "Win_attach" => Role::Attach,
        "Win_detach" => Role::Detach,
        "Pack" | "Unpack" | "Reduce_local" => Role::Local,
        "Comm_idup" | "Comm_idup_with_info" => Role::BeginsObject,
        "Comm_free" | "Comm_disconnect" | "Group_free" | "Type_free" | "Op_free" | "Win_free" | "Info_free"
        | "Errhandler_free" | "File_close" => Role::Free,
        // What these give is not the program's to free, or is changed in place.
        "Comm_get_parent"
        | "Type_match_size"
        | "Type_commit"
        | "Type_create_f90_integer"
        | "Type_create_f90_real"
        | "Type_create_f90_complex"
        | "Type_get_value_index"
        | "Abi_get_fortran_info"
        | "Abi_get_info"
        | "Request_get_status"
        | "Grequest_start"
        | "Grequest_complete"
        | "Parrived" => match name {
            "Type_commit" => Role::Makes,
            _ => Role::Other,
        },
        _ => return None,
    })
}

fn by_parameters(call: &Description, name: &str) -> Role {
    let lower = |text: &str| COLLECTIVES.iter().any(|known| known.eq_ignore_ascii_case(text));
    let makes_request = call.parameters.iter().any(|p| p.kind == ParameterKind::Request && p.form == Form::Address);
    if lower(name) {
        return Role::Collective;
    }
    let is_of_file = ["File_read", "File_write"].iter().any(|prefix| name.starts_with(prefix));
    let is_split = name.ends_with("_begin") || name.ends_with("_end");
    if is_of_file && !is_split {
        return Role::Local;
    }
    if let Some(rest) = name.strip_prefix('I')
        && lower(rest)
    {
        return Role::BeginCollective;
    }
    if makes_request {
        return if name.ends_with("_init") { Role::InitCollective } else { Role::BeginOther };
    }
    if call.parameters.iter().any(is_made) { Role::Makes } else { Role::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_roles() {
        let find = |name| calls::all().iter().find(|call| call.name == name).map(role).expect(name);
        assert_eq!(find("MPI_Isend_c"), Role::BeginSend);
        assert_eq!(find("MPI_Ibcast"), Role::BeginCollective);
        assert_eq!(find("MPI_Allreduce_init"), Role::InitCollective);
        assert_eq!(find("MPI_Comm_split"), Role::Makes);
        assert_eq!(find("MPI_Pready_list"), Role::Mark);
        assert_eq!(find("MPI_File_iread"), Role::BeginOther);
        assert_eq!(find("MPI_File_write_at_all_c"), Role::Local);
        assert_eq!(find("MPI_File_read_all_begin"), Role::Other);
        assert_eq!(find("MPI_Unpack"), Role::Local);
        assert_eq!(find("MPI_Comm_rank"), Role::Other);
        assert_eq!(find("MPI_Testall"), Role::Complete(Completion::Testall));
    }
}

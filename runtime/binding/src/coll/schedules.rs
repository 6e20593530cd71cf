//! Nonblocking and persistent collectives (MPI-4.1 sections 6.12 and 6.13): each operation's arguments
//! are described once, in `moving` and `reducing`, and `forms` makes the two functions of that.

#[macro_use]
mod forms;
mod moving;
mod neighbour;
mod reducing;

pub use moving::*;
pub use neighbour::*;
pub use reducing::*;

use super::operands::Operands;
use super::parts::{BlockList, Members, Parts, failure_among, root};
use super::{apart, inter};
use crate::arguments::{Call, Comm, Error, Outcome};
use crate::data::Data;
use crate::passed::Place;
use crate::process::Process;
use crate::process::requests::{Describe, Operation, State};
use crate::request::{Plan, publish, publish_persistent};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::{Abi, Handle};
use cohort_engine::coll::inter::Root;
use cohort_engine::coll::{self, Scan};
use cohort_engine::rank_box::RankBox;
use cohort_engine::{EngineError, RequestRef};
use cohort_object::topology::Neighbours;
use core::ffi::c_int;

/// The arguments of one collective operation at one member. In place is `None`.
enum Arguments<A: Abi> {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast`.
    Bcast { buffer: Data, root: u32 },
    /// `MPI_Gather` and `MPI_Gatherv`; `receive` at the root.
    Gather {
        send: Option<Data>,
        receive: Option<BlockList>,
        root: u32,
    },
    /// `MPI_Scatter` and `MPI_Scatterv`; `send` at the root.
    Scatter {
        send: Option<BlockList>,
        receive: Option<Data>,
        root: u32,
    },
    /// `MPI_Allgather` and `MPI_Allgatherv`.
    Allgather {
        send: Option<Data>,
        receive: BlockList,
    },
    /// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`.
    Alltoall {
        send: Option<BlockList>,
        receive: BlockList,
    },
    /// `MPI_Reduce`.
    Reduce { operands: Operands<A>, root: u32 },
    /// `MPI_Allreduce`.
    Allreduce(Operands<A>),
    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
    ReduceScatter {
        operands: Operands<A>,
        counts: Vec<i64>,
    },
    /// `MPI_Scan` and `MPI_Exscan`.
    Scan { operands: Operands<A>, kind: Scan },
    /// Neighbourhoods; with `to_all` every destination gets the one block of `send`.
    Neighbours {
        all: Neighbours,
        send: BlockList,
        to_all: bool,
        receive: BlockList,
    },
}

/// What a member is in an operation with a root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The root, which in one group also does what the others do.
    Root,
    /// One that sends to the root or receives from it.
    Other,
    /// Another member of the root's group, of an intercommunicator: it takes no part.
    Beside,
}

impl Role {
    /// The root argument as the engine wants it, and what the caller is.
    ///
    /// # Errors
    /// `MPI_ERR_ROOT`.
    fn check<A: Abi>(comm: &Comm, at: c_int) -> Outcome<(u32, Self)> {
        let Some(inter) = comm.inter() else {
            let root = root::<A>(&comm.collective(), at)?;
            let is_root = comm.me() == root;
            return Ok((root, if is_root { Self::Root } else { Self::Other }));
        };
        let root = inter::root::<A>(&inter, at)?;
        let role = match root {
            Root::Here => Self::Root,
            Root::Beside => Self::Beside,
            Root::Remote(_) => Self::Other,
        };
        Ok((inter.place_of(root), role))
    }
}

impl<A: Abi> Describe for Arguments<A> {
    fn call(&self) -> coll::Call<'_> {
        match self {
            Self::Barrier => coll::Call::Barrier,
            Self::Bcast { buffer, root } => coll::Call::Bcast {
                buffer: buffer.buffer(),
                root: *root,
            },
            Self::Gather {
                send,
                receive,
                root,
            } => coll::Call::Gather {
                send: send.as_ref().map(Data::buffer),
                receive: receive.as_ref().map(BlockList::blocks),
                root: *root,
            },
            Self::Scatter {
                send,
                receive,
                root,
            } => coll::Call::Scatter {
                send: send.as_ref().map(BlockList::blocks),
                receive: receive.as_ref().map(Data::buffer),
                root: *root,
            },
            Self::Allgather { send, receive } => coll::Call::Allgather {
                send: send.as_ref().map(Data::buffer),
                receive: receive.blocks(),
            },
            Self::Alltoall { send, receive } => coll::Call::Alltoall {
                send: send.as_ref().map(BlockList::blocks),
                receive: receive.blocks(),
            },
            Self::Reduce { operands, root } => coll::Call::Reduce {
                reduction: operands.reduction(),
                root: *root,
            },
            Self::Allreduce(operands) => coll::Call::Allreduce {
                reduction: operands.reduction(),
            },
            Self::ReduceScatter { operands, counts } => coll::Call::ReduceScatter {
                reduction: operands.reduction(),
                counts,
            },
            Self::Scan { operands, kind } => coll::Call::Scan {
                reduction: operands.reduction(),
                kind: *kind,
            },
            Self::Neighbours {
                all,
                send,
                to_all,
                receive,
            } => coll::Call::Neighbours {
                sources: &all.sources,
                destinations: &all.destinations,
                send: send.blocks(),
                to_all: *to_all,
                receive: receive.blocks(),
            },
        }
    }
}

impl<A: Abi> Arguments<A> {
    /// Those of a member of the root's group, of an intercommunicator: it takes no part.
    const BESIDE: Self = Self::Gather {
        send: None,
        receive: None,
        root: u32::MAX,
    };

    /// Refuses buffers that overlap.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    fn check_apart(&self, comm: &Comm) -> Outcome<()> {
        match comm.is_inter() {
            true => Ok(()),
            false => apart::described(&comm.collective(), &self.call()),
        }
    }

    /// Starts the operation and gives the program a handle of it.
    ///
    /// # Errors
    /// No memory, no handle.
    fn start(
        self,
        call: &Call<'_, A>,
        comm: &Comm,
        handle: A::Comm,
        target: Place<'_, A::Request>,
    ) -> Outcome<()> {
        self.check_apart(comm)?;
        let arguments = RankBox::<dyn Describe>::new(&mut call.rank().enter(), self, |it| it);
        let arguments = arguments.map_err(|error| failure_on(comm, error))?;
        // SAFETY: the arguments live in the request's state until the operation is complete.
        let started = unsafe {
            match comm.inter() {
                Some(inter) => coll::start_between(&inter, &arguments.call()),
                None => coll::start(&comm.collective(), &arguments.call()),
            }
        };
        let operation = Operation {
            request: started.map_err(|error| failure_on(comm, error))?,
            comm: handle.neutral(),
        };
        publish(call, State::Collective(operation, arguments), target)
    }

    /// Gives the program a handle of an inactive operation.
    ///
    /// # Errors
    /// No memory, no handle.
    fn init(
        self,
        call: &Call<'_, A>,
        comm: &Comm,
        handle: A::Comm,
        target: Place<'_, A::Request>,
    ) -> Outcome<()> {
        self.check_apart(comm)?;
        let members = match comm.inter() {
            Some(inter) => inter.local.world.len() + inter.remote.len(),
            None => comm.collective().world.len(),
        };
        let operation = match comm.inter() {
            Some(inter) => coll::Repeated::open_between(&inter),
            None => {
                let group = comm.collective();
                // SAFETY: checked arguments of this call.
                let compared = unsafe { coll::compare_persistent(&group, &self.call()) };
                compared
                    .and_then(|()| coll::Repeated::open(&group))
                    .map_err(|error| group.failure(error))?
            }
        };
        let repeated = Repeated {
            operation,
            members,
            arguments: Box::new(self),
        };
        publish_persistent(call, repeated, handle.neutral(), target)
    }
}

/// The error of a collective of a communicator.
#[cold]
fn failure_on(comm: &Comm, error: EngineError) -> Error {
    match comm.inter() {
        Some(inter) => inter.failure(error),
        None => comm.collective().failure(error),
    }
}

/// A persistent collective operation.
#[derive(Debug)]
struct Repeated {
    operation: coll::Repeated,
    members: usize,
    arguments: Box<dyn Describe>,
}

impl Plan for Repeated {
    const COLLECTIVE: bool = true;

    fn begin(&self, process: &Process, _comm: u32) -> Outcome<RequestRef> {
        let owner = process.objects.owner();
        // SAFETY: checked arguments of a call, which live as long as the operation.
        unsafe { self.operation.start(owner, &self.arguments.call()) }
            .map_err(|error| failure_among(owner.rank(), self.members, error))
    }
}

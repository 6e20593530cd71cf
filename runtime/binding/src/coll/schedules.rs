//! Nonblocking and persistent collectives (MPI-4.1 sections 6.12 and 6.13): each operation's arguments
//! are described once, in `moving` and `reducing`, and `forms` makes the two functions of that.

#[macro_use]
mod forms;
mod moving;
mod neighbour;
mod reducing;
mod repeated;

pub use moving::*;
pub use neighbour::*;
pub use reducing::*;

use super::operands::Operands;
use super::parts::{BlockList, Members, Parts, root};
use super::{apart, inter};
use crate::arguments::{Call, Comm, Outcome};
use crate::data::Data;
use crate::passed::Place;
use crate::process::requests::{Describe, Operation, State};
use crate::request::{publish, publish_claimed, publish_kind};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::{Abi, Handle, Kind, dynamic, neutral};
use cohort_engine::coll::inter::Root;
use cohort_engine::coll::{self, Group, Left, Record, Scan, Started};
use cohort_engine::rank_box::RankBox;
use cohort_object::topology::Neighbours;
use core::ffi::c_int;
use repeated::Repeated;

/// The arguments of one collective operation at one member. In place is `None`.
enum Arguments<A: Abi> {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast`.
    Bcast { buffer: Data, root: u32 },
    /// `MPI_Gather` and `MPI_Gatherv`; `receive` at the root.
    Gather { send: Option<Data>, receive: Option<BlockList>, root: u32 },
    /// `MPI_Scatter` and `MPI_Scatterv`; `send` at the root.
    Scatter { send: Option<BlockList>, receive: Option<Data>, root: u32 },
    /// `MPI_Allgather` and `MPI_Allgatherv`.
    Allgather { send: Option<Data>, receive: BlockList },
    /// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`.
    Alltoall { send: Option<BlockList>, receive: BlockList },
    /// `MPI_Reduce`.
    Reduce { operands: Operands<A>, root: u32 },
    /// `MPI_Allreduce`.
    Allreduce(Operands<A>),
    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
    ReduceScatter { operands: Operands<A>, counts: Vec<i64> },
    /// `MPI_Scan` and `MPI_Exscan`.
    Scan { operands: Operands<A>, kind: Scan },
    /// Neighbourhoods; with `to_all` every destination gets the one block of `send`.
    Neighbours { all: Neighbours, send: BlockList, to_all: bool, receive: BlockList },
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
            Self::Bcast { buffer, root } => coll::Call::Bcast { buffer: buffer.buffer(), root: *root },
            Self::Gather { send, receive, root } => coll::Call::Gather {
                send: send.as_ref().map(Data::buffer),
                receive: receive.as_ref().map(BlockList::blocks),
                root: *root,
            },
            Self::Scatter { send, receive, root } => coll::Call::Scatter {
                send: send.as_ref().map(BlockList::blocks),
                receive: receive.as_ref().map(Data::buffer),
                root: *root,
            },
            Self::Allgather { send, receive } => {
                coll::Call::Allgather { send: send.as_ref().map(Data::buffer), receive: receive.blocks() }
            }
            Self::Alltoall { send, receive } => {
                coll::Call::Alltoall { send: send.as_ref().map(BlockList::blocks), receive: receive.blocks() }
            }
            Self::Reduce { operands, root } => coll::Call::Reduce { reduction: operands.reduction(), root: *root },
            Self::Allreduce(operands) => coll::Call::Allreduce { reduction: operands.reduction() },
            Self::ReduceScatter { operands, counts } => {
                coll::Call::ReduceScatter { reduction: operands.reduction(), counts }
            }
            Self::Scan { operands, kind } => coll::Call::Scan { reduction: operands.reduction(), kind: *kind },
            Self::Neighbours { all, send, to_all, receive } => coll::Call::Neighbours {
                sources: &all.sources,
                destinations: &all.destinations,
                send: send.blocks(),
                to_all: *to_all,
                receive: receive.blocks(),
            },
        }
    }
}

/// Gives the program a handle of an operation of a few bytes: in a slot that an earlier one has left, if there is one.
///
/// # Errors
/// No handle.
#[inline(always)]
fn publish_small<A: Abi>(
    call: &Call<'_, A>,
    small: coll::Small,
    comm: u32,
    target: Place<'_, A::Request>,
) -> Outcome<()> {
    let (pending, rank) = (call.pending(), call.rank());
    let state = State::Small(small, None, comm);
    let claim = rank.threads_multiple().then(|| rank.enter());
    let Some(index) = pending.spares.take_slot() else {
        drop(claim);
        return publish(call, state, target);
    };
    // SAFETY: the slot was vacated, and is filled once.
    unsafe { pending.requests.fill(index, state) };
    let handle = dynamic(Kind::Request, index);
    target.write(A::Request::from_neutral(call.context(), handle));
    Ok(())
}

impl<A: Abi> Arguments<A> {
    /// Those of a member of the root's group, of an intercommunicator: it takes no part.
    const BESIDE: Self = Self::Gather { send: None, receive: None, root: u32::MAX };

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

    /// Whether nothing is to be let go of with the arguments: types and operation are predefined, and there are no
    /// lists.
    #[inline]
    fn is_plain(&self) -> bool {
        let data = |it: &Data| it.datatype().is_static();
        let blocks = |it: &BlockList| matches!(it, BlockList::Equal(it) if data(it));
        match self {
            Self::Barrier => true,
            Self::Bcast { buffer, .. } => data(buffer),
            Self::Gather { send, receive, .. } => send.as_ref().is_none_or(data) && receive.as_ref().is_none_or(blocks),
            Self::Scatter { send, receive, .. } => {
                send.as_ref().is_none_or(blocks) && receive.as_ref().is_none_or(data)
            }
            Self::Allgather { send, receive } => send.as_ref().is_none_or(data) && blocks(receive),
            Self::Alltoall { send, receive } => send.as_ref().is_none_or(blocks) && blocks(receive),
            Self::Reduce { operands, .. } | Self::Allreduce(operands) | Self::Scan { operands, .. } => {
                operands.is_plain()
            }
            Self::ReduceScatter { .. } | Self::Neighbours { .. } => false,
        }
    }

    /// [`Arguments::check_apart`]; and begins the operation if it is a short one, of which only the buffers have to
    /// live on.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`, no memory.
    fn begin_plain(&self, group: &Group<'_>) -> Outcome<Option<coll::Small>> {
        let described = self.call();
        apart::described(group, &described)?;
        // SAFETY: checked arguments of this call; the buffers stay until the operation is complete.
        let small = unsafe { coll::begin_plain(group, &described) };
        small.map_err(|error| group.failure(error))
    }

    /// Whether the operation may be one of a few bytes ([`Arguments::begin_plain`]).
    #[inline]
    fn may_be_short(&self) -> bool {
        match self {
            Self::Barrier => true,
            Self::Bcast { buffer, .. } => buffer.bytes() <= coll::SMALL_MAX,
            Self::Allreduce(operands) | Self::Reduce { operands, .. } => operands.bytes() <= coll::SMALL_MAX,
            _ => false,
        }
    }

    /// Starts the operation and gives the program a handle of it. The arguments, or why there are none, are handed on
    /// as they are: each move would read all of what was just written in pieces.
    ///
    /// # Errors
    /// Those of the arguments; no memory, no handle.
    fn start(
        checked: Outcome<Self>,
        call: &Call<'_, A>,
        comm: &Comm,
        handle: A::Comm,
        mut target: Place<'_, A::Request>,
    ) -> Outcome<()> {
        let comm_handle = handle.neutral();
        let Some(inter) = comm.inter() else {
            let group = comm.collective();
            if let Ok(arguments) = &checked {
                if arguments.may_be_short()
                    && let Some(small) = arguments.begin_plain(&group)?
                {
                    return publish_small(call, small, comm_handle, target);
                }
                if arguments.is_plain() && arguments.start_again(call, &group, comm_handle, target.lent())? {
                    return Ok(());
                }
            }
            return Self::start_in(checked?, call, &group, comm_handle, target);
        };
        let arguments = RankBox::<dyn Describe>::new(&mut call.rank().enter(), checked?, |it| it);
        let arguments = arguments.map_err(|error| inter.failure(error))?;
        // SAFETY: the arguments live in the request's state until the operation is complete.
        let started = unsafe { coll::start_between(&inter, &arguments.call()) };
        let request = started.map_err(|error| inter.failure(error))?;
        let operation = Operation::new(request, comm_handle);
        publish(call, State::Collective(operation, arguments), target)
    }

    /// Starts the operation in one group with a record that is kept, in its slot. The arguments are
    /// [plain](Arguments::is_plain): they refer to the program's buffers and to what lives for ever, so nothing of them
    /// is kept. `false`: there is no such record, or the group has no rows; nothing has begun.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`, no memory, no handle.
    #[inline(never)]
    fn start_again(
        &self,
        call: &Call<'_, A>,
        group: &Group<'_>,
        comm: u32,
        target: Place<'_, A::Request>,
    ) -> Outcome<bool> {
        let spares = &call.pending().spares;
        // One claim for all of it.
        let mut claim = call.rank().enter();
        let Some(spare) = spares.last_collective() else {
            return Ok(false);
        };
        let described = self.call();
        apart::described(group, &described)?;
        let record = Record::Spent(&spare.operation().request);
        let (mut started, mut left) = (None, Left::Nothing);
        let results = (&mut started, &mut left);
        // SAFETY: buffers of this call, which stay until the operation is complete, and types that always do. Nobody
        // releases the request before this call has returned.
        let begun = unsafe { coll::begin_claimed(&mut claim, group, &described, record, results) };
        begun.map_err(|error| group.failure(error))?;
        match started {
            Some(Started::Again) => {
                spares.take_collective();
                spare.operation().comm.set(comm);
                let handle = dynamic(Kind::Request, spare.index);
                target.write(A::Request::from_neutral(call.context(), handle));
                drop(claim);
                left.finish();
                Ok(true)
            }
            Some(Started::Small(small)) => {
                drop(claim);
                publish_small(call, small, comm, target).map(|()| true)
            }
            Some(Started::Request(_)) => unreachable!("the record is the one that was given"),
            None => Ok(false),
        }
    }

    /// Starts the operation in one group, within which its arguments have to live until it is complete.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`, no memory, no handle.
    #[inline(never)]
    fn start_in(self, call: &Call<'_, A>, group: &Group<'_>, comm: u32, target: Place<'_, A::Request>) -> Outcome<()> {
        let failure = |error| group.failure(error);
        let record = match self.is_plain() {
            true => Record::Plain,
            false => Record::Fresh,
        };
        // One claim for all of it.
        let mut claim = call.rank().enter();
        let arguments = RankBox::<dyn Describe>::new(&mut claim, self, |it| it);
        let arguments = arguments.map_err(failure)?;
        let described = arguments.call();
        apart::described(group, &described)?;
        let (mut started, mut left) = (None, Left::Nothing);
        let results = (&mut started, &mut left);
        // SAFETY: the arguments live in the request's state until the operation is complete, and nobody gives that back
        // before this call has returned, or at its end.
        let begun = unsafe { coll::begin_claimed(&mut claim, group, &described, record, results) };
        begun.map_err(failure)?;
        let state = match started {
            Some(Started::Small(small)) => State::Small(small, Some(arguments), comm),
            Some(Started::Request(request)) => State::Collective(Operation::new(request, comm), arguments),
            Some(Started::Again) => unreachable!("no record was given"),
            None => {
                drop(claim);
                // SAFETY: as above.
                let started = unsafe { coll::start(group, &arguments.call()) };
                let operation = Operation::new(started.map_err(failure)?, comm);
                return publish(call, State::Collective(operation, arguments), target);
            }
        };
        let published = publish_claimed(call, &mut claim, state, target);
        drop(claim);
        left.finish();
        published.map_err(|state| {
            state.release(&mut call.rank().enter());
            neutral::ERR_NO_MEM.into()
        })
    }

    /// Gives the program a handle of an inactive operation.
    ///
    /// # Errors
    /// No memory, no handle.
    fn init(self, call: &Call<'_, A>, comm: &Comm, handle: A::Comm, target: Place<'_, A::Request>) -> Outcome<()> {
        self.check_apart(comm)?;
        let members = match comm.inter() {
            Some(inter) => inter.local.world.len() + inter.remote.len(),
            None => comm.collective().world.len(),
        };
        let operation = match comm.inter() {
            Some(inter) => coll::Repeated::open_between(&inter),
            None => {
                let group = comm.collective();
                let compared = coll::compare_persistent(&group, &self.call());
                compared.and_then(|()| coll::Repeated::open(&group)).map_err(|error| group.failure(error))?
            }
        };
        let repeated = Repeated { operation, members, comm: handle.neutral(), arguments: Box::new(self) };
        publish_kind(call, repeated, target)
    }
}

//! A collective call as a value, so that one description serves all its forms.

use super::round::runs_others;
use super::schedule::{AT_ONCE_MAX, start_alone};
use super::{Blocks, Group, Reduction, Scan};
use crate::EngineError;
use crate::coll::state::owner_of;
use crate::datatype::Layout;
use crate::message::Status;
use crate::wait::{self, WaitKind};

/// One edge to or from a member of a communicator with a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its rank; `None` beyond the edge of a grid.
    pub rank: Option<u32>,
    /// Number of what travels along this edge, the same at both ends. Several edges between two
    /// members with one number belong together in the order in which both list them.
    pub lane: u32,
}

/// A member's arguments of one collective operation. In place is `None`, as the module page says.
#[derive(Clone, Copy)]
pub enum Call<'a> {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast`.
    Bcast {
        /// The data, or room for it.
        buffer: Layout<'a>,
        /// Member that has the data.
        root: u32,
    },
    /// `MPI_Gather`, `MPI_Gatherv`.
    Gather {
        /// The member's block.
        send: Option<Layout<'a>>,
        /// Room for all blocks, at the root.
        receive: Option<Blocks<'a>>,
        /// Member that gets the blocks.
        root: u32,
    },
    /// `MPI_Scatter`, `MPI_Scatterv`.
    Scatter {
        /// All blocks, at the root.
        send: Option<Blocks<'a>>,
        /// Room for the member's block.
        receive: Option<Layout<'a>>,
        /// Member that has the blocks.
        root: u32,
    },
    /// `MPI_Allgather`, `MPI_Allgatherv`.
    Allgather {
        /// The member's block.
        send: Option<Layout<'a>>,
        /// Room for all blocks.
        receive: Blocks<'a>,
    },
    /// `MPI_Alltoall`, `MPI_Alltoallv`, `MPI_Alltoallw`.
    Alltoall {
        /// A block for each member.
        send: Option<Blocks<'a>>,
        /// Room for a block of each member.
        receive: Blocks<'a>,
    },
    /// `MPI_Reduce`.
    Reduce {
        /// Operand, result at the root, and operation.
        reduction: Reduction<'a>,
        /// Member that gets the result.
        root: u32,
    },
    /// `MPI_Allreduce`.
    Allreduce {
        /// Operand, result and operation.
        reduction: Reduction<'a>,
    },
    /// `MPI_Reduce_scatter`, `MPI_Reduce_scatter_block`.
    ReduceScatter {
        /// Operand, result and operation; the count is that of all members together.
        reduction: Reduction<'a>,
        /// Elements of each member's share.
        counts: &'a [i64],
    },
    /// `MPI_Scan`, `MPI_Exscan`.
    Scan {
        /// Operand, result and operation.
        reduction: Reduction<'a>,
        /// Which of the two.
        kind: Scan,
    },
    /// `MPI_Neighbor_allgather(v)` and `MPI_Neighbor_alltoall(v,w)`.
    Neighbours {
        /// From whom the member receives, in the order of the blocks.
        sources: &'a [Neighbour],
        /// To whom it sends, in the order of the blocks.
        destinations: &'a [Neighbour],
        /// A block for each destination, or, with `to_all`, one for all of them.
        send: Blocks<'a>,
        /// Whether every destination gets block 0.
        to_all: bool,
        /// Room for a block of each source.
        receive: Blocks<'a>,
    },
}

/// Runs the operation and waits for its end.
///
/// # Safety
/// The buffers are live, as the operation's own function says.
///
/// # Errors
/// Those of the operation's own function.
pub unsafe fn run(group: &Group<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe {
        match *call {
            Call::Barrier => super::barrier(group),
            Call::Bcast { buffer, root } => super::bcast(group, buffer, root),
            Call::Gather {
                send,
                receive,
                root,
            } => super::gather(group, send, receive, root),
            Call::Scatter {
                send,
                receive,
                root,
            } => super::scatter(group, send, receive, root),
            Call::Allgather { send, receive } => super::allgather(group, send, receive),
            Call::Alltoall { send, receive } => super::alltoall(group, send, receive),
            Call::Reduce { reduction, root } => super::reduce(group, &reduction, root),
            Call::Allreduce { reduction } => super::allreduce(group, &reduction),
            Call::ReduceScatter { reduction, counts } => {
                super::reduce_scatter(group, &reduction, counts)
            }
            Call::Scan { reduction, kind } => super::scan(group, &reduction, kind),
            Call::Neighbours { .. } => run_schedule(group, call, Movers::Everyone),
        }
    }
}

/// Who moves the data of a schedule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Movers {
    /// The last member to come; the others let it run.
    Last,
    /// All who have time.
    Everyone,
}

/// Runs the operation as a schedule.
///
/// # Safety
/// As for [`run`].
pub(super) unsafe fn run_schedule(
    group: &Group<'_>,
    call: &Call<'_>,
    movers: Movers,
) -> Result<(), EngineError> {
    let alone = match movers {
        Movers::Last => u64::MAX,
        Movers::Everyone => AT_ONCE_MAX,
    };
    // SAFETY: the caller's buffers, which live to the end of this call.
    let request = unsafe { start_alone(group, call, alone)? };
    if movers == Movers::Everyone || !runs_others(group, &mut || request.is_complete()) {
        wait::until(owner_of(group.rank), WaitKind::Collective, || {
            request.is_complete()
        });
    }
    let error = request.status().error;
    request.release(&mut group.rank.enter());
    match error {
        Status::TRUNCATE => Err(EngineError::Truncated {
            message: 0,
            buffer: 0,
        }),
        _ => Ok(()),
    }
}

impl<'a> Call<'a> {
    /// The arguments of a reducing operation.
    pub(super) fn reduction(&self) -> Option<&Reduction<'a>> {
        match self {
            Self::Reduce { reduction, .. }
            | Self::Allreduce { reduction }
            | Self::ReduceScatter { reduction, .. }
            | Self::Scan { reduction, .. } => Some(reduction),
            _ => None,
        }
    }
}

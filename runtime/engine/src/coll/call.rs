//! A collective call as a value, so that one description serves all its forms.

use super::{Blocks, Group, Reduction, Scan};
use crate::EngineError;
use crate::datatype::Layout;

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
        }
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

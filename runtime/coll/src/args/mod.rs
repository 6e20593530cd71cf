//! What a member calls a collective with, as plain values: one description serves the blocking, the nonblocking and the
//! persistent form of an operation.

mod blocks;
mod form;
mod kind;
mod label;
pub(crate) mod parts;
mod reduction;
pub(crate) mod small;

pub use blocks::Blocks;
pub(crate) use blocks::Layout;
pub(crate) use form::Form;
pub(crate) use kind::Kind;
pub(crate) use label::Label;
pub use label::Table;
pub(crate) use reduction::elements_of;
pub use reduction::{Reduction, Scan};

use super::fold::Folder;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

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
        buffer: Buffer<'a>,
        /// Member that has the data.
        root: u32,
    },
    /// `MPI_Gather`, `MPI_Gatherv`.
    Gather {
        /// The member's block.
        send: Option<Buffer<'a>>,
        /// Room for all blocks, at the root.
        receive: Option<Blocks<'a>>,
        /// Member that gets the blocks.
        root: u32,
        /// Whether all blocks are equally long, as all members know of `MPI_Gather`.
        is_even: bool,
    },
    /// `MPI_Scatter`, `MPI_Scatterv`.
    Scatter {
        /// All blocks, at the root.
        send: Option<Blocks<'a>>,
        /// Room for the member's block.
        receive: Option<Buffer<'a>>,
        /// Member that has the blocks.
        root: u32,
        /// Whether all blocks are equally long, as all members know of `MPI_Scatter`.
        is_even: bool,
    },
    /// `MPI_Allgather`, `MPI_Allgatherv`.
    Allgather {
        /// The member's block.
        send: Option<Buffer<'a>>,
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

impl<'a> Call<'a> {
    /// The member that the operation gives data to or takes it from; 0 if all are alike.
    pub(crate) fn root(&self) -> usize {
        match *self {
            Self::Bcast { root, .. }
            | Self::Gather { root, .. }
            | Self::Scatter { root, .. }
            | Self::Reduce { root, .. } => root as usize,
            _ => 0,
        }
    }

    /// Whether it has a root.
    pub(crate) fn has_root(&self) -> bool {
        matches!(self, Self::Bcast { .. } | Self::Gather { .. } | Self::Scatter { .. } | Self::Reduce { .. })
    }

    /// Whether it is one whose blocks have any length (`MPI_Gatherv`, `MPI_Alltoallw`).
    #[inline]
    pub(crate) fn is_varying(&self) -> bool {
        match self {
            Self::Gather { is_even, .. } | Self::Scatter { is_even, .. } => !is_even,
            Self::Allgather { receive, .. } | Self::Alltoall { receive, .. } => !receive.are_equal(),
            _ => false,
        }
    }

    /// What a reducing operation folds with.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] when a predefined operation does not take the type.
    pub(crate) fn folder(&self) -> Result<Option<Folder<'a>>, EngineError> {
        let reduction = self.reduction();
        let folder = reduction.map(|reduction| Folder::new(reduction.op, reduction.datatype()));
        folder.transpose()
    }

    /// The same arguments for an operation that goes on after the caller's return.
    ///
    /// # Safety
    /// What they refer to lives as long as the operation uses them.
    #[inline]
    pub(crate) unsafe fn outliving(&self) -> &Call<'static> {
        // SAFETY: the caller's promise; lifetimes alone differ.
        unsafe { core::mem::transmute::<&Call<'_>, &Call<'static>>(self) }
    }

    /// The buffer of a broadcast.
    #[inline]
    pub(crate) fn broadcasts(&self) -> Option<Buffer<'a>> {
        match *self {
            Self::Bcast { buffer, .. } => Some(buffer),
            _ => None,
        }
    }

    /// The arguments of a reducing operation.
    pub(crate) fn reduction(&self) -> Option<&Reduction<'a>> {
        match self {
            Self::Reduce { reduction, .. }
            | Self::Allreduce { reduction }
            | Self::ReduceScatter { reduction, .. }
            | Self::Scan { reduction, .. } => Some(reduction),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn reduction_mut(&mut self) -> Option<&mut Reduction<'a>> {
        match self {
            Self::Reduce { reduction, .. }
            | Self::Allreduce { reduction }
            | Self::ReduceScatter { reduction, .. }
            | Self::Scan { reduction, .. } => Some(reduction),
            _ => None,
        }
    }
}

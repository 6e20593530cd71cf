//! The operations of collectives, and their names.

use super::{Call, Scan};

/// The operation.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
    NeighborAllgather,
    NeighborAlltoall,
}

impl Kind {
    /// With their names: the first letter, and the rest.
    pub(crate) const ALL: [(Self, char, &'static str); 13] = [
        (Self::Barrier, 'B', "arrier"),
        (Self::Bcast, 'B', "cast"),
        (Self::Gather, 'G', "ather"),
        (Self::Scatter, 'S', "catter"),
        (Self::Allgather, 'A', "llgather"),
        (Self::Alltoall, 'A', "lltoall"),
        (Self::Reduce, 'R', "educe"),
        (Self::Allreduce, 'A', "llreduce"),
        (Self::ReduceScatter, 'R', "educe_scatter"),
        (Self::Scan, 'S', "can"),
        (Self::Exscan, 'E', "xscan"),
        (Self::NeighborAllgather, 'N', "eighbor_allgather"),
        (Self::NeighborAlltoall, 'N', "eighbor_alltoall"),
    ];

    /// Whether a member may give less than others have room for.
    pub(crate) fn may_differ(self) -> bool {
        matches!(self, Self::Gather | Self::Scatter | Self::Allgather | Self::Alltoall)
    }

    #[inline(always)]
    pub(crate) fn of(call: &Call<'_>) -> Self {
        match call {
            Call::Barrier => Self::Barrier,
            Call::Bcast { .. } => Self::Bcast,
            Call::Gather { .. } => Self::Gather,
            Call::Scatter { .. } => Self::Scatter,
            Call::Allgather { .. } => Self::Allgather,
            Call::Alltoall { .. } => Self::Alltoall,
            Call::Reduce { .. } => Self::Reduce,
            Call::Allreduce { .. } => Self::Allreduce,
            Call::ReduceScatter { .. } => Self::ReduceScatter,
            Call::Scan { kind: Scan::Inclusive, .. } => Self::Scan,
            Call::Scan { kind: Scan::Exclusive, .. } => Self::Exscan,
            Call::Neighbours { to_all: true, .. } => Self::NeighborAllgather,
            Call::Neighbours { to_all: false, .. } => Self::NeighborAlltoall,
        }
    }

    /// The end of the name of the nonblocking function of a kind, by number.
    pub(crate) fn name_of(number: u8) -> (char, &'static str) {
        let known = Self::ALL.get(usize::from(number));
        known.map_or(('?', ""), |it| (it.1.to_ascii_lowercase(), it.2))
    }

    /// Whether all members, or none, are in place. Scans say nothing of that, `MPI_Reduce_scatter` that it need not
    /// be so (MPI 4.1, 6.10.2); the form with equal blocks is not told apart from it.
    pub(crate) fn is_in_place_together(self) -> bool {
        matches!(self, Self::Allgather | Self::Alltoall | Self::Allreduce)
    }
}

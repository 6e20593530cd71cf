//! The per-member blocks of a buffer, in the forms that collectives have for them.

use cohort_datatype::{Buffer, Type, TypeRef};
use core::ops::Range;

/// A buffer with one block for each member of a communicator.
#[derive(Clone, Copy)]
pub enum Blocks<'a> {
    /// Blocks of equal length one after the other (`MPI_Gather`).
    Equal(
        /// The first block.
        Buffer<'a>,
    ),
    /// Blocks of any length anywhere (`MPI_Gatherv`).
    Varying {
        /// The buffer's address.
        base: *mut u8,
        /// Elements of each member's block.
        counts: &'a [i64],
        /// Displacement of each block, in extents of the type.
        displacements: &'a [i64],
        /// The elements' type.
        datatype: &'a Type,
    },
    /// Blocks of any length and type anywhere (`MPI_Alltoallw`).
    Typed {
        /// The buffer's address.
        base: *mut u8,
        /// Elements of each member's block.
        counts: &'a [i64],
        /// Displacement of each block, in bytes.
        displacements: &'a [i64],
        /// The type of each block.
        datatypes: &'a [TypeRef],
    },
}

impl<'a> Blocks<'a> {
    /// The block of `member`.
    #[must_use]
    pub fn block(&self, member: usize) -> Buffer<'a> {
        let at = |base: *mut u8, bytes: i64| base.wrapping_offset(bytes as isize);
        match *self {
            Self::Equal(first) => first.part(member as u64 * first.count, first.count),
            Self::Varying {
                base,
                counts,
                displacements,
                datatype,
            } => {
                let bytes = displacements[member].wrapping_mul(datatype.extent());
                Buffer::new(at(base, bytes), counts[member] as u64, datatype)
            }
            Self::Typed {
                base,
                counts,
                displacements,
                datatypes,
            } => {
                let start = at(base, displacements[member]);
                Buffer::new(start, counts[member] as u64, &datatypes[member])
            }
        }
    }

    /// Whether all blocks are of one buffer, in the order of their members and without gaps.
    pub(crate) fn are_equal(&self) -> bool {
        matches!(self, Self::Equal(_))
    }

    /// The blocks of consecutive members as one buffer, if they are.
    pub(crate) fn several(&self, members: Range<usize>) -> Option<Buffer<'a>> {
        match *self {
            Self::Equal(first) => {
                let count = (members.end - members.start) as u64;
                Some(first.part(members.start as u64 * first.count, count * first.count))
            }
            _ => None,
        }
    }

    /// The bytes that the blocks of `members` members pack to, when all are equally long.
    pub(crate) fn equal_bytes(&self, members: usize) -> Option<u64> {
        match self {
            Self::Equal(first) => first.bytes().checked_mul(members as u64),
            _ => None,
        }
    }
}

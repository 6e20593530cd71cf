//! Why a call on a window fails.

use core::fmt;

/// Failures of one-sided calls. The binding turns them into MPI error classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RmaError {
    /// The rank's heap could not grow.
    OutOfMemory,
    /// No epoch of the caller gives access to this member.
    NoAccess {
        /// Its rank in the window's group.
        target: u32,
    },
    /// A synchronisation call that does not fit the epochs that are open; says why.
    Misplaced(&'static str),
    /// The same for a call that names a member.
    MisplacedAt {
        /// Why.
        what: &'static str,
        /// The member's rank in the window's group.
        target: u32,
    },
    /// The target's elements lie outside of its part of the window.
    OutOfRange {
        /// The target's rank in the window's group.
        target: u32,
        /// First byte, from the beginning of the target's part.
        from: i64,
        /// The byte behind the last one.
        to: i64,
        /// Bytes of the target's part.
        size: u64,
    },
    /// The target's elements lie in no memory that it has attached.
    NotAttached {
        /// The target's rank in the window's group.
        target: u32,
        /// Address of the first byte.
        from: u64,
        /// Address behind the last one.
        to: u64,
    },
    /// The same, found out when the target's epoch had begun: an operation of an epoch that ends.
    LostTarget,
    /// Memory that is attached overlaps some that is.
    Overlaps {
        /// Where it begins.
        from: u64,
    },
    /// One buffer is too short for what the other holds.
    Truncated {
        /// Bytes to move.
        bytes: u64,
        /// Room for them.
        room: u64,
    },
    /// A datatype that is not made of elements of one class, or classes that differ.
    BadType,
    /// The operation does not take this type.
    BadOp,
    /// Not provided.
    Unsupported,
    /// A member has failed, and the call would wait.
    Failed,
    /// The window was revoked.
    Revoked,
}

impl fmt::Display for RmaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OutOfMemory => f.write_str("no memory left for epochs"),
            Self::NoAccess { target } => {
                write!(f, "no epoch gives access to rank {target}: lock, start or fence first")
            }
            Self::Misplaced(what) => f.write_str(what),
            Self::MisplacedAt { what, target } => write!(f, "rank {target}: {what}"),
            Self::OutOfRange { target, from, to, size } => {
                write!(f, "bytes {from} to {to} of the {size} bytes of rank {target}")
            }
            Self::NotAttached { target, from, to } => {
                write!(f, "addresses {from:#x} to {to:#x} are not attached at rank {target}")
            }
            Self::LostTarget => f.write_str("an operation of the epoch lies outside of what the target has attached"),
            Self::Overlaps { from } => {
                write!(f, "memory at {from:#x} overlaps memory that is attached")
            }
            Self::Truncated { bytes, room } => {
                write!(f, "{bytes} bytes for elements of {room} bytes")
            }
            Self::BadType => f.write_str("the types do not have elements of one and the same class"),
            Self::BadOp => f.write_str("the operation does not take this type"),
            Self::Unsupported => f.write_str("not supported"),
            Self::Failed => f.write_str(
                "a member of the window has failed: what it left can be read (MPI_Win_shared_query, or MPI_Get with \
                 MPI_MODE_NOCHECK), and the window can be freed",
            ),
            Self::Revoked => f.write_str("the window was revoked (MPIX_Win_revoke); it can be freed"),
        }
    }
}

impl core::error::Error for RmaError {}

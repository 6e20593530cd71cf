//! The vocabulary of messages: envelopes, what a receive asks for, and what it is told.

use cohort_abi::neutral;
use cohort_base::Peer;

/// What identifies a message to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Context number of the communicator (even: point to point, odd: collectives).
    pub context: u32,
    /// The sender's rank in the communicator.
    pub source: i32,
    /// The message's tag.
    pub tag: i32,
}

/// When a send is complete (MPI-4.1, 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// When the buffer may be used again.
    Standard,
    /// When the receive has begun.
    Synchronous,
    /// As standard; the receive was posted before.
    Ready,
    /// As standard; the buffer is a private copy ([`crate::isend_owned`]).
    Buffered,
}

/// Whom a receive or probe takes messages from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `MPI_ANY_SOURCE`.
    Any,
    /// One rank.
    Rank {
        /// Who it is.
        peer: Peer,
        /// Its rank in the communicator, compared with [`Envelope::source`].
        comm_rank: i32,
    },
}

/// Which tags a receive or probe takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `MPI_ANY_TAG`.
    Any,
    /// This one.
    Is(i32),
}

/// Outcome of a receive (`MPI_Status`); numbers are those of the MPI-5 ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The sender's rank in the communicator.
    pub source: i32,
    /// The message's tag.
    pub tag: i32,
    /// [`Status::SUCCESS`] or an error class.
    pub error: i32,
    /// Bytes of a truncated message beyond its buffer; `u32::MAX` for as many or more. With [`Status::TYPE`] the types
    /// (`cohort_p2p`, `compared`).
    pub beyond: u32,
    /// Bytes of data that arrived in the buffer (for probes: bytes of the message).
    pub bytes: i64,
    /// Whether the operation was cancelled.
    pub cancelled: bool,
}

impl Status {
    /// `MPI_SUCCESS`.
    pub const SUCCESS: i32 = neutral::SUCCESS;
    /// `MPI_ERR_TRUNCATE`: the message was longer than the buffer; its beginning was delivered.
    pub const TRUNCATE: i32 = neutral::ERR_TRUNCATE;
    /// `MPI_ERR_TYPE`: the receive is of another type than the message, which was delivered all the same.
    pub const TYPE: i32 = neutral::ERR_TYPE;
    /// `MPI_ERR_NOT_SAME`: members of a collective disagree; [`Status::bytes`] is the number of what was found.
    pub const NOT_SAME: i32 = neutral::ERR_NOT_SAME;
    /// `MPI_ERR_NO_MEM`.
    pub const NO_MEMORY: i32 = neutral::ERR_NO_MEM;
    /// `MPI_ERR_RMA_RANGE`: the target's elements were not in its part of the window any more.
    pub const RMA_RANGE: i32 = neutral::ERR_RMA_RANGE;
    /// `MPIX_ERR_PROC_FAILED`: the other end has failed, or another member of the collective.
    pub const PROC_FAILED: i32 = neutral::MPIX_ERR_PROC_FAILED;
    /// `MPIX_ERR_PROC_FAILED_PENDING`: somebody has failed who might have sent the message.
    pub const PROC_FAILED_PENDING: i32 = neutral::MPIX_ERR_PROC_FAILED_PENDING;
    /// `MPIX_ERR_REVOKED`: the communicator was revoked.
    pub const REVOKED: i32 = neutral::MPIX_ERR_REVOKED;
    /// `MPI_ANY_SOURCE`.
    pub const ANY_SOURCE: i32 = neutral::ANY_SOURCE;
    /// `MPI_ANY_TAG`.
    pub const ANY_TAG: i32 = neutral::ANY_TAG;

    /// What an operation without a message gives ("empty status", MPI-4.1, 3.7.3).
    pub const EMPTY: Self = Self {
        source: Self::ANY_SOURCE,
        tag: Self::ANY_TAG,
        error: Self::SUCCESS,
        beyond: 0,
        bytes: 0,
        cancelled: false,
    };

    /// The status of a message with this envelope of which `bytes` bytes were delivered.
    #[inline]
    #[must_use]
    pub fn of(envelope: Envelope, bytes: u64) -> Self {
        Self {
            source: envelope.source,
            tag: envelope.tag,
            error: Self::SUCCESS,
            beyond: 0,
            bytes: bytes as i64,
            cancelled: false,
        }
    }

    /// The same for a message of `message` bytes into a buffer of `buffer` bytes.
    #[inline]
    #[must_use]
    pub fn delivered(envelope: Envelope, message: u64, buffer: u64) -> Self {
        match message > buffer {
            true => Self::truncated(envelope, message, buffer),
            false => Self::of(envelope, message),
        }
    }

    #[cold]
    fn truncated(envelope: Envelope, message: u64, buffer: u64) -> Self {
        Self {
            error: Self::TRUNCATE,
            beyond: u32::try_from(message - buffer).unwrap_or(u32::MAX),
            ..Self::of(envelope, buffer)
        }
    }
}

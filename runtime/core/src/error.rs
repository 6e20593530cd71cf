//! Why a call of the engine fails.

use crate::message::Status;
use core::fmt;

/// Failures of the engine. The binding turns them into MPI error classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineError {
    /// The rank's heap could not grow.
    OutOfMemory,
    /// A message was longer than the buffer it was received into, or what all members of a collective are to give the
    /// same length was shorter.
    Truncated {
        /// Bytes of the message; 0 where no sizes are known, or there are none.
        message: u64,
        /// Bytes of the buffer.
        buffer: u64,
    },
    /// The operation is not defined for this datatype, or not provided.
    Unsupported,
    /// The members of a collective disagree about it; what was found has this number (`COHORT_CHECK=members`).
    Disagreement(u32),
    /// A process that is needed has failed.
    Failed,
    /// A process has failed that might have sent the message.
    Pending,
    /// The communicator was revoked.
    Revoked,
}

impl EngineError {
    /// That of a status, if it tells of failed processes.
    #[must_use]
    pub fn of_failure(status_error: i32) -> Option<Self> {
        match status_error {
            Status::PROC_FAILED => Some(Self::Failed),
            Status::PROC_FAILED_PENDING => Some(Self::Pending),
            Status::REVOKED => Some(Self::Revoked),
            _ => None,
        }
    }

    /// What a status says for it, if it tells of failed processes.
    #[must_use]
    pub fn as_failure(self) -> Option<i32> {
        match self {
            Self::Failed => Some(Status::PROC_FAILED),
            Self::Pending => Some(Status::PROC_FAILED_PENDING),
            Self::Revoked => Some(Status::REVOKED),
            _ => None,
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("no memory left for messages"),
            Self::Truncated { message: 0, .. } => f.write_str(
                "a member gives more than another has room for, or operands or broadcasts differ in length; \
                 COHORT_CHECK=members names the members",
            ),
            Self::Truncated { message, buffer } if message < buffer => {
                write!(f, "{message} bytes where {buffer} are expected, and all members are to name as many")
            }
            Self::Truncated { message, buffer } => {
                write!(f, "a message of {message} bytes for a buffer of {buffer} bytes")
            }
            Self::Unsupported => f.write_str("the operation is not supported"),
            Self::Disagreement(_) => f.write_str("the members of a collective disagree"),
            Self::Failed => f.write_str("a process has failed"),
            Self::Pending => f.write_str("a process has failed that might have sent the message"),
            Self::Revoked => f.write_str("the communicator was revoked"),
        }
    }
}

impl core::error::Error for EngineError {}

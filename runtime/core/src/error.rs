//! Why a call of the engine fails.

use core::fmt;

/// Failures of the engine. The binding turns them into MPI error classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineError {
    /// The rank's heap could not grow.
    OutOfMemory,
    /// A message was longer than the buffer it was received into.
    Truncated {
        /// Bytes of the message; 0 where no sizes are known.
        message: u64,
        /// Bytes of the buffer.
        buffer: u64,
    },
    /// The operation is not defined for this datatype, or not provided.
    Unsupported,
    /// The members of a collective disagree about it; what was found has this number (`COHORT_CHECK=members`).
    Disagreement(u32),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("no memory left for messages"),
            Self::Truncated { message: 0, .. } => f.write_str(
                "a member gives more than another has room for, or operands differ in length; \
                 COHORT_CHECK=members names the members",
            ),
            Self::Truncated { message, buffer } => {
                write!(f, "a message of {message} bytes for a buffer of {buffer} bytes")
            }
            Self::Unsupported => f.write_str("the operation is not supported"),
            Self::Disagreement(_) => f.write_str("the members of a collective disagree"),
        }
    }
}

impl core::error::Error for EngineError {}

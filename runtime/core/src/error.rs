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
        /// Bytes of the message.
        message: u64,
        /// Bytes of the buffer.
        buffer: u64,
    },
    /// The operation is not defined for this datatype, or not provided.
    Unsupported,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("no memory left for messages"),
            Self::Truncated { message, buffer } => {
                write!(
                    f,
                    "a message of {message} bytes for a buffer of {buffer} bytes"
                )
            }
            Self::Unsupported => f.write_str("the operation is not supported"),
        }
    }
}

impl core::error::Error for EngineError {}

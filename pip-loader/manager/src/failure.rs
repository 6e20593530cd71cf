//! What can go wrong with a process manager.

use cohort_base::text::limit_behind;
use std::fmt;

/// Why a manager could not be used; `Display` is a message for the user.
#[derive(Debug)]
pub enum Failure {
    /// An environment variable makes no sense.
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The connection broke.
    Stream {
        /// What was being done.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The system has no thread or descriptor for this process.
    System {
        /// What was being done.
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The manager said something that the protocol does not have there.
    Unexpected {
        /// What should have come.
        expected: String,
        /// What came.
        got: String,
    },
    /// The manager refused a request.
    Refused {
        /// The request.
        request: String,
        /// The answer.
        answer: String,
    },
    /// A library cannot be loaded or lacks a function.
    Library {
        /// Its name.
        name: String,
        /// The dynamic linker's reason.
        reason: String,
    },
    /// A function of a library failed.
    Call {
        /// The function.
        function: &'static str,
        /// Its status.
        status: i32,
    },
    /// There is no network that suits; the fabric's reason.
    Network(String),
    /// The job has no place for this program; a sentence with the way out.
    NoPlace(String),
    /// What another node published makes no sense, or does not fit this node.
    Peer {
        /// The node.
        node: u32,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable { name, value } => {
                let all = if name.starts_with("PMI_") { "PMI_*" } else { name };
                write!(
                    f,
                    "environment variable {name}=\"{value}\", by which a process manager speaks to this program, \
                     makes no sense; unset {all} to start without a manager"
                )
            }
            Self::Stream { what, source } => {
                write!(f, "the process manager is gone: {what}: {source}")
            }
            Self::System { what, source } => {
                write!(f, "{what}: {source}{}", limit_behind(source.raw_os_error().unwrap_or(0)))
            }
            Self::Unexpected { expected, got } => {
                write!(f, "the process manager said \"{}\" where \"{expected}\" belongs", got.trim_end())
            }
            Self::Refused { request, answer } => {
                write!(f, "the process manager refused \"{}\": \"{}\"", request.trim_end(), answer.trim_end())
            }
            Self::Library { name, reason } => write!(f, "cannot load {name}: {reason}"),
            Self::Call { function, status } => {
                write!(f, "the process manager failed: {function} returned {status}")?;
                match function.ends_with("_Init") {
                    true => f.write_str("; if it is not there any more, unset PMIX_* to start without it"),
                    false => Ok(()),
                }
            }
            Self::NoPlace(reason) => f.write_str(reason),
            Self::Network(reason) => write!(f, "no network: {reason}"),
            Self::Peer { node, problem } => write!(f, "node {node} of the job: {problem}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Stream { source, .. } | Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

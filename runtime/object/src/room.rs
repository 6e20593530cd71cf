//! Whether the members of a communicator have room for what they are about to make together. One that has none takes
//! part all the same and says so, so that all of them fail in the same call.

use crate::failure::Error;
use crate::{Outcome, blame};
use cohort_abi::neutral;
use cohort_engine::Rank;

/// What a rank lacks for one communicator or window more. Of several members' the largest counts.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Nothing.
    There,
    /// Memory.
    NoMemory,
    /// A handle.
    NoHandle,
}

impl Room {
    /// The same of a rank that gets one only if `needed`.
    pub fn if_needed(self, needed: bool) -> Self {
        if needed { self } else { Self::There }
    }

    /// As members tell it to each other.
    #[must_use]
    pub const fn word(self) -> i32 {
        self as i32
    }

    /// What members say with this word.
    pub const fn of_word(word: i32) -> Self {
        match word {
            0 => Self::There,
            1 => Self::NoMemory,
            _ => Self::NoHandle,
        }
    }

    /// The error of all members when this is what one of them lacks; `what` is what they make.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM` without memory, `MPI_ERR_OTHER` without a handle.
    pub fn of_all(self, rank: &Rank, what: &str) -> Outcome<()> {
        match self {
            Self::There => Ok(()),
            Self::NoMemory => Err(blame(neutral::ERR_NO_MEM, format_args!("a member is short of memory for a {what}"))),
            Self::NoHandle => Err(no_handle(rank, what)),
        }
    }
}

/// The error when as many communicators or windows as a rank may have are there.
#[cold]
fn no_handle(rank: &Rank, what: &str) -> Error {
    let most = rank.node().settings().handles_max;
    let words = format_args!("no {what} handle is left ({most}) at a member: free some");
    blame(neutral::ERR_OTHER, words)
}

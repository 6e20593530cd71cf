//! Files (MPI-5.0 chapter 14): which bytes of a file a rank sees, and how they are read and written.
//!
//! All of it runs in calls of the rank's own tasks, which have a table of descriptors of their own: the program's
//! threads, and those of the runtime's own that do what is under way ([`medium::Lent`]).
//!
//! # Layers
//! A module uses only modules above it in this table.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | views: displacement, etype and filetype as pieces of the file |
//! | [`datarep`] | data representations other than memory's |
//! | [`medium`] | how bytes get to the kernel and back |
//! | [`transfer`] | one rank's reads and writes |
//! | [`error`] | the kernel's error numbers in words |
//! | [`open`] | files come and go, and have sizes |
//! | [`mark`] | whether a descriptor still stands for a file |
//! | [`order`] | short data of all members in the order of ranks |
//! | [`file`] | what the members of a node share of an open file |
//! | [`collective`] | reads and writes of all members together |

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod collective;
pub mod datarep;
pub mod error;
pub mod file;
pub mod layout;
pub mod mark;
pub mod medium;
pub mod open;
pub mod order;
pub mod transfer;

pub use collective::{Terms, through_all};
pub use error::Words;
pub use file::Shared;
pub use layout::{Overflow, Piece, Pieces, View, ViewError};
pub use mark::Mark;
pub use medium::{Ask, Failure, Lent, Medium, Plain, Way};
pub use order::{Fate, Part};
pub use transfer::{Done, through};

#[cfg(test)]
mod joined_for_tests {
    use cohort_coll::Coll;
    use cohort_net::Network;
    use cohort_p2p::{P2p, Remote};
    use cohort_progress::Machinery;

    cohort_core::engine!(Network, P2p, Remote, Coll, Machinery);
    cohort_net::receivers!(Remote);
}

//! MPI's objects, as one rank sees them.
//!
//! Everything here is **owner only**: it may run user callbacks and uses the global allocator,
//! so no thief ever calls it. Values are neutral (those of the MPI-5 ABI); errors are neutral
//! error classes. What a user's callback looks like is the binding's business: this crate
//! holds it as a boxed trait ([`AttributeCallbacks`], [`ErrorCallback`]).
//!
//! | module | what it holds |
//! |---|---|
//! | [`objects`] | one rank's objects, by handle |
//! | [`slots`] | numbered slots: how a handle's index leads to its object |
//! | [`comm`] | communicators and the collective calls that make them |
//! | [`win`] | windows and the collective calls that make them |
//! | [`file`] | files: opening, views, pointers, reading and writing |
//! | [`group`] | groups and their algebra |
//! | [`attribute`] | keyvals, cached attributes |
//! | [`errhandler`] | error handlers |
//! | [`session`] | sessions and process sets |
//! | [`topology`] | grids and graphs, and who takes which place |
//! | [`rendezvous`] | how members agree on a new communicator's number without waiting |
//! | [`room`] | how all members fail when one has no handle left |
//! | [`error`] | error classes, codes and their texts |
//! | [`info`] | info objects |
//! | [`hints`] | hints of communicators, kinds of memory |
//! | `outside` | processes of other jobs: what they are known as, how the launcher reaches them |
//! | [`passing`] | files that are being opened or closed |
//! | [`policy`] | progress policies of communicators and windows |
//! | [`datatype`] | what the binding adds to a datatype: commit state, name, attributes |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod alignment;
pub mod attribute;
pub mod comm;
mod crew;
pub mod datatype;
pub mod errhandler;
pub mod error;
mod failure;
pub mod file;
pub mod group;
pub mod hints;
pub mod info;
mod name;
pub mod objects;
mod outside;
pub mod passing;
pub mod policy;
pub mod ports;
pub mod rendezvous;
pub mod room;
pub mod session;
pub mod slots;
#[cfg(test)]
mod tests;
pub mod topology;
pub mod win;

pub use attribute::{AttributeCallbacks, Attributes, Keyval, Owner, Value};
pub use comm::{Children, Comm, Share};
pub use datatype::Datatype;
pub use errhandler::{Errhandler, ErrorCallback};
pub use error::ErrorTable;
pub use failure::{Error, Outcome, blame};
pub use file::File;
pub use group::Group;
pub use hints::Hints;
pub use info::Info;
pub use objects::Objects;
pub use outside::number_among;
pub use room::Room;
pub use session::Session;
pub use slots::Slots;
pub use topology::Topology;
pub use win::Win;

/// The witness that the objects of this rank are used in a call of the program, as all objects are.
#[inline]
pub(crate) fn owner_of(rank: &cohort_engine::Rank) -> cohort_engine::Owner<'_> {
    // SAFETY: objects belong to one rank, whose tasks use them in calls of the program only (see the crate's page).
    unsafe { cohort_engine::Owner::new(rank) }
}

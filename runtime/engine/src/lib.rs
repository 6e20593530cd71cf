//! The engine: everything that moves bytes between the ranks of a node.
//!
//! This crate is **stealable** (`no_std`, no thread-local data): any task of the node may run it
//! for any rank whose claim it holds.
//!
//! | module | what it holds |
//! |---|---|
//! | [`node`], [`rank`], [`claim`] | who is there, and the right to act for a rank |
//! | [`p2p`], [`probe`] | the calls of the layers above: send, receive, probe, cancel |
//! | [`request`], [`message`] | what those calls take and give |
//! | [`wait`], [`progress`] | how a rank waits, and what it or a thief does meanwhile |
//! | [`protocol`] | how bytes travel: inline in a ring, in a block, or straight between user buffers |
//! | [`datatype`] | what lies where in a user's buffer |
//! | [`coll`], [`op`] | collectives and reduction operations |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod arch;
pub mod claim;
pub mod coll;
pub mod datatype;
pub mod error;
mod inbox;
pub mod lifecycle;
mod list;
mod matching;
pub mod message;
pub mod node;
pub mod op;
mod outbox;
pub mod p2p;
mod poller;
pub mod probe;
pub mod progress;
pub mod protocol;
pub mod rank;
mod report;
pub mod request;
mod ring;
pub mod wait;

pub use claim::Claim;
pub use cohort_base::LocalRank;
pub use error::EngineError;
pub use lifecycle::abort;
pub use message::{Envelope, SendMode, Source, Status, Tag};
pub use node::Node;
pub use p2p::{cancel, irecv, isend, isend_owned, recv, send};
pub use probe::{MessageRef, improbe, imrecv, iprobe, mprobe, probe};
pub use rank::Rank;
pub use request::RequestRef;

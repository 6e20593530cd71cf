//! The engine: everything that moves bytes between the ranks of a node.
//!
//! This crate is **stealable** (`no_std`, no thread-local data): any task of the node may run it
//! for any rank whose claim it holds.
//!
//! | module | what it holds |
//! |---|---|
//! | [`node`], [`rank`], [`claim`] | who is there, and the right to act for a rank |
//! | [`offload`] | posts that a dedicated worker does for a rank |
//! | [`p2p`], [`probe`](mod@probe) | the calls of the layers above: send, receive, probe, cancel |
//! | [`request`], [`message`] | what those calls take and give |
//! | [`wait`], [`progress`] | how a rank waits, and what it or a thief does meanwhile |
//! | [`protocol`] | how bytes travel: inline in a ring, in a block, or straight between user buffers |
//! | [`datatype`] | what lies where in a user's buffer |
//! | [`coll`], [`op`] | collectives and reduction operations |
//! | [`rma`] | windows: one-sided operations and their epochs |
//!
//! Under `--cfg loom` only the lock-free parts exist, for their models.
#![no_std]
#![cfg_attr(loom, allow(dead_code, reason = "the models use parts"))]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(not(loom))]
mod arch;
mod bell;
#[cfg(not(loom))]
pub mod claim;
#[cfg(not(loom))]
pub mod coll;
#[cfg(not(loom))]
mod courtesy;
#[cfg(not(loom))]
mod crew;
#[cfg(not(loom))]
pub mod error;
#[cfg(not(loom))]
mod guarded;
#[cfg(not(loom))]
mod helper;
#[cfg(not(loom))]
mod inbox;
#[cfg(not(loom))]
pub mod kept;
#[cfg(not(loom))]
mod kernel_thread;
#[cfg(not(loom))]
pub mod lifecycle;
#[cfg(not(loom))]
mod list;
#[cfg(not(loom))]
mod matching;
mod meeting;
pub mod message;
#[cfg(not(loom))]
mod net;
#[cfg(not(loom))]
pub mod node;
#[cfg(not(loom))]
mod observer;
#[cfg(not(loom))]
pub mod offload;
#[cfg(not(loom))]
mod outbox;
#[cfg(not(loom))]
pub mod p2p;
#[cfg(not(loom))]
pub mod partitioned;
#[cfg(not(loom))]
mod peers;
#[cfg(not(loom))]
mod policies;
#[cfg(not(loom))]
mod poller;
#[cfg(not(loom))]
pub mod probe;
#[cfg(not(loom))]
pub mod progress;
#[cfg(not(loom))]
pub mod protocol;
#[cfg(not(loom))]
pub mod rank;
#[cfg(not(loom))]
mod report;
#[cfg(not(loom))]
pub mod request;
mod ring;
pub mod rma;
mod rounds;
mod shares;
#[cfg(not(loom))]
mod signal;
#[cfg(all(test, not(loom)))]
mod testing;
#[cfg(not(loom))]
mod threads;
#[cfg(not(loom))]
pub mod wait;
#[cfg(not(loom))]
pub mod watch;

#[cfg(not(loom))]
pub use claim::Claim;
pub use cohort_base::{LocalRank, Peer};
pub use cohort_datatype as datatype;
pub use cohort_datatype::op;
#[cfg(not(loom))]
pub use error::EngineError;
#[cfg(not(loom))]
pub use lifecycle::abort;
pub use message::{Envelope, SendMode, Source, Status, Tag};
#[cfg(not(loom))]
pub use node::Node;
#[cfg(not(loom))]
pub use p2p::{cancel, irecv, isend, isend_owned, receive_now, recv, send};
#[cfg(not(loom))]
pub use probe::{MessageRef, improbe, imrecv, iprobe, mprobe, probe};
#[cfg(not(loom))]
pub use rank::Rank;
#[cfg(not(loom))]
pub use request::RequestRef;

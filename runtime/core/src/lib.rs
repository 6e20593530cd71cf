//! The core of the engine: who is there, who may act for whom, and the loop in which ranks make progress.
//!
//! This crate is **stealable** (`no_std`, no thread-local data, no allocator): any task of the node may run it for
//! any rank whose claim it holds. It knows no message, no collective and no window: those are *subsystems* above it,
//! each with a state of its own in every rank ([`subsystem`]).
//!
//! | module | what it holds |
//! |---|---|
//! | [`node`], [`rank`] | who is there |
//! | [`claim`], [`owner`] | the two rights to act for a rank: of whoever took it, and of its own task |
//! | [`subsystem`] | what a subsystem is, and how the engine joins them |
//! | [`turn`], [`steal`], [`wait`], [`pace`] | the progress loop: what a rank, or a thief for it, does; how a rank waits |
//! | [`request`] | operations that are under way |
//! | [`message`], [`error`] | what calls take and give |
//! | [`waits`] | what ranks wait for, for whoever asks why a job hangs |
//! | [`lifecycle`] | aborts and ends |
//! | [`policies`] | which policies a rank has, and what they need together |
//! | [`guard`] | copies that end, and do not kill, where memory is protected |
//! | [`list`], [`rank_box`], [`shares`] | what subsystems build with |
//!
//! Under `--cfg loom` only the lock-free parts exist, for their models.
#![no_std]
#![cfg_attr(loom, allow(dead_code, reason = "the models use parts"))]

#[cfg(any(test, feature = "testing"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(not(loom))]
mod abort;
#[cfg(not(loom))]
pub mod arch;
#[doc(hidden)]
pub use cohort_arch::hidden;
#[cfg(not(loom))]
mod backoff;
#[cfg(not(loom))]
mod cpu;
#[cfg(not(loom))]
mod engine;
#[cfg(not(loom))]
pub mod error;
pub mod event_count;
#[cfg(not(loom))]
pub mod guard;
#[cfg(not(loom))]
pub mod lifecycle;
#[cfg(not(loom))]
pub mod list;
#[cfg(not(loom))]
mod live;
#[cfg(not(loom))]
pub mod memory;
pub mod message;
#[cfg(not(loom))]
pub mod pace;
#[cfg(not(loom))]
mod peers;
#[cfg(not(loom))]
pub mod policies;
#[cfg(not(loom))]
pub mod rank_box;
#[cfg(not(loom))]
pub mod ranks;
pub mod record;
#[cfg(not(loom))]
mod report;
#[cfg(not(loom))]
pub mod request;
mod request_state;
pub mod shares;
#[cfg(not(loom))]
mod sleep;
mod stamps;
#[cfg(not(loom))]
pub mod steal;
#[cfg(not(loom))]
pub mod subsystem;
#[cfg(not(loom))]
pub mod threads;
#[cfg(not(loom))]
pub mod turn;
#[cfg(not(loom))]
pub mod wait;
#[cfg(not(loom))]
mod work;
#[cfg(not(loom))]
pub mod yield_policy;

#[cfg(not(loom))]
pub use backoff::Backoff;
#[cfg(not(any(loom, miri)))]
pub use cohort_alloc::reserve;
pub use cohort_base::{LocalRank, Peer};
pub use cohort_steal::park;
#[cfg(not(loom))]
pub use error::EngineError;
#[cfg(not(loom))]
pub use lifecycle::abort;
#[cfg(not(loom))]
pub use message::{Envelope, SendMode, Source, Status, Tag};
#[cfg(not(loom))]
pub use ranks::claim::{self, Claim};
#[cfg(not(loom))]
pub use ranks::failures::{self, Judge, Verdict};
#[cfg(not(loom))]
pub use ranks::node::{self, Node};
#[cfg(not(loom))]
pub use ranks::owner::{self, Owner};
#[cfg(not(loom))]
pub use ranks::rank::{self, Rank};
#[cfg(not(loom))]
pub use ranks::waits;
#[cfg(not(loom))]
pub use request::RequestRef;
#[cfg(not(loom))]
pub use subsystem::Subsystem;
#[cfg(not(loom))]
pub use turn::{Look, Turn};
#[cfg(not(loom))]
pub use work::{Piece, Work};

// So that each crate's own tests can join the subsystems that it knows.
#[cfg(all(test, not(loom)))]
engine!();

//! Point-to-point communication (MPI-4.1, chapters 3 and 4).
//!
//! This crate is **stealable** (`no_std`, no thread-local data, no allocator): any task of the node
//! may run it for any rank whose claim it holds. Only calls that wait are for the rank's own task:
//! they ask for its [`Owner`](cohort_core::Owner).
//!
//! | module | what it holds |
//! |---|---|
//! | [`messages`], [`probe`](mod@probe), [`partitioned`] | the calls of the layers above |
//! | `outbox`, `ring`, `inbox` | the way from one rank to another: one ring for each pair |
//! | `poll` | taking messages out of the rings |
//! | `direct` | receives that poll for one message |
//! | [`matching`] | which message goes to which receive |
//! | [`protocol`] | how bytes travel: inline in a ring, in a block, or straight between user buffers |
//! | `kept` | blocks that carry messages again and again |
//! | `lending` | what a rank knows of the messages that it lends |
//! | `pipeline` | blocks through which long messages pass piece by piece |
//! | [`remote`] | messages between nodes |
//!
//! Under `--cfg loom` only the lock-free parts exist, for their models.
#![no_std]
#![cfg_attr(loom, allow(dead_code, reason = "the models use parts"))]

#[cfg(test)]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(not(loom))]
mod direct;
mod eager_buffers;
#[cfg(not(loom))]
mod failing;
#[cfg(not(loom))]
pub mod fast_path;
#[cfg(not(loom))]
mod inbox;
#[cfg(not(loom))]
mod kinds;
#[cfg(not(loom))]
mod lending;
#[cfg(not(loom))]
pub mod matching;
#[cfg(not(loom))]
pub mod messages;
#[cfg(not(loom))]
mod noted;
#[cfg(not(loom))]
pub mod operation;
#[cfg(not(loom))]
mod outbox;
#[cfg(not(loom))]
mod packed;
#[cfg(not(loom))]
pub mod partitioned;
#[cfg(not(loom))]
mod picture;
mod pipeline;
#[cfg(not(loom))]
pub mod poll;
#[cfg(not(loom))]
pub mod probe;
#[cfg(not(loom))]
pub mod protocol;
#[cfg(not(loom))]
pub mod remote;
#[cfg(not(loom))]
mod reposting;
#[cfg(not(loom))]
mod reuse;
mod ring;
mod rounds;
#[cfg(not(loom))]
mod seen;
#[cfg(not(loom))]
mod state;
#[cfg(not(loom))]
mod subsystem;
#[cfg(not(loom))]
mod want;

#[cfg(not(loom))]
pub use direct::{await_briefly, sender_of};
#[cfg(not(loom))]
pub use failing::may_receive;
#[cfg(not(loom))]
pub use messages::{Received, irecv, isend, isend_owned, receive_or_start, recv, recv_into, send, send_waiting};
#[cfg(not(loom))]
pub use outbox::leave_messages;
#[cfg(not(loom))]
pub use packed::PackedBlock;
#[cfg(not(loom))]
pub use partitioned::Partitioned;
#[cfg(not(loom))]
pub use picture::tell_queues;
#[cfg(not(loom))]
pub use probe::{MessageRef, improbe, imrecv, iprobe, mprobe, probe};
#[cfg(not(loom))]
pub use protocol::types_of;
#[cfg(not(loom))]
pub use remote::{Remote, Untaken, await_receivers};
#[cfg(not(loom))]
pub use reposting::{post_again, post_again_if_acknowledged};
#[cfg(not(loom))]
pub use state::P2p;

#[cfg(all(test, not(loom)))]
mod joined_for_tests {
    use crate::{P2p, Partitioned, Remote};
    use cohort_net::Network;

    cohort_core::engine!(Network, P2p, Partitioned, Remote);
    cohort_net::receivers!(Remote);
}

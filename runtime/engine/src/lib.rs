//! The engine: everything that moves bytes between the ranks of a node, and between nodes.
//!
//! This crate joins the subsystems, and is what the layers above see. Each subsystem is a crate of
//! its own; the compiler forbids that one uses another that stands above it.
//!
//! | crate | what it holds |
//! |---|---|
//! | `core` | nodes, ranks, claims, requests, waits, and the progress loop |
//! | `datatype` | what lies where in a user's buffer; reduction operations |
//! | `net` | packets between nodes |
//! | `p2p` | messages: matching, eager and rendezvous, probes, partitions |
//! | `coll` | collectives |
//! | `rma` | windows |
//! | `progress` | what the policies need besides stealing |
//!
#![no_std]

#[cfg(test)]
extern crate std;

pub use {
    cohort_coll as coll,
    cohort_core::claim::Claim,
    cohort_core::{
        Envelope, LocalRank, Look, Node, Owner, Peer, Piece, Rank, RequestRef, SendMode, Source, Status, Tag, Turn,
        Work, abort, claim, error, error::EngineError, list, memory, message, node, node::Identity, owner, park, rank,
        rank_box, request, reserve, subsystem, threads, wait, waits,
    },
    cohort_datatype as datatype,
    cohort_datatype::op,
    cohort_net::{calls, outside, tell_traffic, watch::died as network_goes_on_without},
    cohort_p2p::{
        MessageRef, PackedBlock, Received, Untaken, await_briefly, await_receivers, fast_path, improbe, imrecv, iprobe,
        irecv, isend, isend_owned, leave_messages, matching, may_receive, mprobe, partitioned, post_again,
        post_again_if_acknowledged, probe, receive_or_start, recv, recv_into, send, send_waiting, tell_queues,
        types_of,
    },
    cohort_progress::{kernel_thread, leave_errand, offload, watch},
    cohort_rma as rma,
};
/// The beginning and the end of a rank, and changes of its policies.
pub mod lifecycle {
    pub use cohort_core::lifecycle::{
        abort_members, abort_with, ask, await_port, begin, end, leave_without_meeting, meet_at_end, must_leave,
        will_meet_at_end,
    };
    pub use cohort_progress::lifecycle::{exchange_policy, set_policy};
}

#[cfg(test)]
mod tests;

mod joined_engine {
    use cohort_coll::Coll;
    use cohort_net::Network;
    use cohort_p2p::{P2p, Partitioned, Remote};
    use cohort_progress::Machinery;
    use cohort_rma::Rma;

    // A turn visits the subsystems in this order.
    cohort_core::engine!(Network, P2p, Partitioned, Remote, Coll, Rma, Machinery);
    cohort_net::receivers!(Remote, Rma);
}

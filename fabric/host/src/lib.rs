//! What a node's network shares, whatever its transport is.
//!
//! The only part of Cohort that calls C libraries from ranks' tasks. It knows no transport:
//! `cohort-fabric-ofi` (libfabric) and `cohort-fabric-tcp` implement [`source::Source`] and
//! [`endpoint::Endpoint`], and `cohort-network` joins them in the library that `pip-exec` loads
//! when the job has more than one node ([`cohort_fabric::boot`]).
//!
//! | module | what it does |
//! |---|---|
//! | `boot` | opens a network and hands it to the loader |
//! | `ports` | which ports listen |
//! | `source`, `endpoint` | what a transport offers: a network, and an endpoint that ranks share |
//! | `network` | the `Transport` of a node: takes a seat, then calls the endpoint that serves the rank |
//! | `endpoints` | opens a network whose ranks share endpoints |
//! | `peers` | the endpoints of the job, and which of them serves which rank |
//! | `event_queue` | what has come for ranks that did not look for it |
//! | `packet`, `address` | what travels, and its checks |
//! | `job` | what all endpoints of a node share about the job |
//! | `seat` | how a task with another C library calls this one |
//! | `handles` | descriptors of the root's that every process uses under a number of its own |
//! | `keeper` | a thread that takes copies of new descriptors |
//! | `watch` | the sleep of a node that waits for the network |
//! | `service` | answers other nodes, and notices dead ones |

pub mod address;
pub mod boot;
pub mod endpoint;
pub mod endpoints;
pub mod event_queue;
pub mod handles;
pub mod job;
mod keeper;
mod network;
pub mod packet;
pub mod peers;
pub mod ports;
pub mod seat;
pub mod service;
mod signals;
pub mod source;
pub mod watch;

/// Why something has no thread: `what`, and the system's `error` with the limit that may be behind it.
#[must_use]
pub fn no_thread(what: &str, error: &std::io::Error) -> String {
    format!("{what}: {error}{}", cohort_base::text::limit_behind(error.raw_os_error().unwrap_or(0)))
}

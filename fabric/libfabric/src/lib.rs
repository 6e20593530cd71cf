//! The network through libfabric, or over TCP without it.
//!
//! The only library that calls C libraries. `pip-exec`, or the facade of a program that was started
//! without it, loads it when the job has more than one node ([`cohort_fabric::boot`]); it looks for
//! libfabric when it is opened, so neither building nor running on one node needs that, nor do jobs over TCP.
//!
//! | module | what it does |
//! |---|---|
//! | `boot` | the exported function |
//! | `library`, `sys` | libfabric's functions and records |
//! | `provider` | which provider and interface, and what they offer |
//! | `source` | libfabric, or TCP without it |
//! | `port` | what the transport asks of one rank's end of the network |
//! | `endpoint`, `operations`, `regions` | that end with libfabric |
//! | `sockets` | that end over TCP without it |
//! | `packet`, `address` | what travels, and its checks |
//! | `seat` | how a task with another C library calls this one |
//! | `descriptors` | descriptors that tasks with tables of their own share |
//! | `network` | the transport: takes a seat, then calls the endpoint |
//! | `watch` | the sleep of a node that waits for the network |
//! | `guard` | notices dead nodes |

mod address;
pub mod boot;
pub mod descriptors;
mod endpoint;
mod guard;
mod job;
mod library;
mod network;
mod operations;
mod packet;
mod port;
mod provider;
mod regions;
mod seat;
mod sockets;
mod source;
mod sys;
mod watch;

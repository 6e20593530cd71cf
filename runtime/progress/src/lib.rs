//! What the progress policies need besides stealing.
//!
//! A policy (`cohort_steal::policy`) says who makes progress for a rank that computes. This crate
//! has whoever that is: dedicated workers (ghosts and helpers), a rank's own thread, and a signal
//! that interrupts the program. It stands above point-to-point communication, and is told of what
//! happens below by the hooks of the core.
//!
//! | module | what it holds |
//! |---|---|
//! | [`lifecycle`] | starting and stopping all of it, when a rank or its policy changes |
//! | [`watch`] | receives and collectives that a program leaves behind |
//! | `help` | finding somebody for a rank that computes |
//! | `dedicated_workers`, [`offload`], `helper` | dedicated workers: what they do, posts left to them, matches they look for |
//! | `poller` | a rank's own progress thread |
//! | [`kernel_thread`], `errand` | threads of the runtime's own, and what they have the program's threads do |
//! | `signal`, `timer` | interrupting a program |
//! | `fallback` | what an adapting policy does |
//! | `parts` | what is kept for each rank and node: `worker`, `posts`, `mailbox`, `interrupter`, `observer` |
//!
//! Nothing of it exists under `--cfg loom`, which has no rank.
#![cfg(not(loom))]
#![no_std]

#[cfg(test)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod dedicated_workers;
mod errand;
mod fallback;
mod help;
mod helper;
mod interrupter;
pub mod kernel_thread;
pub mod lifecycle;
mod mailbox;
mod observer;
pub mod offload;
mod parts;
mod poller;
mod posts;
mod round;
mod signal;
mod subsystem;
#[cfg(test)]
mod testing;
mod timer;
pub mod watch;
mod worker;

pub use parts::Machinery;
pub use subsystem::leave_errand;

#[cfg(test)]
mod joined_for_tests {
    use crate::Machinery;
    use cohort_net::Network;
    use cohort_p2p::{P2p, Remote};

    cohort_core::engine!(Network, P2p, Remote, Machinery);
    cohort_net::receivers!(Remote);
}

//! One-sided communication (MPI-4.1, chapter 12): windows, their epochs and operations.
//!
//! The design is that of *Nonblocking Epochs in MPI One-Sided Communication*: an epoch is an object
//! with a life of its own, every synchronisation is nonblocking inside, and the calls that block
//! wait for its request. The page of `epoch.rs` tells the life of an epoch, `sweep.rs` what is done
//! for it and when, `grants.rs` how epochs of different members match, `lock.rs` the lock.
//!
//! All ranks of a node share an address space, so operations on a member of this node need nobody's
//! help: they are copies and atomics in its memory, done in the call that asks for them if the
//! epoch has access by then, else by whoever holds the claim of the origin when the access is
//! granted. Members of other nodes are told by active messages (`notes.rs`, `remote.rs`,
//! `arrival.rs`).

#![no_std]
#![cfg_attr(loom, allow(dead_code, reason = "the models use parts"))]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(not(loom))]
mod access;
#[cfg(not(loom))]
mod arrival;
#[cfg(not(loom))]
mod element;
#[cfg(not(loom))]
mod epoch;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod failing;
#[cfg(not(loom))]
mod fast_path;
mod grants;
#[cfg(not(loom))]
mod late;
mod lock;
#[cfg(not(loom))]
mod notes;
#[cfg(not(loom))]
mod operation;
#[cfg(not(loom))]
mod pending;
#[cfg(not(loom))]
mod picture;
#[cfg(not(loom))]
mod remote;
#[cfg(not(loom))]
mod request;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod stamps;
#[cfg(not(loom))]
mod subsystem;
#[cfg(not(loom))]
mod sweep;
#[cfg(not(loom))]
mod sync;
#[cfg(not(loom))]
mod window;

#[cfg(not(loom))]
pub use self::{
    epoch::Reorder,
    error::RmaError,
    fast_path::{ONE_TURN, Reach},
    operation::{Action, Operation},
    picture::tell_locks,
    shared::{Part, Plan, WinShared},
    window::{Closing, Window},
};

/// One-sided communication, a subsystem of the engine.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct Rma;

/// Frees memory of a rank's heap that was meant for a window which did not come about.
///
/// # Safety
/// `block` came from [`cohort_core::Claim::alloc_aligned`], and nobody uses it.
#[cfg(not(loom))]
pub unsafe fn free_block(block: core::ptr::NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe { cohort_alloc::Heap::free(block) };
}

//! Stealer-safe heaps.
//!
//! Each rank has a [`Heap`]. Whoever holds the rank's claim, the owner or a worker that
//! progresses it, allocates from it; **any task may free any block at any time**. The
//! design and its invariants are in `docs/allocation.md`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`class`] | sizes: which class serves a request |
//! | [`remote`] | how blocks come back from tasks that do not hold the claim |
//! | `map` | pages from the kernel |
//! | `kept` | mappings of freed long blocks, for the next ones |
//! | `segment` | 2 MB segments, cut into 64 KB slabs and runs of slabs |
//! | [`Heap`] | a rank's heap over all of them, and its slabs: blocks of one class |
//! | `reserve` | address space that is kept back, so that want of memory is an error and no end |
//! | [`SharedHeap`] | a heap behind a lock, for what belongs to the whole node |
//!
//! **Stealable**: `no_std`, no thread-local data, no libc call.
#![no_std]

pub mod class;
#[cfg(not(loom))]
mod heap;
#[cfg(any(test, not(loom)))]
mod kept;
#[cfg(not(loom))]
mod map;
pub mod remote;
#[cfg(not(any(loom, miri)))]
pub mod reserve;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod shared;

#[cfg(not(loom))]
pub use heap::{Heap, Stats};
#[cfg(not(loom))]
pub use shared::SharedHeap;

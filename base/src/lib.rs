//! What every Cohort crate agrees on.
//!
//! This crate is **stealable**: `no_std`, no thread-local data, no libc call.
//! It knows nothing of MPI and nothing of ELF; loader and node image meet here,
//! in [`boot`].
//!
//! | module | what it fixes |
//! |---|---|
//! | [`boot`] | the `#[repr(C)]` records that the loader hands to the node image and to each rank |
//! | [`check`] | the kinds of mistakes that are looked for in programs, and how they are told |
//! | [`claims`] | who has mapped memory at an address of its own choice |
//! | [`clock`] | a clock that is cheap to read, and how many of its ticks make a microsecond |
//! | [`combine`] | a lock whose holder does what others have left for it |
//! | [`lock`] | a futex lock and a value that is made once, for what owners of several ranks share |
//! | [`offer`] | what a program is told that offers itself to a job |
//! | [`picture`] | what the node image tells the loader of a rank that waits |
//! | [`settings`] | every `COHORT_*` environment variable: name, default, valid values |
//! | [`signals`] | which signals the calling thread blocks |
//! | [`sockets`] | what of a connection the other system has not acknowledged |
//! | [`spawn`] | how ranks ask their launcher for more of them, and what those know of each other |
//! | [`sync`] | atomics (replaceable by loom), the light/heavy barrier pair, futex, pause |
//! | [`text`] | formatting without an allocator: a fixed buffer and a writer to a descriptor |
//! | [`trace`] | rings of events, which become a timeline |
#![no_std]

pub mod blocks;
pub mod boot;
pub mod check;
pub mod claims;
pub mod clock;
pub mod combine;
#[cfg(not(loom))]
pub mod heir;
pub mod libraries;
pub mod live;
pub mod lock;
pub mod offer;
mod peer;
pub mod picture;
pub mod settings;
pub mod signals;
pub mod sockets;
pub mod spawn;
pub mod sync;
pub mod text;
pub mod trace;

pub use peer::Peer;

/// Index of a rank on its node: `0..NodeBoot::node_ranks`.
pub type LocalRank = u32;

/// Rank in the `MPI_COMM_WORLD` that the job begins with; what is spawned has [numbers](spawn::number_of) behind those.
pub type WorldRank = u32;

//! Progress stealing: the mechanisms and the policy, without any message.
//!
//! A rank that waits (a *worker*) runs the progress of a rank that computes (an
//! *owner*). This crate says who may do so and when; what "progress" is, the engine
//! tells it through [`policy::Victims`]. The protocols are in `docs/stealing.md`, and each
//! module begins with its own.
//!
//! | module | what it holds |
//! |---|---|
//! | [`claim`] | the right to progress one rank (rule 1) |
//! | [`avail`] | whether a rank expects messages that a worker could handle (rule 2) |
//! | [`park`] | how a waiting rank sleeps without losing a wake-up |
//! | [`idle`] | which ranks sleep, so that a sender can wake one of them |
//! | [`victim`] | in which order a worker tries the others, from measured locality |
//! | [`policy`] | who progresses whom: one file per answer |
//! | [`queue`] | what ranks tell dedicated workers |
//! | [`channel`] | what one rank gives its dedicated worker to post |
//! | `outcome` | what policies go by and counters count |
//! | [`stats`] | the counters behind `COHORT_STATS` |
//!
//! **Stealable**: `no_std`, no thread-local data, no libc call, no allocation.
#![no_std]

pub mod avail;
mod cell;
pub mod channel;
pub mod claim;
pub mod idle;
mod outcome;
pub mod park;
pub mod policy;
pub mod queue;
pub mod stats;
pub mod victim;

/// The two kinds of progress of a rank, which are stolen separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Completions and messages of the network: cheap, the copying is the adapter's.
    Net = 0,
    /// Messages within the node: may include a large copy.
    Shm = 1,
}

impl TaskKind {
    /// How many kinds there are.
    pub const COUNT: usize = 2;

    /// All kinds, in the order of their index.
    pub const ALL: [Self; Self::COUNT] = [Self::Net, Self::Shm];

    /// The kind's place in tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

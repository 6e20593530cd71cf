//! What the loader reads of ranks that run, for those who ask at the job's control socket.
//!
//! All of it is counted anyway or can be looked at: a rank does nothing for it.

use core::ffi::c_void;

/// [`LiveApi::glance`]: the rank sleeps in MPI.
pub const ASLEEP: u32 = 1;

/// [`LiveApi::glance`]: a task holds the rank's claim: its owner in a call, or another rank that works for it.
pub const CLAIMED: u32 = 2;

/// What one rank has done up to now, in numbers that only grow but for the memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankSample {
    /// Times that it went to sleep while it waited.
    pub parks: u64,
    /// Times that it woke another rank.
    pub wakes: u64,
    /// Tries to help another rank.
    pub attempts: u64,
    /// Those that moved something.
    pub hits: u64,
    /// Bytes of messages that it moved for others.
    pub stolen_bytes: u64,
    /// Turns that its signal or thread took while it computed.
    pub own_turns: u64,
    /// Bytes in use of its heap of MPI.
    pub heap_bytes: u64,
}

/// Functions of the node image for a launcher that is asked. `node` is what the image's open gave, `rank` a rank of
/// the node. From any task, at any time.
#[repr(C)]
pub struct LiveApi {
    /// What the rank does at this moment: [`ASLEEP`], [`CLAIMED`].
    pub glance: unsafe extern "C" fn(node: *mut c_void, rank: u32) -> u32,
    /// What the rank has done.
    pub sample: unsafe extern "C" fn(node: *mut c_void, rank: u32, sample: *mut RankSample),
    /// How often the rank has moved something for the rank `victim`.
    pub hits: unsafe extern "C" fn(node: *mut c_void, rank: u32, victim: u32) -> u64,
}

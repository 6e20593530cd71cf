//! What the loader reads of ranks that run, for those who ask at the job's control socket.
//!
//! Most of it is counted anyway or can be looked at. Calls are counted while somebody watches ([`LiveApi::watch`]).

use core::ffi::c_void;

/// [`LiveApi::glance`]: the rank sleeps in MPI.
pub const ASLEEP: u32 = 1;

/// [`LiveApi::glance`]: a task holds the rank's claim: its owner in a call, or another rank that works for it.
pub const CLAIMED: u32 = 2;

/// What one rank has done up to now, in numbers that only grow but for the memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Calls of MPI that were observed; so are those below.
    pub calls: u64,
    /// Nanoseconds in them.
    pub mpi_ns: u64,
    /// Those that send something.
    pub messages: u64,
    /// What they send, in bytes, as far as one count says it.
    pub bytes: u64,
    /// The name of the call that the rank is in, which is never freed; NULL if it is in none.
    pub call: *const u8,
    /// Bytes of that name.
    pub call_bytes: usize,
}

impl Default for RankSample {
    /// Nothing done.
    fn default() -> Self {
        Self {
            parks: 0,
            wakes: 0,
            attempts: 0,
            hits: 0,
            stolen_bytes: 0,
            own_turns: 0,
            heap_bytes: 0,
            calls: 0,
            mpi_ns: 0,
            messages: 0,
            bytes: 0,
            call: core::ptr::null(),
            call_bytes: 0,
        }
    }
}

impl RankSample {
    /// The name of the call that the rank is in.
    #[must_use]
    pub fn call(&self) -> &'static str {
        if self.call.is_null() {
            return "";
        }
        // SAFETY: the node image has stored the bytes of a text of its own, which stays.
        let bytes = unsafe { core::slice::from_raw_parts(self.call, self.call_bytes) };
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// Functions of the node image for a launcher that is asked. `node` is what the image's open gave, `rank` a rank of
/// the node. From any task, at any time.
#[repr(C)]
pub struct LiveApi {
    /// What the rank does at this moment: [`ASLEEP`], [`CLAIMED`].
    pub glance: unsafe extern "C" fn(node: *mut c_void, rank: u32) -> u32,
    /// What the rank has done.
    pub sample: unsafe extern "C" fn(node: *mut c_void, rank: u32, sample: *mut RankSample),
    /// Has the calls of all ranks observed from now on, or no more. May wait for memory, and so for a rank.
    pub watch: unsafe extern "C" fn(node: *mut c_void, on: bool),
    /// How often the rank has moved something for the rank `victim`.
    pub hits: unsafe extern "C" fn(node: *mut c_void, rank: u32, victim: u32) -> u64,
}

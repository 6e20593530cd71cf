//! How a loader opens the network library.
//!
//! Only a job of more than one node needs it. The loader, `pip-exec` or the facade of a program that was
//! started without it, finds [`LIBRARY`] beside the node image, loads it with `dlopen`, and:
//!
//! 1. looks up [`OPEN`] and calls it with a [`Request`], before any rank starts: [`Api`] and a handle, or a
//!    text that says what to install or to set;
//! 2. calls [`Api::addresses`] and hands these bytes, at most [`Api::addresses_length`], to every other node
//!    by whatever the process manager offers;
//! 3. calls [`Api::connect`] with the bytes of all nodes, in the order of their numbers. Nobody is connected by
//!    that, the addresses are checked and stored: connections are made at the first packet;
//! 4. stores [`Api::network`] in `NodeBoot::network`, and starts the ranks; these must keep
//!    the descriptors [`Api::descriptors`] when they are cloned;
//! 5. calls [`Api::close`] when the last rank has ended.
//!
//! All on one task, whose C library is the one that the network library was loaded with; the last on any thread of it.

use crate::record::Network;
use cohort_base::boot::RankLocation;
use core::ffi::{c_char, c_void};

/// First word of a [`Request`].
pub const MAGIC: u64 = 0x3151_4552_4843_4f43;

/// Raised whenever the layout of the records changes.
pub const VERSION: u32 = 8;

/// File name of the network library (crate `cohort-network`), which lies beside the node image.
pub const LIBRARY: &str = "libcohort_network.so";

/// Name of its exported function, an [`Open`].
pub const OPEN: &str = "cohort_fabric_open";

/// Who calls the driver when a thief has work for it (`COHORT_NET_NOTIFY`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// The thief, through its own copy of the owner's descriptor.
    Mirror = 0,
    /// The owner, when it polls next.
    Defer = 1,
}

/// What the network library is told. Texts are NUL-terminated and need to live during the call only.
#[repr(C)]
#[derive(Debug)]
pub struct Request {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// Index of this node.
    pub node: u32,
    /// Nodes of the job.
    pub nodes: u32,
    /// Ranks on this node.
    pub node_ranks: u32,
    /// Ranks in the job.
    pub world_ranks: u32,
    /// 1 if ranks are tasks that share this address space and have C libraries of their own; 0 if
    /// the caller is the one rank of its node.
    pub shared_address_space: u32,
    /// A number of [`Notify`].
    pub notify: u32,
    /// Seconds that a node may be silent until it is dead (`COHORT_NET_TIMEOUT`).
    pub timeout: u32,
    /// A random number that only this job knows, the same on all nodes.
    pub job: [u64; 2],
    /// Where each rank lives, `world_ranks` records; copied.
    pub homes: *const RankLocation,
    /// The provider (`COHORT_NET_PROVIDER`), or NULL or `auto` for the best
    /// there is.
    pub provider: *const c_char,
    /// Name of the network interface to use, or an address of it (`COHORT_NET_INTERFACE`), or NULL or
    /// `auto` for the provider's choice.
    pub interface: *const c_char,
    /// Congestion control of TCP's connections (`COHORT_NET_CONGESTION`), or NULL or `auto` for the transport's choice.
    pub congestion: *const c_char,
    /// First and last port that may listen (`COHORT_NET_PORTS`); zeros for any.
    pub ports: [u16; 2],
    /// Connections between two nodes, for transports that share them (`COHORT_NET_RAILS`).
    pub rails: u32,
    /// 1 if what travels between nodes is encrypted (`COHORT_NET_ENCRYPT`).
    pub encrypt: u32,
    /// Endpoints of this node, for transports whose ranks share them (`COHORT_NET_ENDPOINTS`); 0 for the transport's
    /// choice.
    pub endpoints: u32,
}

/// The functions of an open network.
#[repr(C)]
#[derive(Debug)]
pub struct Api {
    /// [`VERSION`].
    pub version: u32,
    /// Length of what [`Api::addresses`] writes.
    pub addresses_length: unsafe extern "C" fn(handle: *mut c_void) -> usize,
    /// Writes the addresses of this node's ranks to `buffer`, which has room for `capacity` bytes, and returns
    /// their length, or 0 if there is too little room.
    pub addresses: unsafe extern "C" fn(handle: *mut c_void, buffer: *mut u8, capacity: usize) -> usize,
    /// Takes what [`Api::addresses`] wrote on each node, `nodes` entries. 0, or -1 and a text.
    pub connect:
        unsafe extern "C" fn(handle: *mut c_void, nodes: *const Addresses, count: u32, problem: *mut Problem) -> i32,
    /// The network, for `NodeBoot::network`. Valid until [`Api::close`].
    pub network: unsafe extern "C" fn(handle: *mut c_void) -> *const Network,
    /// The numbers `first..=last` of descriptors that ranks inherit; 1..=0 if there are none.
    pub descriptors: unsafe extern "C" fn(handle: *mut c_void, first: *mut i32, last: *mut i32),
    /// What is used, one line: provider, version, interface. Lives until [`Api::close`].
    pub description: unsafe extern "C" fn(handle: *mut c_void) -> *const c_char,
    /// A descriptor that is readable once another node is dead; -1 if the network cannot tell.
    pub alarm: unsafe extern "C" fn(handle: *mut c_void) -> i32,
    /// Stores a node that was found dead, each once, and returns 1; 0 if there is none.
    pub dead_node: unsafe extern "C" fn(handle: *mut c_void, dead: *mut DeadNode) -> i32,
    /// Takes a node for dead: the launchers have agreed on it, and the job goes on without it.
    pub lose: unsafe extern "C" fn(handle: *mut c_void, node: u32),
    /// Ends the network. Nobody may use it any more. If the job has not `failed` (0), what was sent arrives first, or
    /// its receiver has been silent for as long as a node may be; a job that has failed (1) waits for nobody.
    pub close: unsafe extern "C" fn(handle: *mut c_void, failed: i32),
}

/// A node that is dead.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadNode {
    /// Which.
    pub node: u32,
    /// The system's number of the reason: `ECONNREFUSED` if its process is gone, else it is silent.
    pub code: i32,
    /// Milliseconds for which it has been silent.
    pub silent: u64,
}

/// The bytes of one node's addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// First byte.
    pub bytes: *const u8,
    /// How many.
    pub length: usize,
}

/// Room for a text that says what went wrong, NUL-terminated; cut if it is longer.
#[repr(C)]
#[derive(Debug)]
pub struct Problem {
    /// The text.
    pub text: [u8; 1024],
}

impl Problem {
    /// No text.
    #[must_use]
    pub const fn new() -> Self {
        Self { text: [0; 1024] }
    }

    /// Stores a text.
    pub fn set(&mut self, text: &str) {
        let mut length = text.len().min(self.text.len() - 1);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        self.text[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.text[length] = 0;
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        let length = self.text.iter().position(|&byte| byte == 0).unwrap_or(0);
        core::str::from_utf8(&self.text[..length]).unwrap_or("")
    }
}

impl Default for Problem {
    fn default() -> Self {
        Self::new()
    }
}

/// Type of the library's exported function: opens an endpoint for each rank of this node. Stores the
/// handle in `*handle` and returns the functions, or stores a text in `*problem` and returns NULL.
pub type Open =
    unsafe extern "C" fn(request: *const Request, handle: *mut *mut c_void, problem: *mut Problem) -> *const Api;

#[cfg(test)]
mod tests {
    use super::Problem;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut problem = Problem::new();
        assert_eq!(problem.get(), "");
        let filler = core::str::from_utf8(&[b'x'; 1022]).unwrap();
        extern crate std;
        let mut text = std::string::String::from(filler);
        text.push('é');
        problem.set(&text);
        assert_eq!(problem.get(), filler);
        problem.set("short");
        assert_eq!(problem.get(), "short");
    }
}

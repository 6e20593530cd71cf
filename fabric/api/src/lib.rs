//! The network as the engine sees it.
//!
//! A node has one *endpoint* per rank of its own and reaches every other rank of the job by
//! its rank in `MPI_COMM_WORLD`. A [`Transport`] moves *packets* (short, ordered per pair of
//! endpoints, received into memory of the transport) and, where the network can, reads and
//! writes *regions* of another rank's memory without its help. Matching, protocols and flow control of
//! MPI messages are the engine's; addresses, connections, registration and completion queues
//! are the transport's.
//!
//! # Rules
//! * Calls that name an endpoint are made under the claim of the rank it belongs to, by that rank
//!   or by a thief: one at a time for each endpoint, in parallel for different ones.
//! * Nothing here blocks but [`Transport::watch`].
//! * The functions may be called from any task of the node; a transport that calls a C library
//!   enters a seat first, so the caller's thread-local storage is never touched.
#![no_std]

use cohort_base::LocalRank;
use core::time::Duration;

/// A rank of the whole job, its rank in `MPI_COMM_WORLD`.
pub type WorldRank = u32;

/// What the engine passes with an operation and gets back with its completion.
pub type Token = u64;

/// Who makes a call, which decides whether a driver's descriptor may be used at once
/// (`COHORT_NET_NOTIFY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The rank that the endpoint belongs to.
    Owner,
    /// Another rank, under a stolen claim.
    Thief,
}

/// What a transport can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the longest packet, header and body together; at least 4096.
    pub packet: usize,
    /// Bytes of one [`Transport::read`] or [`Transport::write`]; 0: the network cannot do them.
    pub transfer: usize,
}

/// A packet to send: two pieces, sent one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The first bytes.
    pub header: &'a [u8],
    /// The rest.
    pub body: &'a [u8],
}

/// How far a packet has come when [`Transport::send`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Its memory may be used again; no completion follows.
    Done,
    /// Its memory is in use until [`Event::Completed`] with its token.
    Pending,
}

/// Why an operation did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No room now: poll, then try again. Later packets to the same rank must wait behind this one.
    Busy,
    /// The rank cannot be reached any more; the transport's number for the reason.
    Lost(i32),
    /// No memory, or no room for one more region.
    OutOfMemory,
}

/// Memory that other ranks may read or write, by its owner's endpoint.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The transport's key.
    pub key: u64,
    /// What stands for the first byte: an address, or 0 where offsets count.
    pub address: u64,
}

/// What [`Transport::poll`] found.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A packet has arrived; its bytes are valid during the call only.
    Packet {
        /// Its sender.
        from: WorldRank,
        /// Header and body.
        bytes: &'a [u8],
    },
    /// A send, read or write is complete.
    Completed(Token),
    /// A send, read or write has failed for good.
    Failed {
        /// The operation.
        token: Token,
        /// The transport's number for the reason.
        code: i32,
    },
    /// A rank can no longer be reached, whatever was under way.
    Lost {
        /// The rank.
        rank: WorldRank,
        /// The transport's number for the reason.
        code: i32,
    },
}

/// A node's network. See the module's rules.
///
/// # Safety
/// Implementors keep the promises of [`Sent`] and [`Event::Completed`] about memory: the engine
/// frees it on their word.
pub unsafe trait Transport: Sync {
    /// What this network can do; the same for the whole job.
    fn limits(&self) -> Limits;

    /// Sends a packet from `endpoint` to `to`, behind all earlier ones of that pair.
    ///
    /// # Errors
    /// [`Refused`]; nothing was sent then.
    ///
    /// # Safety
    /// After [`Sent::Pending`] the packet's memory stays valid until the completion.
    unsafe fn send(
        &self,
        endpoint: LocalRank,
        caller: Caller,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused>;

    /// Makes `length` bytes from `start` readable and writable for other ranks, through `endpoint`.
    /// Registrations are cached: the same memory again is cheap.
    ///
    /// # Errors
    /// [`Refused::OutOfMemory`].
    ///
    /// # Safety
    /// The memory stays mapped until [`Transport::withdraw`].
    unsafe fn expose(
        &self,
        endpoint: LocalRank,
        start: *mut u8,
        length: usize,
    ) -> Result<Region, Refused>;

    /// Ends the use of a region.
    fn withdraw(&self, endpoint: LocalRank, region: Region);

    /// Reads `length` bytes, at most [`Limits::transfer`], at `offset` of a region of `from` into `into`.
    ///
    /// # Errors
    /// [`Refused`]; nothing was started then.
    ///
    /// # Safety
    /// `into` stays writable until the completion.
    #[expect(clippy::too_many_arguments, reason = "both ends of a transfer")]
    unsafe fn read(
        &self,
        endpoint: LocalRank,
        caller: Caller,
        from: WorldRank,
        region: Region,
        offset: u64,
        into: *mut u8,
        length: usize,
        token: Token,
    ) -> Result<(), Refused>;

    /// Writes `length` bytes, at most [`Limits::transfer`], from `out` at `offset` of a region of `to`.
    ///
    /// # Errors
    /// [`Refused`]; nothing was started then.
    ///
    /// # Safety
    /// `out` stays readable until the completion.
    #[expect(clippy::too_many_arguments, reason = "both ends of a transfer")]
    unsafe fn write(
        &self,
        endpoint: LocalRank,
        caller: Caller,
        to: WorldRank,
        region: Region,
        offset: u64,
        out: *const u8,
        length: usize,
        token: Token,
    ) -> Result<(), Refused>;

    /// Takes at most `budget` events of `endpoint`, in order, and gives each to `sink`, which
    /// must not call the transport. Returns how many.
    fn poll(
        &self,
        endpoint: LocalRank,
        caller: Caller,
        budget: u32,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> u32;

    /// Sleeps until an endpoint of the node has events, [`Transport::interrupt`] is called or `limit` is
    /// over. One task at a time; made without a claim.
    fn watch(&self, limit: Option<Duration>);

    /// Ends the sleep of the task in [`Transport::watch`], or of the next one. Costs nothing when nobody is there.
    fn interrupt(&self);
}

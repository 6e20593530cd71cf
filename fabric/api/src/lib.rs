//! The network as the engine sees it.
//!
//! A node has one *endpoint* per rank of its own and reaches every other rank of the job by its number there: the rank
//! in `MPI_COMM_WORLD`, or that of a rank which is spawned. A [`Transport`] moves *packets* (short, ordered per pair of
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
//! * Every call says which rank makes it (`caller`), since ranks have descriptors of their own. It is the
//!   *owner* if the endpoint is its own, else a *thief*: a thief's call may find that what it asks for
//!   is the owner's to do ([`Refused::Busy`], no event, [`Transport::owes`]).
//!
//! # Parts
//! [`interpose`] is how the real one hears of descriptors, and [`numbers`] says which ones it has. [`record`] carries a
//! transport across the border between two libraries; [`boot`] is how a loader opens the library that holds the real
//! one. The crate `cohort-fabric-fake` joins several nodes within one process, for tests.
#![no_std]

pub mod boot;
pub mod interpose;
pub mod numbers;
pub mod record;

pub use cohort_base::{LocalRank, WorldRank};
use core::cell::Cell;
use core::time::Duration;

/// The caller that is no rank of the node, but its launcher: it only [interrupts](Transport::interrupt).
pub const ROOT: LocalRank = LocalRank::MAX;

/// What the engine passes with an operation and gets back with its completion.
pub type Token = u64;

/// What a transport can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the longest packet, header and body together; at least 4096.
    pub packet: usize,
    /// Bytes of one [`Transport::transfer`]; 0: the network cannot do them.
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

impl Packet<'_> {
    /// One of no bytes.
    pub const EMPTY: Self = Self { header: &[], body: &[] };
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
    /// No room now, or not for this caller: poll, then try again. Later packets to the same rank must
    /// wait behind this one.
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

/// Which way a [`Transfer`] goes.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the other rank's region into the own memory.
    Read,
    /// From the own memory into the other rank's region.
    Write,
}

/// A read or a write of another rank's region.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// The other rank.
    pub peer: WorldRank,
    /// Its memory.
    pub region: Region,
    /// Where in it, from its first byte.
    pub offset: u64,
    /// The own memory, which a write only reads.
    pub memory: *mut u8,
    /// How many bytes, at most [`Limits::transfer`].
    pub length: usize,
    /// What its completion says.
    pub token: Token,
}

/// How much one [`Transport::poll`] may do.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Events to take at most.
    pub events: u32,
    /// Looks for the first event, at least one. To look is cheaper within one call than in several, as each
    /// call takes a seat; but signals and other users of the endpoint wait meanwhile.
    pub looks: u32,
}

impl Budget {
    /// This many events, and one look.
    #[must_use]
    pub const fn events(events: u32) -> Self {
        Self { events, looks: 1 }
    }
}

/// What one [`Transport::poll`] did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Events that it gave.
    pub events: u32,
    /// Data has moved on, of whichever rank, also such of which no event tells yet. So more may follow soon.
    pub flows: bool,
    /// Something has come for other ranks of the node, which a poll of theirs gives.
    pub posted: bool,
}

impl Polled {
    /// So many events, and nothing else.
    #[must_use]
    pub const fn events(events: u32) -> Self {
        Self { events, flows: false, posted: false }
    }
}

/// Where the rest of a packet goes that is coming ([`Event::Begins`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Memory for the rest, which the transport may write until the completion.
    pub memory: *mut u8,
    /// What its completion says.
    pub token: Token,
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
    /// The beginning of a packet has arrived. Whoever says where the rest goes gets that there, and its completion by
    /// the place's token, or its failure, as of a read; the beginning was taken then. Else the packet comes again, as a
    /// whole. Transports that cannot do that only give whole packets.
    Begins {
        /// Its sender.
        from: WorldRank,
        /// Header and body, as far as they have come; valid during the call only.
        bytes: &'a [u8],
        /// How many bytes are missing.
        rest: usize,
        /// To be set to where they go.
        place: &'a Cell<Option<Place>>,
    },
    /// A send, a read, a write or the rest of a packet is complete; what was written is in the other rank's memory.
    Completed(Token),
    /// A send, a read, a write or the rest of a packet has failed for good.
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

/// Packets that [`Transport::send_now`] takes at a time.
pub const TOGETHER_MAX: usize = 4;

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
        caller: LocalRank,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused>;

    /// As [`Transport::send`], for at most [`TOGETHER_MAX`] packets whose memory is not kept: what cannot be sent now
    /// is copied. False if the transport would rather have the memory, or cannot take all of them now; nothing was sent
    /// then.
    fn send_now(&self, _endpoint: LocalRank, _caller: LocalRank, _to: WorldRank, _packets: &[Packet<'_>]) -> bool {
        false
    }

    /// Makes `length` bytes from `start` readable and writable for other ranks, through `endpoint`.
    /// Registrations are cached: the same memory again is cheap.
    ///
    /// # Errors
    /// [`Refused::OutOfMemory`]; [`Refused::Busy`] if the owner has to do it.
    ///
    /// # Safety
    /// The memory stays mapped until [`Transport::withdraw`].
    unsafe fn expose(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        start: *mut u8,
        length: usize,
    ) -> Result<Region, Refused>;

    /// Ends the use of a region that [`Transport::expose`] gave, once for each time.
    fn withdraw(&self, endpoint: LocalRank, caller: LocalRank, region: Region);

    /// The node has so many ranks from now on, of those that there is room for: see [`cohort_base::spawn`]. By any
    /// task, before the new ones are known to anybody.
    fn grow(&self, _ranks: u32) {}

    /// Starts a read or a write.
    ///
    /// # Errors
    /// [`Refused`]; nothing was started then.
    ///
    /// # Safety
    /// The transfer's memory stays readable, and writable for a read, until the completion.
    unsafe fn transfer(&self, endpoint: LocalRank, caller: LocalRank, transfer: Transfer) -> Result<(), Refused>;

    /// Takes events of `endpoint` as far as `budget` goes, in order, and gives each to `sink`, which
    /// must not call the transport but for [`Transport::interrupt`].
    fn poll(&self, endpoint: LocalRank, caller: LocalRank, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> Polled;

    /// Whether a thief's call left something at `endpoint` that waits for the owner: it must poll.
    /// One load; made without a claim.
    fn owes(&self, endpoint: LocalRank) -> bool;

    /// Whether calls of this caller for `endpoint` are made: they are refused where its process may not have what they
    /// need, and another task has to make them. One load or two; made without a claim.
    fn may_call(&self, _endpoint: LocalRank, _caller: LocalRank) -> bool {
        true
    }

    /// Whether a thread of this rank's process is in a call of the transport that a handler of a signal must not
    /// interrupt by another one. One load; made without a claim.
    fn is_in_call(&self, _caller: LocalRank) -> bool {
        false
    }

    /// A rank of the node has died, none of whose tasks runs any more, and the others go on. If it `watched`, its sleep
    /// in [`Transport::watch`] is over, and another task may have one. `false` if it may have had something of the
    /// network's half changed, so that the node cannot go on. By the launcher, once for each.
    fn died(&self, _rank: LocalRank, _watched: bool) -> bool {
        false
    }

    /// Sleeps until an endpoint of the node may have events, there is input at one of the `others`, which are
    /// descriptors of the caller's process, [`Transport::interrupt`] is called or `limit` is over. May return early.
    /// One task at a time; made without a claim.
    fn watch(&self, caller: LocalRank, limit: Option<Duration>, others: &[i32]);

    /// Ends the sleep of the task in [`Transport::watch`], or of the next one. Costs one atomic
    /// operation when nobody is there. Made in any state, also by a sink: it waits for nobody.
    fn interrupt(&self, caller: LocalRank);
}

//! What is known of a message from a remote peer: before a receive takes it, and while its data is on its way.

use crate::matching::Stored;
use crate::operation::Operation;
use crate::ring::{self, PayloadKind};
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links};
use cohort_core::message::{Envelope, Status};
use cohort_core::subsystem::{Mark, hooks};
use cohort_datatype as datatype;
use cohort_fabric::Region;
use cohort_net::Net;
use cohort_net::link::{InWaiting, answer};
use cohort_net::names::{self, Name, What};
use cohort_net::wire::{Header, Kind, READABLE, SYNCHRONOUS};
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// [`Links`] of the list of receives.
pub(super) const IN_READING: u8 = 0;

/// A message from a remote peer that waits to be delivered: the payload of a stored message.
#[repr(C)]
#[derive(Debug)]
pub struct Arrival {
    /// Of the list of offers that wait for room; first, so that an element of that list is an arrival.
    pub(super) waiting: InWaiting,
    pub(super) peer: Peer,
    /// Of the packet's header.
    pub(super) flags: u8,
    /// Whether the message took its cost out of the sender's window.
    pub(super) is_owed: bool,
    /// Of the packet's header.
    pub(super) message: u32,
    pub(crate) bytes: u64,
    pub(super) id: u64,
    pub(super) region: Region,
    pub(super) data: Data,
}

/// Where a message's data is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    /// In the packet.
    InPacket(*const u8),
    /// In a block of the heap that goes with the arrival; null for no bytes.
    Stored(*mut u8),
    /// With the sender, until a receive takes the message.
    Offered,
    /// With the sender, until there is room for it or a receive takes the message; in the link's list.
    Waiting,
    /// On its way into a block.
    Coming(NonNull<Inbound>),
}

impl Arrival {
    /// The arrival that a stored message is.
    ///
    /// # Safety
    /// `stored` is valid, and its kind says so.
    pub(crate) unsafe fn of(stored: *mut Stored) -> *mut Self {
        // SAFETY: the caller's promise.
        unsafe { Stored::payload(stored).cast() }
    }

    /// Whether its data may be asked for before a receive takes it.
    pub(super) fn may_come_early(&self, net: &Net) -> bool {
        self.bytes <= net.eager_max && self.flags & (SYNCHRONOUS | READABLE) == 0
    }
}

/// The header of a stored arrival.
pub(super) fn header(envelope: Envelope) -> ring::Header {
    ring::Header::new(envelope, PayloadKind::Arrival, size_of::<Arrival>())
}

/// Data on its way.
#[derive(Debug)]
pub(crate) struct Inbound {
    /// The receive; null while none has taken the message.
    pub(super) request: *mut Operation,
    /// Its status, if there is one.
    pub(super) status: Status,
    /// Where the data goes that was asked for before a receive took the message; else null.
    pub(super) block: *mut u8,
    /// The message that no receive has taken, else null.
    pub(super) arrival: *mut Arrival,
    pub(super) peer: Peer,
    /// By which the sender sends data in packets; 0 if it is read.
    pub(super) name: Name,
    /// The sender's operation.
    pub(super) id: Name,
    /// Where the sender's data lies; unused when it comes in packets.
    pub(super) region: Region,
    pub(super) wanted: u64,
    /// Bytes that were asked for by reads, and bytes that are in the buffer.
    pub(super) next: u64,
    pub(super) done: u64,
    /// Reads under way.
    pub(super) pieces: u32,
    /// What the policy remembers of it.
    pub(super) mark: Mark,
    pub(super) links: Links<Self>,
}

impl Linked<IN_READING> for Inbound {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

impl Inbound {
    /// Whether no read is under way though data is to be read.
    pub(super) fn waits_for_room(&self) -> bool {
        self.pieces == 0 && self.next < self.wanted
    }

    /// One for so many bytes of an offer's data, with no place for them yet.
    pub(super) fn make(claim: &mut Claim<'_>, arrival: &Arrival, wanted: u64) -> Option<NonNull<Self>> {
        let inbound = claim.alloc(size_of::<Self>())?.cast::<Self>();
        // SAFETY: a fresh block of the right size.
        unsafe {
            inbound.write(Self {
                request: null_mut(),
                status: Status::EMPTY,
                block: null_mut(),
                arrival: null_mut(),
                peer: arrival.peer,
                name: 0,
                id: arrival.id,
                region: arrival.region,
                wanted,
                next: 0,
                done: 0,
                pieces: 0,
                mark: hooks::under_way(claim),
                links: Links::NONE,
            });
        }
        Some(inbound)
    }

    /// Asks the sender for the data in packets. `None` without memory.
    ///
    /// # Safety
    /// It is the claimed rank's, without a name.
    pub(super) unsafe fn ask(this: NonNull<Self>, claim: &mut Claim<'_>) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let peer = this.as_ref().peer;
            let name = names::name(claim, What::Receive, peer, this).ok()?;
            (*this.as_ptr()).name = name;
            let mut header = Header::new(Kind::Clear, this.as_ref().id);
            header.bytes = this.as_ref().wanted;
            header.receive = name;
            answer(claim, peer, header);
        }
        Some(())
    }

    /// Stores data that came in a packet.
    ///
    /// # Safety
    /// The data is within what is wanted, and the next after what is there.
    pub(super) unsafe fn take(&mut self, offset: u64, data: &[u8]) {
        let length = data.len();
        // SAFETY: the caller's promise; the block has room for all data, and a receive has a buffer.
        unsafe {
            if self.block.is_null() {
                let buffer = (*self.request).buffer();
                datatype::unpack(buffer, offset, data.as_ptr(), length as u64);
            } else {
                let into = self.block.add(offset as usize);
                into.copy_from_nonoverlapping(data.as_ptr(), length);
            }
        }
        self.done += length as u64;
    }
}

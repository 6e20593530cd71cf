//! What is known of a message from a remote peer: before a receive takes it, and while its data is on its way.

use crate::matching::Stored;
use crate::operation::Operation;
use crate::ring::{self, PayloadKind};
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links};
use cohort_core::message::{Envelope, Status};
use cohort_core::record::RecordRef;
use cohort_core::subsystem::{Mark, hooks};
use cohort_datatype as datatype;
use cohort_fabric::Region;
use cohort_net::Net;
use cohort_net::link::{InWaiting, answer};
use cohort_net::names::{self, Name, Named, What};
use cohort_net::wire::{Header, PacketKind, READABLE, SYNCHRONOUS};
use core::cell::Cell;
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// [`Links`] of the list of receives.
pub(super) const IN_READING: u8 = 0;

/// A message from a remote peer that waits to be delivered: the payload of a stored message.
#[repr(C)]
#[derive(Debug)]
pub struct Arrival {
    /// Of the list of RTS messages that wait for room; first, so that an element of that list is an arrival.
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
    pub(super) data: Cell<Data>,
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
    Coming(RecordRef<Inbound>),
}

impl Arrival {
    /// The arrival that a stored message is.
    ///
    /// # Safety
    /// Its kind says so.
    pub(crate) unsafe fn of(stored: RecordRef<Stored>) -> RecordRef<Self> {
        // SAFETY: the caller's promise: that is its payload.
        unsafe { RecordRef::new(NonNull::new_unchecked(Stored::payload(stored).cast())) }
    }

    /// The arrival that a stored message is, if it is one.
    pub(crate) fn in_message(stored: RecordRef<Stored>) -> Option<RecordRef<Self>> {
        // SAFETY: its kind says so.
        (stored.header.kind == PayloadKind::Arrival).then(|| unsafe { Self::of(stored) })
    }

    /// The arrival that waits in a link's list.
    pub(super) fn in_list(waiting: RecordRef<InWaiting>) -> RecordRef<Self> {
        // SAFETY: each element of such a list is the first field of a stored arrival.
        unsafe { RecordRef::new(waiting.as_non_null().cast()) }
    }

    /// As an element of a link's list.
    pub(super) fn waiting(this: RecordRef<Self>) -> RecordRef<InWaiting> {
        // SAFETY: it is the first field, and there as long as the arrival is.
        unsafe { RecordRef::new(this.as_non_null().cast()) }
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
    /// The receive; none while none has taken the message.
    pub(super) request: Cell<Option<RecordRef<Operation>>>,
    /// Its status, if there is one.
    pub(super) status: Cell<Status>,
    /// Where the data goes that was asked for before a receive took the message; else null.
    pub(super) block: Cell<*mut u8>,
    /// The message that no receive has taken, if there is one.
    pub(super) arrival: Cell<Option<RecordRef<Arrival>>>,
    pub(super) peer: Peer,
    /// By which the sender sends data in packets; 0 if it is read.
    pub(super) name: Cell<Name>,
    /// The sender's operation.
    pub(super) id: Name,
    /// Where the sender's data lies; unused when it comes in packets.
    pub(super) region: Region,
    pub(super) wanted: u64,
    /// Bytes that were asked for by reads, and bytes that are in the buffer.
    pub(super) next: Cell<u64>,
    pub(super) done: Cell<u64>,
    /// Reads under way.
    pub(super) pieces: Cell<u32>,
    /// The rest cannot be read any more.
    pub(super) is_lost: Cell<bool>,
    /// Whether the sender waits for word that all has come.
    pub(super) is_answered: bool,
    /// Whether the message took its cost out of the sender's window.
    pub(super) is_owed: bool,
    /// What the policy remembers of it.
    pub(super) mark: Mark,
    pub(super) links: Links<Self>,
}

impl Linked<IN_READING> for Inbound {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

// SAFETY: no other type has names of receives.
unsafe impl Named for Inbound {
    const WHAT: What = What::Receive;
}

impl Inbound {
    /// Whether no read is under way though data is to be read.
    pub(super) fn waits_for_room(&self) -> bool {
        self.pieces.get() == 0 && self.next.get() < self.wanted
    }

    /// One for so many bytes of an RTS's data, with no place for them yet.
    pub(super) fn make(claim: &mut Claim<'_>, arrival: &Arrival, wanted: u64) -> Option<RecordRef<Self>> {
        let mark = hooks::under_way(claim);
        let inbound = Self {
            request: Cell::new(None),
            status: Cell::new(Status::EMPTY),
            block: Cell::new(null_mut()),
            arrival: Cell::new(None),
            peer: arrival.peer,
            name: Cell::new(0),
            id: arrival.id,
            region: arrival.region,
            wanted,
            next: Cell::new(0),
            done: Cell::new(0),
            pieces: Cell::new(0),
            is_lost: Cell::new(false),
            is_answered: !arrival.is_owed || arrival.flags & SYNCHRONOUS != 0,
            is_owed: arrival.is_owed,
            mark,
            links: Links::none(),
        };
        let made = RecordRef::make(claim, inbound);
        if made.is_none() {
            hooks::over(claim, mark);
        }
        made
    }

    /// Asks the sender for the data of one of the claimed rank's in packets. `None` without memory.
    pub(super) fn ask(this: RecordRef<Self>, claim: &mut Claim<'_>) -> Option<()> {
        let name = names::name(claim, this.peer, this).ok()?;
        this.name.set(name);
        let mut header = Header::new(PacketKind::Clear, this.id);
        header.bytes = this.wanted;
        header.receive = name;
        answer(claim, this.peer, header);
        Some(())
    }

    /// Stores data that came in a packet.
    ///
    /// # Safety
    /// The data is within what is wanted, and the next after what is there.
    pub(super) unsafe fn take(&self, offset: u64, data: &[u8]) {
        let length = data.len();
        // SAFETY: the caller's promise; the block has room for all data.
        unsafe {
            match self.request.get().filter(|_| self.block.get().is_null()) {
                Some(request) => {
                    datatype::unpack_bytes(request.buffer(), offset, data);
                }
                None => {
                    let into = self.block.get().add(offset as usize);
                    into.copy_from_nonoverlapping(data.as_ptr(), length);
                }
            }
        }
        self.done.set(self.done.get() + length as u64);
    }
}

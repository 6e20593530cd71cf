//! An endpoint: libfabric's objects, and what is under way for the ranks that share it.
//!
//! Each endpoint has a fabric and a domain of its own, so that endpoints share nothing that a
//! call could touch, neither memory nor descriptors: calls for different ones run in parallel without
//! locks of the provider.

mod events;
mod meeting;
mod open;

use crate::operations::{Operation, OperationKind, Pieces, Pool};
use crate::regions::{Regions, Registered};
use crate::sys;
use cohort_fabric::{Direction, Packet, Refused, Region, Sent, Transfer, WorldRank};
use cohort_fabric_host::endpoint::{Endpoint, EndpointPlace, RejectedPackets};
use cohort_fabric_host::event_queue::{Delivery, Ticket};
use cohort_fabric_host::packet::{PREFIX, Prefix, Way};
use events::NO_ENTRY;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::Arc;

/// Longest packet that is passed to `fi_inject`, from the stack.
const INJECT_MAX: usize = 256;

/// libfabric's objects of one endpoint, in the order of their making. Closed in reverse.
#[derive(Debug)]
struct Objects {
    fabric: *mut sys::Fabric,
    domain: *mut sys::Domain,
    addresses: *mut sys::Av,
    completions: *mut sys::Cq,
    endpoint: *mut sys::Ep,
}

/// Of all operations, a peer may have one of so many under way: a node that takes nothing must not hold up the others.
const SHARE_OF_PEER: u32 = 4;

/// What is known of another endpoint.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Its number in the address vector.
    address: u64,
    /// Why it cannot be reached.
    lost: Option<i32>,
    /// Sends, reads and writes under way.
    under_way: u32,
    /// A packet has come from there.
    is_heard: bool,
    /// Whether this one, and the other one, have taken leave.
    has_bye: [bool; 2],
}

impl Peer {
    const UNKNOWN: Self =
        Self { address: sys::ADDRESS_NONE, lost: None, under_way: 0, is_heard: false, has_bye: [false; 2] };

    /// Whether all that goes between the two has arrived, and nothing will come any more.
    fn is_over(&self) -> bool {
        let is_unknown = !self.is_heard && self.address == sys::ADDRESS_NONE;
        is_unknown || self.lost.is_some() || self.has_bye == [true; 2] && self.under_way == 0
    }
}

/// An endpoint. Used by one call at a time.
#[derive(Debug)]
pub struct OfiEndpoint {
    place: EndpointPlace,
    regions: ManuallyDrop<Regions>,
    objects: ManuallyDrop<Objects>,
    sends: ManuallyDrop<Pool>,
    receives: ManuallyDrop<Pool>,
    /// The end of the process closes it.
    left_open: bool,
    /// Descriptors of the memory of both pools.
    descriptors: [*mut libc::c_void; 2],
    /// Receives that could not be posted.
    unposted: Vec<*mut Operation>,
    /// By their numbers, once these are known.
    peers: Vec<Peer>,
    /// How many operations a peer may have under way.
    under_way_max: u32,
    /// All connections are made before the ranks start.
    connects_first: bool,
    /// How many deaths were reported to this endpoint.
    deaths_seen: u32,
    rejected: RejectedPackets,
    inject: usize,
    local_registration: bool,
    wait_descriptor: Option<i32>,
    name: Vec<u8>,
}

// SAFETY: libfabric's objects may be used from any thread, by one at a time, as `&mut` demands.
unsafe impl Send for OfiEndpoint {}

impl OfiEndpoint {
    /// Makes room for all peers, now that they are known.
    #[cold]
    fn know(&mut self, count: usize) {
        if self.peers.is_empty() {
            self.peers.resize(count, Peer::UNKNOWN);
            if count > 2 {
                self.under_way_max /= SHARE_OF_PEER;
            }
        }
    }

    /// The endpoint that serves a rank, and its number in the address vector, where it is entered at its first use.
    fn find(&mut self, rank: WorldRank, delivery: &mut Delivery<'_>) -> Result<(u32, u64), Refused> {
        let peers = self.place.job.peers();
        let peers = peers.ok_or(Refused::Lost(libc::EDESTADDRREQ))?;
        let home = self.place.job.home(rank).ok_or(Refused::Lost(libc::EDESTADDRREQ))?;
        let peer = peers.of_rank(home);
        let count = peers.count();
        if self.peers.len() != count {
            self.know(count);
        }
        let known = self.peers[peer as usize];
        if let Some(code) = known.lost {
            return Err(Refused::Lost(code));
        }
        if known.address != sys::ADDRESS_NONE {
            return Ok((peer, known.address));
        }
        Ok((peer, self.enter(peer, delivery)?))
    }

    /// Enters a peer into the address vector.
    #[cold]
    fn enter(&mut self, peer: u32, delivery: &mut Delivery<'_>) -> Result<u64, Refused> {
        let job = Arc::clone(&self.place.job);
        let peers = job.peers().ok_or(Refused::Lost(libc::EDESTADDRREQ))?;
        let name = peers.address(peer);
        let mut address = sys::ADDRESS_NONE;
        let vector = self.objects.addresses;
        // SAFETY: an open vector and an address of the provider's own format.
        let inserted =
            unsafe { ((*(*vector).ops).insert)(vector, name.as_ptr().cast(), 1, &raw mut address, 0, null_mut()) };
        if inserted != 1 {
            return Err(self.lose(peer, libc::EADDRNOTAVAIL, delivery));
        }
        job.contacted_node(peers.node_of(peer));
        self.peers[peer as usize].address = address;
        Ok(address)
    }

    /// Takes an operation with a peer, if it may have one more.
    fn take(&mut self, kind: OperationKind, peer: u32) -> Result<&mut Operation, Refused> {
        let known = &mut self.peers[peer as usize];
        if known.under_way >= self.under_way_max {
            return Err(Refused::Busy);
        }
        let taken = self.sends.take(kind, peer).ok_or(Refused::Busy)?;
        known.under_way += 1;
        Ok(taken)
    }

    /// Gives an operation back that has not begun, or is over.
    fn give(&mut self, operation: *mut Operation) {
        // SAFETY: an operation of the pool, which nobody else uses.
        let peer = unsafe { (*operation).peer };
        self.peers[peer as usize].under_way -= 1;
        self.sends.give(operation);
    }

    /// Sends a packet.
    ///
    /// # Safety
    /// As for [`Endpoint::send`].
    #[inline]
    pub(super) unsafe fn send_packet(
        &mut self,
        way: Way,
        packet: Packet<'_>,
        ticket: Ticket,
        delivery: &mut Delivery<'_>,
    ) -> Result<Sent, Refused> {
        let (peer, address) = self.find(way.to, delivery)?;
        let is_bye = packet.header.is_empty() && packet.body.is_empty();
        if self.peers[peer as usize].has_bye[1] && !is_bye {
            // All of its ranks have said goodbye, of which this one may not have heard yet: nobody takes the packet.
            return Ok(Sent::Done);
        }
        let prefix = Prefix { from: way.from, to: way.to, cookie: self.place.job.cookie };
        let prefix = prefix.bytes();
        let length = PREFIX + packet.header.len() + packet.body.len();
        // What takes leave, or greets, is to have a completion.
        if length <= self.inject.min(INJECT_MAX) && !is_bye {
            let mut buffer = [0; INJECT_MAX];
            gather(buffer.as_mut_ptr(), [&prefix, packet.header, packet.body]);
            let endpoint = self.objects.endpoint;
            // SAFETY: an open endpoint; the provider copies the bytes.
            let result = unsafe { ((*(*endpoint).msg).inject)(endpoint, buffer.as_ptr().cast(), length, address) };
            return self.started(peer, result, delivery).map(|()| Sent::Done);
        }
        let copied = length <= self.sends.room();
        let kind = if copied { OperationKind::Copied } else { OperationKind::Ticket(ticket) };
        let operation = self.take(kind, peer)?;
        let mut pieces = Pieces::new();
        if copied {
            gather(operation.buffer, [&prefix, packet.header, packet.body]);
            pieces.push(operation.buffer, length);
        } else {
            gather(operation.buffer, [&prefix, &[], &[]]);
            pieces.push(operation.buffer, PREFIX);
            pieces.push(packet.header.as_ptr(), packet.header.len());
            pieces.push(packet.body.as_ptr(), packet.body.len());
        }
        let context = operation.pointer();
        // SAFETY: an open endpoint; the buffer is the operation's until its completion, the rest is
        // the caller's promise. Providers that want local memory registered always copy.
        let result = unsafe { pieces.send(self.objects.endpoint, self.descriptors[0], address, context) };
        if let Err(refused) = self.started(peer, result, delivery) {
            self.give(context.cast());
            return Err(refused);
        }
        Ok(if copied { Sent::Done } else { Sent::Pending })
    }

    /// What libfabric said when an operation was to start.
    fn started(&mut self, peer: u32, result: isize, delivery: &mut Delivery<'_>) -> Result<(), Refused> {
        match i32::try_from(-result).unwrap_or(i32::MAX) {
            0 => Ok(()),
            // Descriptors may be free again later.
            sys::EAGAIN | libc::EINTR | libc::EMFILE => Err(Refused::Busy),
            libc::ENOMEM => Err(Refused::OutOfMemory),
            code => Err(self.lose(peer, code, delivery)),
        }
    }

    /// Notes that an endpoint cannot be reached any more from this one: the ranks that it serves are lost for those
    /// that this one serves. Other endpoints of both nodes find out for themselves, behind what has come there.
    #[cold]
    fn lose(&mut self, peer: u32, code: i32, delivery: &mut Delivery<'_>) -> Refused {
        let known = &mut self.peers[peer as usize];
        if known.lost.is_none() {
            known.lost = Some(code);
            if known.has_bye[1] {
                return Refused::Lost(code);
            }
            delivery.lost(self.place.served(), peer, code);
        }
        Refused::Lost(known.lost.unwrap_or(code))
    }
}

impl Endpoint for OfiEndpoint {
    fn meet(&mut self, delivery: &mut Delivery<'_>) -> Result<(), String> {
        if self.connects_first {
            return self.connect_all(delivery);
        }
        Ok(())
    }

    fn name(&self) -> &[u8] {
        &self.name
    }

    fn wait_descriptor(&self) -> Option<i32> {
        self.wait_descriptor
    }

    fn may_sleep(&mut self) -> bool {
        if !self.unposted.is_empty() {
            return false;
        }
        let fabric = self.objects.fabric;
        let completions = self.objects.completions;
        if self.wait_descriptor.is_none() {
            // SAFETY: an open queue; a read of no entries makes progress and says whether there are any.
            let read = unsafe { ((*(*completions).ops).read)(completions, null_mut(), 0) };
            return read == -(sys::EAGAIN as isize);
        }
        // SAFETY: open objects; libfabric reads a list of one.
        unsafe {
            let mut list = [&raw mut (*completions).fid];
            ((*(*fabric).ops).trywait)(fabric, list.as_mut_ptr(), 1) == 0
        }
    }

    unsafe fn send(
        &mut self,
        way: Way,
        packet: Packet<'_>,
        ticket: Ticket,
        delivery: &mut Delivery<'_>,
    ) -> Result<Sent, Refused> {
        // SAFETY: the caller's promise.
        unsafe { self.send_packet(way, packet, ticket, delivery) }
    }

    unsafe fn expose(&mut self, start: *mut u8, length: usize) -> Result<Region, Refused> {
        // SAFETY: the caller's promise.
        let registered = unsafe { self.regions.register(start, length) };
        registered
            .map(|registered| Region { key: registered.key, address: registered.address })
            .map_err(|_code| Refused::OutOfMemory)
    }

    fn withdraw(&mut self, region: Region) {
        self.regions.release(region.key);
    }

    unsafe fn transfer(
        &mut self,
        transfer: Transfer,
        ticket: Ticket,
        delivery: &mut Delivery<'_>,
    ) -> Result<(), Refused> {
        let (peer, address) = self.find(transfer.peer, delivery)?;
        let operation: *mut Operation = self.take(OperationKind::Ticket(ticket), peer)?;
        let mut local = None;
        if self.local_registration {
            // SAFETY: the caller's promise.
            match unsafe { self.regions.register(transfer.memory, transfer.length) } {
                Ok(registered) => local = Some(registered),
                Err(_code) => {
                    self.give(operation);
                    return Err(Refused::OutOfMemory);
                }
            }
        }
        // SAFETY: the operation was taken for this call; an open endpoint; the memory is the caller's promise.
        let result = unsafe {
            (*operation).local = local.map(|registered| registered.key);
            start(&transfer, self.objects.endpoint, address, local, operation)
        };
        let started = self.started(peer, result, delivery);
        if started.is_err() {
            if let Some(registered) = local {
                self.regions.release(registered.key);
            }
            self.give(operation);
        }
        started
    }

    fn poll(&mut self, delivery: &mut Delivery<'_>) {
        self.take_events(delivery);
    }

    fn leave(&mut self, delivery: &mut Delivery<'_>) -> bool {
        // Where the end of the process closes, it takes nothing away.
        self.left_open || self.take_leave(delivery)
    }
}

/// Starts a read, or a write.
///
/// # Safety
/// An open endpoint, an operation that was taken for this, and memory as for [`OfiEndpoint::transfer`].
unsafe fn start(
    transfer: &Transfer,
    endpoint: *mut sys::Ep,
    address: u64,
    local: Option<Registered>,
    operation: *mut Operation,
) -> isize {
    let mut descriptor = local.map_or(null_mut(), |registered| registered.descriptor);
    let remote = transfer.region.address + transfer.offset;
    if transfer.direction == Direction::Read {
        // SAFETY: the caller's promise.
        return unsafe {
            ((*(*endpoint).rma).read)(
                endpoint,
                transfer.memory.cast(),
                transfer.length,
                descriptor,
                address,
                remote,
                transfer.region.key,
                operation.cast(),
            )
        };
    }
    let piece = libc::iovec { iov_base: transfer.memory.cast(), iov_len: transfer.length };
    let target = sys::RmaIov { addr: remote, len: transfer.length, key: transfer.region.key };
    let message = sys::MsgRma {
        msg_iov: &raw const piece,
        desc: &raw mut descriptor,
        iov_count: 1,
        addr: address,
        rma_iov: &raw const target,
        rma_iov_count: 1,
        context: operation.cast(),
        data: 0,
    };
    // Complete only when the bytes are in the other rank's memory: its engine is told by a packet, which
    // might overtake them.
    let flags = sys::COMPLETION | sys::DELIVERY_COMPLETE;
    // SAFETY: the caller's promise; the record is read during the call.
    unsafe { ((*(*endpoint).rma).writemsg)(endpoint, &raw const message, flags) }
}

/// Copies pieces one behind the other; the caller has made sure that they fit.
fn gather(buffer: *mut u8, pieces: [&[u8]; 3]) {
    let mut at = buffer;
    for piece in pieces {
        // SAFETY: the sum of the lengths is at most the buffer's, by the callers' checks.
        unsafe {
            std::ptr::copy_nonoverlapping(piece.as_ptr(), at, piece.len());
            at = at.add(piece.len());
        }
    }
}

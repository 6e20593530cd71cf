//! One rank's end of the network: libfabric's objects, and what is under way.
//!
//! Each endpoint has a fabric and a domain of its own, so that endpoints share nothing that a
//! call could touch, neither memory nor descriptors: calls for different ones run in parallel without
//! locks of the provider.

mod events;
mod meeting;
mod open;

use crate::operations::{Kind, Operation, Pieces, Pool};
use crate::regions::{Regions, Registered};
use crate::sys;
use cohort_fabric::{
    Budget, Direction, Event, Packet, Refused, Region, Sent, Token, Transfer, WorldRank,
};
use cohort_fabric_host::endpoint::{Endpoint, PendingEvent, RejectedPackets};
use cohort_fabric_host::job::Job;
use cohort_fabric_host::packet::{PREFIX, Prefix};
use events::NO_ENTRY;
use meeting::Early;
use std::collections::VecDeque;
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

/// What is known of another rank.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Its number in the address vector.
    address: u64,
    /// Why it cannot be reached.
    lost: Option<i32>,
}

impl Peer {
    const UNKNOWN: Self = Self {
        address: sys::ADDRESS_NONE,
        lost: None,
    };
}

/// One rank's end of the network. Used by one call at a time.
#[derive(Debug)]
pub struct OfiEndpoint {
    own: WorldRank,
    job: Arc<Job>,
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
    peers: Vec<Peer>,
    pending: VecDeque<PendingEvent>,
    /// Packets that came before the ranks started.
    early: VecDeque<Early>,
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
    /// Number of a rank in the address vector, where it is entered at its first use.
    fn address(&mut self, rank: WorldRank) -> Result<u64, Refused> {
        let peer = self.peers[rank as usize];
        if let Some(code) = peer.lost {
            return Err(Refused::Lost(code));
        }
        if peer.address != sys::ADDRESS_NONE {
            return Ok(peer.address);
        }
        let job = Arc::clone(&self.job);
        let name = job.address(rank).ok_or(Refused::Lost(libc::EDESTADDRREQ))?;
        let mut address = sys::ADDRESS_NONE;
        let vector = self.objects.addresses;
        // SAFETY: an open vector and an address of the provider's own format.
        let inserted = unsafe {
            ((*(*vector).ops).insert)(
                vector,
                name.as_ptr().cast(),
                1,
                &raw mut address,
                0,
                null_mut(),
            )
        };
        if inserted != 1 {
            return Err(self.lose(rank, libc::EADDRNOTAVAIL));
        }
        job.contacted(rank);
        self.peers[rank as usize].address = address;
        Ok(address)
    }

    /// Sends a packet.
    ///
    /// # Safety
    /// As for [`Endpoint::send`].
    #[inline]
    pub(super) unsafe fn send_packet(
        &mut self,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused> {
        let address = self.address(to)?;
        let prefix = Prefix {
            from: self.own,
            to,
            cookie: self.job.cookie,
        };
        let prefix = prefix.bytes();
        let length = PREFIX + packet.header.len() + packet.body.len();
        if length <= self.inject.min(INJECT_MAX) {
            let mut buffer = [0; INJECT_MAX];
            gather(buffer.as_mut_ptr(), [&prefix, packet.header, packet.body]);
            let endpoint = self.objects.endpoint;
            // SAFETY: an open endpoint; the provider copies the bytes.
            let result = unsafe {
                ((*(*endpoint).msg).inject)(endpoint, buffer.as_ptr().cast(), length, address)
            };
            return self.started(to, result).map(|()| Sent::Done);
        }
        let copied = length <= self.sends.room();
        let kind = if copied {
            Kind::Copied
        } else {
            Kind::Token(token)
        };
        let operation = self.sends.take(kind, to).ok_or(Refused::Busy)?;
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
        let result =
            unsafe { pieces.send(self.objects.endpoint, self.descriptors[0], address, context) };
        if let Err(refused) = self.started(to, result) {
            self.sends.give(context.cast());
            return Err(refused);
        }
        Ok(if copied { Sent::Done } else { Sent::Pending })
    }

    /// What libfabric said when an operation was to start.
    fn started(&mut self, peer: WorldRank, result: isize) -> Result<(), Refused> {
        match i32::try_from(-result).unwrap_or(i32::MAX) {
            0 => Ok(()),
            // Descriptors may be free again later.
            sys::EAGAIN | libc::EINTR | libc::EMFILE => Err(Refused::Busy),
            libc::ENOMEM => Err(Refused::OutOfMemory),
            code => Err(self.lose(peer, code)),
        }
    }

    /// Notes that a rank cannot be reached any more.
    fn lose(&mut self, rank: WorldRank, code: i32) -> Refused {
        let peer = &mut self.peers[rank as usize];
        if peer.lost.is_none() {
            peer.lost = Some(code);
            self.pending.push_back(PendingEvent::Lost { rank, code });
        }
        Refused::Lost(peer.lost.unwrap_or(code))
    }
}

impl Endpoint for OfiEndpoint {
    fn meet(&mut self) -> Result<(), String> {
        if self.connects_first {
            return self.connect_all();
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
        if !self.pending.is_empty() || !self.early.is_empty() || !self.unposted.is_empty() {
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
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused> {
        // SAFETY: the caller's promise.
        unsafe { self.send_packet(to, packet, token) }
    }

    unsafe fn expose(&mut self, start: *mut u8, length: usize) -> Result<Region, Refused> {
        // SAFETY: the caller's promise.
        let registered = unsafe { self.regions.register(start, length) };
        registered
            .map(|registered| Region {
                key: registered.key,
                address: registered.address,
            })
            .map_err(|_code| Refused::OutOfMemory)
    }

    fn withdraw(&mut self, region: Region) {
        self.regions.release(region.key);
    }

    unsafe fn transfer(&mut self, transfer: Transfer) -> Result<(), Refused> {
        let address = self.address(transfer.peer)?;
        let kind = Kind::Token(transfer.token);
        let operation: *mut Operation =
            self.sends.take(kind, transfer.peer).ok_or(Refused::Busy)?;
        let mut local = None;
        if self.local_registration {
            // SAFETY: the caller's promise.
            match unsafe { self.regions.register(transfer.memory, transfer.length) } {
                Ok(registered) => local = Some(registered),
                Err(_code) => {
                    self.sends.give(operation);
                    return Err(Refused::OutOfMemory);
                }
            }
        }
        // SAFETY: the operation was taken for this call; an open endpoint; the memory is the caller's promise.
        let result = unsafe {
            (*operation).local = local.map(|registered| registered.key);
            start(&transfer, self.objects.endpoint, address, local, operation)
        };
        let started = self.started(transfer.peer, result);
        if started.is_err() {
            if let Some(registered) = local {
                self.regions.release(registered.key);
            }
            self.sends.give(operation);
        }
        started
    }

    fn poll(&mut self, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> u32 {
        self.take_events(budget, sink)
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
    let piece = libc::iovec {
        iov_base: transfer.memory.cast(),
        iov_len: transfer.length,
    };
    let target = sys::RmaIov {
        addr: remote,
        len: transfer.length,
        key: transfer.region.key,
    };
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

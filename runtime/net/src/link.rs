//! The packets from one rank to one remote peer: in order, and never too many at once.
//!
//! # Order
//! Packets leave in the order in which they were lined up; when the transport is busy they wait here, in the
//! sender's heap, and its progress, which can be stolen, moves them on.
//!
//! # Window
//! Messages that travel with their data may have to be stored by the receiver. Each costs its bytes
//! and [`MESSAGE_COST`] of the pair's window of [`WINDOW`] bytes; the receiver gives the cost back when it
//! has delivered the message, in the headers of its own packets or, when half a window has come together, in
//! a packet of its own. A sender whose window is used up offers its messages instead: then the
//! data stays with the sender, blocking sends wait, and the receiver's memory is bounded. The receiver asks for the
//! data of short offers when it keeps less than a window of messages that nobody has taken. Offers that it has not
//! answered are bounded too (`p2p/src/remote/offers.rs`).

use crate::receiver::hooks;
use crate::wire::{Header, Kind};
use crate::{Net, Network, fail};
use cohort_alloc::Heap;
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::list::{Linked, Links, List};
use cohort_fabric::{Refused, Sent, TOGETHER_MAX};
use cohort_steal::TaskKind;
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::{NonNull, null, null_mut};

/// Bytes of messages that one rank may have on their way to another before it offers them.
pub const WINDOW: u64 = 1 << 20;

/// What a message costs besides its data.
const MESSAGE_COST: u64 = 128;

/// Longest data of a packet that goes with others in one call.
const TOGETHER_BYTES: usize = 512;

/// [`Links`] of the list of links with packets that wait.
pub const IN_BUSY: u8 = 0;

/// What one rank and one remote peer have under way. Made at their first packet.
#[derive(Debug)]
pub struct Link {
    /// Who it leads to.
    pub peer: Peer,
    world: WorldRank,
    first: *mut Outgoing,
    last: *mut Outgoing,
    /// Packets that wait.
    pub queued: u32,
    /// Packets that the transport has not done with.
    pub in_flight: u32,
    /// The part of the window that is in use.
    used: u64,
    /// Offers that the peer has not answered.
    pub offered: u32,
    /// Messages that are not offered before it has answered others, or asks for them.
    held: u32,
    /// Window of the peer that is to be given back.
    owed: u64,
    /// Cost of the peer's messages that are kept here until receives take them.
    pub kept: u64,
    /// Its offers whose data is asked for when less is kept.
    pub waiting: List<InWaiting, 0>,
    /// The peer has said goodbye: it may leave at any time.
    pub is_closed: bool,
    links: Links<Self>,
    /// The link that the rank made before this one.
    pub(crate) earlier: *mut Self,
}

impl Linked<IN_BUSY> for Link {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

/// An offer that waits for room: the beginning of what its receiver remembers of it.
#[derive(Debug)]
pub struct InWaiting(Links<Self>);

impl InWaiting {
    /// Of an offer that does not wait.
    pub const NONE: Self = Self(Links::NONE);
}

impl Linked<0> for InWaiting {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).0 }
    }
}

/// What a message with this much data costs of the window.
pub fn cost(bytes: u64) -> u64 {
    bytes + MESSAGE_COST
}

impl Link {
    /// The link to a peer, whose rank in `MPI_COMM_WORLD` is `world`, before the first packet.
    pub(crate) const fn to(peer: Peer, world: WorldRank) -> Self {
        Self {
            peer,
            world,
            first: null_mut(),
            last: null_mut(),
            queued: 0,
            in_flight: 0,
            used: 0,
            offered: 0,
            held: 0,
            owed: 0,
            kept: 0,
            waiting: List::EMPTY,
            is_closed: false,
            links: Links::NONE,
            earlier: null_mut(),
        }
    }

    /// Whether nothing waits or is under way that the peer still takes.
    pub fn is_quiet(&self) -> bool {
        self.is_closed || self.queued + self.in_flight == 0
    }

    /// Takes the cost of a message out of the window; `false` when it is used up.
    pub fn take_window(&mut self, bytes: u64) -> bool {
        let fits = self.used + cost(bytes) <= WINDOW;
        if fits {
            self.used += cost(bytes);
        }
        fits
    }

    /// A message is not offered for now. Until none is held so, the window counts as used up: no message with its data
    /// may overtake one.
    pub fn hold(&mut self) {
        if self.held == 0 {
            self.used += WINDOW;
        }
        self.held += 1;
    }

    /// Undoes one [`Link::hold`].
    pub fn release(&mut self) {
        self.held -= 1;
        if self.held == 0 {
            self.used = self.used.saturating_sub(WINDOW);
        }
    }

    /// Whether messages are held.
    pub fn holds(&self) -> bool {
        self.held > 0
    }

    /// Undoes [`Link::take_window`]: the message was not sent, or the peer has delivered it.
    pub fn give_window(&mut self, cost: u64) {
        self.used = self.used.saturating_sub(cost);
    }
}

/// A packet, with room for data behind it.
#[derive(Debug)]
pub struct Outgoing {
    next: *mut Self,
    /// What the packet says.
    pub header: Header,
    body: *const u8,
    length: usize,
    /// Where it was lined up.
    pub(crate) link: *mut Link,
    /// A block to free when the packet has left.
    block: *mut u8,
    /// The send that waits for this packet; the receiver of packets knows what it is.
    sender: *mut c_void,
}

impl Outgoing {
    /// A packet with room for `length` bytes of data, and where they go.
    pub fn with_room(
        claim: &mut Claim<'_>,
        header: Header,
        length: usize,
    ) -> Result<(NonNull<Self>, *mut u8), EngineError> {
        let packet = Self::make(claim, header, length)?;
        // SAFETY: fresh, and the room lies behind it in the same block.
        unsafe {
            let room = packet.as_ptr().add(1).cast::<u8>();
            (*packet.as_ptr()).body = room;
            (*packet.as_ptr()).length = length;
            Ok((packet, room))
        }
    }

    /// A packet that refers to its data.
    ///
    /// # Safety
    /// `data` stays readable for `length` bytes until the packet has left.
    pub unsafe fn referring(
        claim: &mut Claim<'_>,
        header: Header,
        data: *const u8,
        length: usize,
    ) -> Result<NonNull<Self>, EngineError> {
        let packet = Self::make(claim, header, 0)?;
        // SAFETY: fresh.
        unsafe {
            (*packet.as_ptr()).body = data;
            (*packet.as_ptr()).length = length;
        }
        Ok(packet)
    }

    /// Says which send waits until the packet has left.
    ///
    /// # Safety
    /// `this` was not lined up yet; the send lives until then.
    pub unsafe fn belongs_to(this: NonNull<Self>, sender: *mut c_void) {
        // SAFETY: the caller's promise.
        unsafe { (*this.as_ptr()).sender = sender };
    }

    /// Has `block` freed when the packet has left.
    ///
    /// # Safety
    /// `this` was not lined up yet; the block is of a rank's heap and nobody else's.
    pub unsafe fn owns(this: NonNull<Self>, block: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { (*this.as_ptr()).block = block.as_ptr() };
    }

    fn make(claim: &mut Claim<'_>, header: Header, room: usize) -> Result<NonNull<Self>, EngineError> {
        let block = claim.alloc(size_of::<Self>() + room).ok_or(EngineError::OutOfMemory)?.cast::<Self>();
        let packet = Self {
            next: null_mut(),
            header,
            body: null(),
            length: 0,
            link: null_mut(),
            block: null_mut(),
            sender: null_mut(),
        };
        // SAFETY: a fresh block that is large enough; the heap aligns to 16.
        unsafe { block.write(packet) };
        Ok(block)
    }

    fn as_packet(&self) -> cohort_fabric::Packet<'_> {
        let body = if self.length == 0 {
            &[]
        } else {
            // SAFETY: the body is readable until the packet has left.
            unsafe { core::slice::from_raw_parts(self.body, self.length) }
        };
        cohort_fabric::Packet { header: self.header.as_bytes(), body }
    }

    /// Ends a packet whose memory the transport does not use any more.
    ///
    /// # Safety
    /// It is in no queue and was not ended before.
    pub unsafe fn left(this: NonNull<Self>, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise; a sender lives until its packets have left.
        unsafe {
            if let Some(sender) = NonNull::new(this.as_ref().sender) {
                hooks::packet_left(claim, sender);
            }
            if let Some(block) = NonNull::new(this.as_ref().block) {
                Heap::free(block);
            }
            claim.free_local(this.cast());
        }
    }
}

/// The claimed rank's link to a remote peer; makes it at the first use.
#[inline]
pub fn link_to(claim: &mut Claim<'_>, peer: Peer) -> Result<NonNull<Link>, EngineError> {
    match claim.of::<Network>().links.find(peer) {
        Some(link) => Ok(link),
        None => make_link(claim, peer),
    }
}

/// [`link_to`] for a peer that has none.
#[cold]
fn make_link(claim: &mut Claim<'_>, peer: Peer) -> Result<NonNull<Link>, EngineError> {
    let node = claim.rank().node();
    assert!(node.local(peer).is_none(), "a remote peer");
    let world = node.world_rank(peer);
    if let Some(bytes) = claim.of::<Network>().links.growth() {
        let room = claim.alloc(bytes).ok_or(EngineError::OutOfMemory)?;
        // SAFETY: fresh room of that size; the old room came from the same heap.
        unsafe {
            if let Some(old) = claim.of::<Network>().links.move_to(room) {
                claim.free_local(old);
            }
        }
    }
    let block = claim.alloc(size_of::<Link>()).ok_or(EngineError::OutOfMemory)?.cast::<Link>();
    // SAFETY: a fresh block. Links are never unmade.
    unsafe {
        block.write(Link::to(peer, world));
        claim.of::<Network>().links.add(block);
    }
    Ok(block)
}

/// Sends a packet past the queue, if nothing waits there and the transport takes all of it without keeping its memory.
/// If not, nothing was sent. By the owner.
///
/// # Safety
/// It is a link of the claimed rank.
pub unsafe fn send_now(
    claim: &mut Claim<'_>,
    net: &Net,
    mut link: NonNull<Link>,
    header: &mut Header,
    data: &[u8],
) -> bool {
    // SAFETY: links belong to the claim's holder.
    let link = unsafe { link.as_mut() };
    let state = claim.of::<Network>();
    let must_wait = state.is_polling || state.is_holding;
    if !link.first.is_null() || must_wait || !claim.is_by_owner() {
        return false;
    }
    let credit = link.owed.min(u64::from(u32::MAX));
    header.credit = credit as u32;
    let packet = cohort_fabric::Packet { header: header.as_bytes(), body: data };
    let own = claim.rank().id();
    let is_sent = net.transport.send_now(own, own, link.world, &[packet]);
    if is_sent {
        link.owed -= credit;
        claim.of::<Network>().sent += 1;
    }
    is_sent
}

/// Lines a packet up. Nothing is sent before [`flush`] or [`crate::kick`].
///
/// # Safety
/// The packet is in no queue; link and packet are the claimed rank's.
pub unsafe fn line_up(claim: &mut Claim<'_>, mut link: NonNull<Link>, packet: NonNull<Outgoing>) {
    // SAFETY: links belong to the claim's holder; the caller's promise.
    unsafe {
        let queue = link.as_mut();
        if queue.first.is_null() {
            queue.first = packet.as_ptr();
            claim.of::<Network>().busy.push(link.as_ptr());
            claim.expect_more(TaskKind::Net);
        } else {
            (*queue.last).next = packet.as_ptr();
        }
        queue.last = packet.as_ptr();
        queue.queued += 1;
        (*packet.as_ptr()).link = link.as_ptr();
    }
}

/// Lines up a packet without data, for a receiver's answer. Without memory for it the job cannot go on.
pub fn answer(claim: &mut Claim<'_>, peer: Peer, header: Header) {
    let made = link_to(claim, peer).and_then(|link| Ok((link, Outgoing::with_room(claim, header, 0)?.0)));
    match made {
        // SAFETY: both are fresh or the claimed rank's.
        Ok((link, packet)) => unsafe { line_up(claim, link, packet) },
        Err(_) => fail::no_memory(claim.rank(), peer),
    }
}

/// Notes that a message of `bytes` bytes of data from `peer` was delivered or dropped.
pub fn owe(claim: &mut Claim<'_>, peer: Peer, bytes: u64) {
    let Ok(mut link) = link_to(claim, peer) else {
        return;
    };
    // SAFETY: links belong to the claim's holder.
    let link = unsafe { link.as_mut() };
    link.owed += cost(bytes);
    // Packets that wait will carry it.
    if link.owed >= WINDOW / 2 && link.queued == 0 {
        answer(claim, peer, Header::new(Kind::Credit, 0));
    }
}

/// Sends what waits on all links of the claimed rank, as far as the transport takes it. Returns how many packets
/// left.
pub fn flush(claim: &mut Claim<'_>, caller: LocalRank) -> u32 {
    let mut sent = 0;
    let mut next = claim.of::<Network>().busy.first();
    while let Some(link) = NonNull::new(next) {
        // SAFETY: elements of the list are valid; the next one is taken first.
        unsafe {
            next = claim.of::<Network>().busy.next(link.as_ptr());
            sent += flush_link(claim, link, caller);
            if link.as_ref().first.is_null() {
                claim.of::<Network>().busy.remove(link.as_ptr());
                claim.expect_less(TaskKind::Net);
            }
        }
    }
    sent
}

/// Sends the first packets of a link in one call, if they are short and the transport takes them so. Returns how many.
///
/// # Safety
/// It is a link of the claimed rank.
unsafe fn send_together(claim: &mut Claim<'_>, net: &Net, mut link: NonNull<Link>, caller: LocalRank) -> u32 {
    let mut packets = [cohort_fabric::Packet::EMPTY; TOGETHER_MAX];
    let mut count = 0;
    // SAFETY: links and their packets belong to the claim's holder.
    unsafe {
        let credit = link.as_ref().owed.min(u64::from(u32::MAX));
        let mut next = link.as_ref().first;
        while let Some(mut packet) = NonNull::new(next)
            && count < TOGETHER_MAX
            && packet.as_ref().length <= TOGETHER_BYTES
        {
            packet.as_mut().header.credit = if count == 0 { credit as u32 } else { 0 };
            packets[count] = (*packet.as_ptr()).as_packet();
            next = packet.as_ref().next;
            count += 1;
        }
        let (own, to) = (claim.rank().id(), link.as_ref().world);
        if count < 2 || !net.transport.send_now(own, caller, to, &packets[..count]) {
            return 0;
        }
        link.as_mut().owed -= credit;
        claim.of::<Network>().sent += count as u64;
        for _ in 0..count {
            if let Some(packet) = NonNull::new(link.as_ref().first) {
                link.as_mut().first = packet.as_ref().next;
                link.as_mut().queued -= 1;
                Outgoing::left(packet, claim);
            }
        }
    }
    count as u32
}

/// [`flush`] for one link, which stays in the list.
///
/// # Safety
/// It is a link of the claimed rank.
unsafe fn flush_link(claim: &mut Claim<'_>, mut link: NonNull<Link>, caller: LocalRank) -> u32 {
    let rank = claim.rank();
    let Some(net) = Net::of(rank.node()) else {
        return 0;
    };
    let mut sent = 0;
    // SAFETY: links and their packets belong to the claim's holder; a packet's memory is kept until
    // the transport is done with it.
    unsafe {
        while link.as_ref().queued > 1 && {
            let together = send_together(claim, net, link, caller);
            sent += together;
            together > 0
        } {}
        while let Some(mut packet) = NonNull::new(link.as_ref().first) {
            let credit = link.as_ref().owed.min(u64::from(u32::MAX));
            packet.as_mut().header.credit = credit as u32;
            let (to, token) = (link.as_ref().world, packet.as_ptr().expose_provenance() as u64);
            let contents = packet.as_ref().as_packet();
            let outcome = net.transport.send(rank.id(), caller, to, contents, token);
            let outcome = match outcome {
                Ok(outcome) => {
                    claim.of::<Network>().sent += 1;
                    outcome
                }
                Err(Refused::Busy | Refused::OutOfMemory) => break,
                Err(Refused::Lost(code)) => {
                    fail::lost(claim, link.as_ref().peer, code);
                    // Only a peer that nobody needs any more comes here.
                    Sent::Done
                }
            };
            let queue = link.as_mut();
            queue.owed -= credit;
            queue.first = packet.as_ref().next;
            queue.queued -= 1;
            sent += 1;
            match outcome {
                Sent::Done => Outgoing::left(packet, claim),
                // The transport may need turns of this rank to write it, also while the rank waits for something else.
                Sent::Pending => {
                    link.as_mut().in_flight += 1;
                    claim.expect_more(TaskKind::Net);
                }
            }
        }
    }
    sent
}

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
//! data of short RTS messages when it keeps less than a window of messages that nobody has taken. RTS messages that it
//! has not answered are bounded too (`p2p/src/remote/rts.rs`).

use crate::receiver::hooks;
use crate::wire::{Header, PacketKind};
use crate::{Net, Network, fail, outside};
use cohort_alloc::Heap;
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::list::{Linked, Links, List};
use cohort_core::record::RecordRef;
use cohort_fabric::{Refused, Sent, TOGETHER_MAX, Transport};
use cohort_steal::TaskKind;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::{NonNull, null, null_mut};

/// Bytes of messages that one rank may have on their way to another before it offers them.
pub const WINDOW: u64 = 1 << 20;

/// What is added to the used part of a window once something has failed: each message is looked at before it leaves.
const GATE: u64 = 1 << 62;

/// What a message costs besides its data.
const MESSAGE_COST: u64 = 128;

/// Longest data of a packet that goes with others behind it in one call.
const TOGETHER_BYTES: usize = 512;

/// Longest data of the last packet of such a call.
const TOGETHER_LAST: usize = 16 << 10;

/// [`Links`] of the list of links with packets that wait.
pub const IN_BUSY: u8 = 0;

/// What one rank and one remote peer have under way. Made at their first packet.
pub struct Link {
    /// Who it leads to.
    pub peer: Peer,
    world: WorldRank,
    /// What its packets go through.
    carrier: &'static dyn Transport,
    first: Cell<Option<RecordRef<Outgoing>>>,
    last: Cell<Option<RecordRef<Outgoing>>>,
    /// Packets that wait.
    pub queued: Cell<u32>,
    /// Packets that the transport has not done with.
    pub in_flight: Cell<u32>,
    /// The part of the window that is in use.
    used: Cell<u64>,
    /// RTS messages that the peer has not answered.
    pub offered: Cell<u32>,
    /// Messages that are not offered before it has answered others, or asks for them.
    held: Cell<u32>,
    /// Window of the peer that is to be given back.
    owed: Cell<u64>,
    /// Cost of the peer's messages that are kept here until receives take them.
    pub kept: Cell<u64>,
    /// Its RTS messages whose data is asked for when less is kept.
    pub waiting: List<InWaiting, 0>,
    /// The peer has said goodbye: it may leave at any time.
    pub is_closed: Cell<bool>,
    links: Links<Self>,
    /// The link that the rank made before this one.
    pub(crate) earlier: Cell<Option<RecordRef<Self>>>,
}

impl core::fmt::Debug for Link {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Linked<IN_BUSY> for Link {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

/// An RTS that waits for room: the beginning of what its receiver remembers of it.
#[derive(Debug)]
pub struct InWaiting(Links<Self>);

impl InWaiting {
    /// Of an RTS that does not wait.
    #[must_use]
    pub const fn none() -> Self {
        Self(Links::none())
    }
}

impl Linked<0> for InWaiting {
    fn links(&self) -> &Links<Self> {
        &self.0
    }
}

/// What a message with this much data costs of the window.
pub fn cost(bytes: u64) -> u64 {
    bytes + MESSAGE_COST
}

impl Link {
    /// The link to a peer, whose number in the job is `world`, before the first packet.
    pub(crate) const fn to(peer: Peer, world: WorldRank, carrier: &'static dyn Transport) -> Self {
        Self {
            peer,
            world,
            carrier,
            first: Cell::new(None),
            last: Cell::new(None),
            queued: Cell::new(0),
            in_flight: Cell::new(0),
            used: Cell::new(0),
            offered: Cell::new(0),
            held: Cell::new(0),
            owed: Cell::new(0),
            kept: Cell::new(0),
            waiting: List::empty(),
            is_closed: Cell::new(false),
            links: Links::none(),
            earlier: Cell::new(None),
        }
    }

    /// Whether nothing waits or is under way that the peer still takes.
    pub fn is_quiet(&self) -> bool {
        self.is_closed.get() || self.queued.get() + self.in_flight.get() == 0
    }

    /// Takes the cost of a message out of the window; `false` when it is used up.
    pub fn take_window(&self, bytes: u64) -> bool {
        let fits = self.used.get() + cost(bytes) <= WINDOW;
        if fits {
            self.used.set(self.used.get() + cost(bytes));
        }
        fits
    }

    /// Whether messages are looked at before they leave, since something has failed.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        self.used.get() >= GATE
    }

    /// Has messages looked at from now on.
    fn gate(&self) {
        if !self.is_gated() {
            self.used.set(self.used.get() + GATE);
        }
    }

    /// [`Link::take_window`] for a message that was looked at.
    pub fn take_window_past_gate(&self, bytes: u64) -> bool {
        let fits = self.used.get() - GATE + cost(bytes) <= WINDOW;
        if fits {
            self.used.set(self.used.get() + cost(bytes));
        }
        fits
    }

    /// A message is not offered for now. Until none is held so, the window counts as used up: no message with its data
    /// may overtake one.
    pub fn hold(&self) {
        if self.held.get() == 0 {
            self.used.set(self.used.get() + WINDOW);
        }
        self.held.set(self.held.get() + 1);
    }

    /// Undoes one [`Link::hold`].
    pub fn release(&self) {
        self.held.set(self.held.get() - 1);
        if self.held.get() == 0 {
            self.used.set(self.used.get().saturating_sub(WINDOW));
        }
    }

    /// Whether messages are held.
    pub fn holds(&self) -> bool {
        self.held.get() > 0
    }

    /// Undoes [`Link::take_window`]: the message was not sent, or the peer has delivered it.
    pub fn give_window(&self, cost: u64) {
        self.used.set(self.used.get().saturating_sub(cost));
    }
}

/// A packet, with room for data behind it.
#[derive(Debug)]
pub struct Outgoing {
    next: Cell<Option<RecordRef<Self>>>,
    /// What the packet says.
    header: UnsafeCell<Header>,
    body: Cell<*const u8>,
    length: Cell<usize>,
    /// Where it was lined up.
    pub(crate) link: Cell<Option<RecordRef<Link>>>,
    /// A block to free when the packet has left.
    block: Cell<*mut u8>,
    /// The send that waits for this packet; the receiver of packets knows what it is.
    sender: Cell<*mut c_void>,
}

/// A packet that was not lined up. One that is dropped leaks.
#[derive(Debug)]
#[must_use]
pub struct Unsent(RecordRef<Outgoing>);

impl Unsent {
    /// A packet with room for `length` bytes of data, and where they go. All of them are written before it is lined up.
    pub fn with_room(claim: &mut Claim<'_>, header: Header, length: usize) -> Result<(Self, *mut u8), EngineError> {
        let packet = Outgoing::make(claim, header, length)?;
        // The room lies behind it in the same block.
        let room = packet.as_ptr().wrapping_add(1).cast::<u8>();
        packet.body.set(room);
        packet.length.set(length);
        Ok((Self(packet), room))
    }

    /// A packet without data.
    pub fn empty(claim: &mut Claim<'_>, header: Header) -> Result<Self, EngineError> {
        Ok(Self(Outgoing::make(claim, header, 0)?))
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
    ) -> Result<Self, EngineError> {
        let packet = Outgoing::make(claim, header, 0)?;
        packet.body.set(data);
        packet.length.set(length);
        Ok(Self(packet))
    }

    /// Says which send waits until the packet has left.
    ///
    /// # Safety
    /// It is what the receiver of packets knows a sender by, and lives until then.
    pub unsafe fn belongs_to(&self, sender: *mut c_void) {
        self.0.sender.set(sender);
    }

    /// Has `block` freed when the packet has left.
    ///
    /// # Safety
    /// The block is of a rank's heap and nobody else's.
    pub unsafe fn owns(&self, block: NonNull<u8>) {
        self.0.block.set(block.as_ptr());
    }
}

impl Outgoing {
    fn make(claim: &mut Claim<'_>, header: Header, room: usize) -> Result<RecordRef<Self>, EngineError> {
        let block = claim.alloc(size_of::<Self>() + room).ok_or(EngineError::OutOfMemory)?.cast::<Self>();
        let packet = Self {
            next: Cell::new(None),
            header: UnsafeCell::new(header),
            body: Cell::new(null()),
            length: Cell::new(0),
            link: Cell::new(None),
            block: Cell::new(null_mut()),
            sender: Cell::new(null_mut()),
        };
        // SAFETY: a fresh block that is large enough; the heap aligns to 16. `left` frees it.
        unsafe {
            block.write(packet);
            Ok(RecordRef::new(block))
        }
    }

    /// The packet as it travels, with this much window for the peer.
    fn as_packet(&self, credit: u32) -> cohort_fabric::Packet<'_> {
        // SAFETY: only here, and under the claim. Nobody reads a former form of the packet: the transport took none.
        // The body is readable until the packet has left.
        let (header, body) = unsafe {
            (*self.header.get()).credit = credit;
            let body: &[u8] = match self.length.get() {
                0 => &[],
                length => core::slice::from_raw_parts(self.body.get(), length),
            };
            (&*self.header.get(), body)
        };
        cohort_fabric::Packet { header: header.as_bytes(), body }
    }

    /// Ends a packet whose memory the transport does not use any more.
    ///
    /// # Safety
    /// It is in no queue, and no copy of its address is used any more.
    pub(crate) unsafe fn left(this: RecordRef<Self>, claim: &mut Claim<'_>) {
        if let Some(sender) = NonNull::new(this.sender.get()) {
            hooks::packet_left(claim, sender);
        }
        // SAFETY: the caller's promise, and that of `owns`.
        unsafe {
            if let Some(block) = NonNull::new(this.block.get()) {
                Heap::free(block);
            }
            this.free(claim);
        }
    }
}

/// The claimed rank's link to a remote peer; makes it at the first use.
#[inline]
pub fn link_to(claim: &mut Claim<'_>, peer: Peer) -> Result<RecordRef<Link>, EngineError> {
    match claim.of::<Network>().links.find(peer) {
        Some(link) => Ok(link),
        None => make_link(claim, peer),
    }
}

/// [`link_to`] for a peer that has none.
#[cold]
fn make_link(claim: &mut Claim<'_>, peer: Peer) -> Result<RecordRef<Link>, EngineError> {
    let node = claim.rank().node();
    assert!(node.local(peer).is_none(), "a remote peer");
    let world = node.world_rank(peer);
    let net = Net::of(node).unwrap_or_else(|| fail::no_network(claim.rank(), peer));
    let carrier = net.carrier(node, peer);
    if let Some(bytes) = claim.of::<Network>().links.growth() {
        let room = claim.alloc(bytes).ok_or(EngineError::OutOfMemory)?;
        // SAFETY: fresh room of that size; the old room came from the same heap.
        unsafe {
            if let Some(old) = claim.of::<Network>().links.move_to(room) {
                claim.free_local(old);
            }
        }
    }
    let link = RecordRef::make(claim, Link::to(peer, world, carrier)).ok_or(EngineError::OutOfMemory)?;
    if node.failure_epoch() != 0 {
        link.gate();
    }
    claim.of::<Network>().links.add(link);
    Ok(link)
}

/// Has all messages of the claimed rank to other nodes looked at before they leave, since something has failed.
pub fn gate_all(claim: &mut Claim<'_>) {
    claim.of::<Network>().links.iter().for_each(|link| link.gate());
}

/// Sends a packet past the queue of a link of the claimed rank, if nothing waits there and the transport takes all
/// of it without keeping its memory. If not, nothing was sent. By the owner.
pub fn send_now(claim: &mut Claim<'_>, link: RecordRef<Link>, header: &mut Header, data: &[u8]) -> bool {
    let state = claim.of::<Network>();
    let must_wait = state.is_polling || state.is_holding;
    if link.first.get().is_some() || must_wait || !claim.is_by_owner() {
        return false;
    }
    let credit = link.credit();
    header.credit = credit;
    let packet = cohort_fabric::Packet { header: header.as_bytes(), body: data };
    let own = claim.rank().id();
    let is_sent = link.carrier.send_now(own, own, link.world, &[packet]);
    if is_sent {
        link.credited(credit);
        claim.of::<Network>().sent += 1;
    }
    is_sent
}

/// Lines a packet up at a link of the claimed rank. Nothing is sent before [`flush`] or [`crate::kick`].
pub fn line_up(claim: &mut Claim<'_>, link: RecordRef<Link>, packet: Unsent) {
    let packet = packet.0;
    if let Some(last) = link.last.replace(Some(packet)).filter(|_| link.first.get().is_some()) {
        last.next.set(Some(packet));
    } else {
        link.first.set(Some(packet));
        claim.of::<Network>().busy.push(link);
        claim.expect_more(TaskKind::Net);
    }
    link.queued.set(link.queued.get() + 1);
    packet.link.set(Some(link));
}

/// Lines up a packet without data, for a receiver's answer. Without memory for it the job cannot go on.
pub fn answer(claim: &mut Claim<'_>, peer: Peer, header: Header) {
    let made = link_to(claim, peer).and_then(|link| Ok((link, Unsent::empty(claim, header)?)));
    match made {
        Ok((link, packet)) => line_up(claim, link, packet),
        Err(_) => fail::no_memory(claim.rank(), peer),
    }
}

/// Notes that a message of `bytes` bytes of data from `peer` was delivered or dropped.
pub fn owe(claim: &mut Claim<'_>, peer: Peer, bytes: u64) {
    let Ok(link) = link_to(claim, peer) else {
        return;
    };
    link.owed.set(link.owed.get() + cost(bytes));
    // Packets that wait will carry it.
    if link.owed.get() >= WINDOW / 2 && link.queued.get() == 0 {
        answer(claim, peer, Header::new(PacketKind::Credit, 0));
    }
}

/// Sends what waits on all links of the claimed rank, as far as the transport takes it. Returns how many packets
/// left.
pub fn flush(claim: &mut Claim<'_>, caller: LocalRank) -> u32 {
    let mut sent = 0;
    let mut next = claim.of::<Network>().busy.first();
    while let Some(link) = next {
        next = claim.of::<Network>().busy.next(link);
        sent += flush_link(claim, link, caller);
        if link.first.get().is_none() {
            claim.of::<Network>().busy.remove(link);
            claim.expect_less(TaskKind::Net);
        }
    }
    sent
}

impl Link {
    /// The window that the next packet gives back.
    fn credit(&self) -> u32 {
        self.owed.get().min(u64::from(u32::MAX)) as u32
    }

    /// The transport has taken so much window.
    fn credited(&self, credit: u32) {
        self.owed.set(self.owed.get() - u64::from(credit));
    }

    /// Takes out the first packet that waits.
    fn take_first(&self) -> Option<RecordRef<Outgoing>> {
        let packet = self.first.get()?;
        self.first.set(packet.next.get());
        self.queued.set(self.queued.get() - 1);
        Some(packet)
    }
}

/// Sends the first packets of a link in one call, if all but the last are short and the transport takes them so.
/// Returns how many.
fn send_together(claim: &mut Claim<'_>, link: RecordRef<Link>, caller: LocalRank) -> u32 {
    let mut waiting = [const { None }; TOGETHER_MAX];
    let mut count = 0;
    let credit = link.credit();
    let mut next = link.first.get();
    while let Some(packet) = next
        && count < TOGETHER_MAX
        && packet.length.get() <= TOGETHER_LAST
    {
        waiting[count] = Some(packet);
        next = packet.next.get().filter(|_| packet.length.get() <= TOGETHER_BYTES);
        count += 1;
    }
    let mut packets = [cohort_fabric::Packet::EMPTY; TOGETHER_MAX];
    for (place, packet) in waiting.iter().flatten().enumerate() {
        packets[place] = packet.as_packet(if place == 0 { credit } else { 0 });
    }
    let (own, to) = (claim.rank().id(), link.world);
    if count < 2 || !link.carrier.send_now(own, caller, to, &packets[..count]) {
        return 0;
    }
    link.credited(credit);
    claim.of::<Network>().sent += count as u64;
    for _ in 0..count {
        if let Some(packet) = link.take_first() {
            // SAFETY: it is in the queue no more, and the transport has taken it.
            unsafe { Outgoing::left(packet, claim) };
        }
    }
    count as u32
}

/// [`flush`] for one link, which stays in the list.
fn flush_link(claim: &mut Claim<'_>, link: RecordRef<Link>, caller: LocalRank) -> u32 {
    let rank = claim.rank();
    let mut sent = 0;
    while link.queued.get() > 1 && {
        let together = send_together(claim, link, caller);
        sent += together;
        together > 0
    } {}
    while let Some(packet) = link.first.get() {
        let credit = link.credit();
        let token = packet.as_ptr().expose_provenance() as u64;
        let contents = packet.as_packet(credit);
        // SAFETY: the packet's memory is kept until the transport has done with it.
        let outcome = unsafe { link.carrier.send(rank.id(), caller, link.world, contents, token) };
        let outcome = match outcome {
            Ok(outcome) => {
                claim.of::<Network>().sent += 1;
                outcome
            }
            Err(Refused::Busy | Refused::OutOfMemory) => break,
            Err(Refused::Lost(code)) => {
                match rank.node().is_foreign(link.peer) {
                    true => outside::lost(claim, link.peer, code),
                    false => fail::lost(claim, link.peer, code),
                }
                // Only a peer that nobody needs any more comes here.
                Sent::Done
            }
        };
        link.credited(credit);
        link.take_first();
        sent += 1;
        match outcome {
            // SAFETY: it is in the queue no more, and the transport has done with it.
            Sent::Done => unsafe { Outgoing::left(packet, claim) },
            // The transport may need turns of this rank to write it, also while the rank waits for something else.
            Sent::Pending => {
                link.in_flight.set(link.in_flight.get() + 1);
                claim.expect_more(TaskKind::Net);
            }
        }
    }
    sent
}

//! Partitioned communication (MPI-4.1, chapter 4).
//!
//! A send and a receive meet once, in order: the sender's first act is an ordinary message, in a context of
//! its own ([`PARTITIONED`]), with the address of a *channel*. Both sides share it from then on. In each
//! round a partition is copied once, straight from the sender's buffer to the receiver's, by whoever
//! comes second of "partition ready" and "buffer open" ([`crate::rounds`]). So a partition of an open
//! round arrives while its receiver computes.
//!
//! The sides may cut the same data differently and describe it by different types: partition `p`
//! of the receiver has arrived when all of the sender's partitions that overlap it have.
//!
//! A receive that starts before the introduction waits in a list; a holder of the claim opens it then. One that is
//! freed before it waits there too, since the introduction is for it and for no later receive.
//!
//! # Who holds what
//! A channel has a reference of either side; the last one frees it, from any task. The sender writes
//! its part before its message leaves, the receiver its part before the first round opens.

use crate::messages::{irecv, isend_owned};
use crate::packed::PackedBlock;
use crate::rounds::Marks;
use crate::want::PARTITIONED;
use cohort_base::Peer;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use cohort_core::Piece;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::list::{Linked, Links};
use cohort_core::message::{Envelope, Source, Status, Tag};
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_datatype::Buffer;
use cohort_steal::TaskKind;
use core::cell::{Cell, UnsafeCell};
use core::mem::ManuallyDrop;
use core::ptr::null_mut;

mod away;
mod channel;
mod data;
mod picture;
mod subsystem;

pub use away::{AwayReceive, AwaySend, NotReady};
pub use data::Partitions;

use channel::{Channel, ChannelRef};
use data::{Destination, overlapping};

pub use crate::rounds::AlreadyReady;

/// Partitioned communication, a subsystem of the engine.
#[derive(Debug)]
pub struct Partitioned;

/// A partitioned send (`MPI_Psend_init`).
#[derive(Debug)]
pub struct PartitionedSend {
    channel: ChannelRef,
    to: Peer,
    /// Rounds that were started.
    round: AtomicU32,
    marks: Marks,
}

// SAFETY: the channel is made for several tasks; see the module page.
unsafe impl Send for PartitionedSend {}
// SAFETY: as above.
unsafe impl Sync for PartitionedSend {}

impl PartitionedSend {
    /// A send that introduces itself to its receiver.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] for a receiver on another node, [`EngineError::OutOfMemory`].
    pub fn new(claim: &mut Claim<'_>, source: Partitions, to: Peer, envelope: Envelope) -> Result<Self, EngineError> {
        require_local(claim, to)?;
        let [channel, theirs] = Channel::make(claim, source, envelope).ok_or(EngineError::OutOfMemory)?;
        // The address is the message. The receiver gives back the reference.
        let introduction = PackedBlock::of_value(claim, theirs.record()).ok_or(EngineError::OutOfMemory)?;
        let hello = Envelope { context: envelope.context | PARTITIONED, ..envelope };
        isend_owned(claim, introduction, to, hello)?.release(claim);
        theirs.into_raw();
        Ok(Self { channel, to, round: AtomicU32::new(0), marks: Marks::new() })
    }

    #[inline(always)]
    fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Number of partitions.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.channel().source.partitions
    }

    /// Begins a round; the one before is over.
    pub fn start(&self) {
        self.marks.begin(self.channel().source.partitions);
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    /// Marks a partition of this round ready (`MPI_Pready`), and copies it if its receiver is ready too.
    /// Any thread of the rank; needs no claim.
    ///
    /// # Errors
    /// [`AlreadyReady`].
    ///
    /// # Panics
    /// If there is no such partition.
    #[inline]
    pub fn ready(&self, partition: u32) -> Result<(), AlreadyReady> {
        let (channel, round) = (self.channel(), self.round.load(Ordering::Relaxed));
        let several = channel.sender.threads_multiple();
        let state = channel.state(partition);
        if !channel.rounds.ready(state, round, several)? {
            self.leave_to_others(partition, round, several);
            return Ok(());
        }
        // SAFETY: we took the partition, which only an open round lets us.
        let receiver = unsafe { channel.copy(partition) };
        let sender = channel.sender;
        // At the end of the round another thread may free the request, and with it the channel.
        let all = (round, channel.source.partitions);
        if channel.rounds.marked(&self.marks, state, all, (true, several)) {
            if several {
                sender.wake();
            }
            receiver.wake();
        }
        Ok(())
    }

    /// A partition was marked, and whoever opens the buffer copies it, or has done so.
    #[inline(never)]
    fn leave_to_others(&self, partition: u32, round: u32, several: bool) {
        // It keeps the channel beyond the end of the round, which does not come before this mark.
        let channel = self.channel.clone();
        let (state, all) = (channel.state(partition), (round, channel.source.partitions));
        if channel.rounds.marked(&self.marks, state, all, (false, several)) {
            channel.sender.wake();
            if let Some(receiver) = channel.receiver() {
                receiver.wake();
            }
        }
    }

    /// Whether this round is over: all partitions were marked ready and have been copied.
    #[inline]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let round = self.round.load(Ordering::Relaxed);
        self.channel().rounds.is_over(round)
    }
}

/// Channels exist within a node.
fn require_local(claim: &Claim<'_>, peer: Peer) -> Result<(), EngineError> {
    let local = claim.rank().node().local(peer);
    local.map(drop).ok_or(EngineError::Unsupported)
}

/// [`Links`] of the owner's list of receives that wait for their introduction, started or freed.
const IN_AWAITING: u8 = 0;

/// The owner's part of a partitioned receive: a block of its heap.
#[derive(Debug)]
pub(crate) struct Receiver {
    data: Partitions,
    /// What the sender's messages would be named by.
    from: Envelope,
    rank: &'static Rank,
    /// The receive of the sender's introduction, and where it says who the sender is.
    introduction: RequestRef,
    introduced: UnsafeCell<Option<RecordRef<Channel>>>,
    /// The channel, once a round was opened.
    channel: AtomicPtr<Channel>,
    /// Rounds that were started.
    round: AtomicU32,
    /// Whether it is in the owner's list: a round was started, or the program has given it back, but the sender is not
    /// known.
    awaits: Cell<bool>,
    is_given_back: Cell<bool>,
    links: Links<Self>,
}

impl Linked<IN_AWAITING> for Receiver {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl Receiver {
    /// Opens the buffer for the round that was started, if the sender is known.
    fn open(&self, _claim: &mut Claim<'_>) -> Option<Opened> {
        if !self.introduction.is_complete() {
            return None;
        }
        let round = self.round.load(Ordering::Relaxed);
        // SAFETY: the introduction is complete, so that the address is there; the channel lives
        // until our reference, which came with it, is given back.
        let channel = unsafe { self.introduced()? };
        let destination = channel.destination.get();
        // SAFETY: only this side's claim holder writes the description, before the first round is
        // opened, and the sender reads it after that.
        unsafe {
            if (*destination).is_none() {
                let ours = Destination::new(&self.data, self.rank, &channel.source);
                *destination = Some(ours);
            }
        }
        // Release pairs with the Acquire in `channel`.
        self.channel.store(channel.record().as_ptr(), Ordering::Release);
        channel.rounds.open(round);
        Some(Opened { channel: ChannelRef::clone(&channel), round })
    }

    /// The channel, with the reference that came with the introduction, if that has come.
    ///
    /// # Safety
    /// The introduction is complete, and the reference was not given back.
    unsafe fn introduced(&self) -> Option<ManuallyDrop<ChannelRef>> {
        // SAFETY: the caller's promise: what was received is an address, or the null that was there before.
        unsafe { (*self.introduced.get()).map(|channel| ManuallyDrop::new(ChannelRef::from_raw(channel))) }
    }

    /// Frees one that was given back, whose introduction has come.
    fn free(this: RecordRef<Self>, claim: &mut Claim<'_>) {
        debug_assert!(this.introduction.is_complete());
        // SAFETY: the owner has given it back, so nobody else looks at it, and no message uses it any more.
        let receiver = unsafe { this.into_value(claim) };
        receiver.introduction.release(claim);
        // SAFETY: a delivered introduction came with a reference.
        drop(receiver.introduced.into_inner().map(|channel| unsafe { ChannelRef::from_raw(channel) }));
    }

    fn channel(&self) -> Option<&Channel> {
        // SAFETY: NULL, or the channel that our reference keeps.
        unsafe { self.channel.load(Ordering::Acquire).as_ref() }
    }
}

/// A round that was just opened: the partitions that were ready before are to be copied, outside of
/// any claim.
#[derive(Debug)]
#[must_use = "partitions that were ready before are copied by nobody else"]
pub(crate) struct Opened {
    channel: ChannelRef,
    round: u32,
}

impl Opened {
    /// Copies what is ready; returns the bytes. For any task.
    fn copy_ready(&self) -> u64 {
        let channel = &self.channel;
        let mut bytes = 0;
        for partition in 0..channel.source.partitions {
            if channel.rounds.take(channel.state(partition), self.round) {
                bytes += channel.source.bytes();
                // SAFETY: we took the partition, and the round is open.
                unsafe { channel.copy_for_sender(partition, self.round) };
            }
        }
        bytes
    }
}

impl Piece for Opened {
    fn run(&self, _pieces: u32) -> u64 {
        self.copy_ready()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // What was ready before the buffer was opened is copied by nobody else.
        self.copy_ready();
    }
}

/// A started receive of the claimed rank whose sender has just become known. Frees those that were given back on the
/// way.
fn next_opened(claim: &mut Claim<'_>) -> Option<Opened> {
    let mut next = claim.of::<Partitioned>().awaiting.first();
    while let Some(receiver) = next {
        next = claim.of::<Partitioned>().awaiting.next(receiver);
        if receiver.is_given_back.get() {
            if receiver.introduction.is_complete() {
                leave_awaiting(claim, receiver);
                Receiver::free(receiver, claim);
            }
        } else if let Some(opened) = receiver.open(claim) {
            leave_awaiting(claim, receiver);
            return Some(opened);
        }
    }
    None
}

/// Puts a receive into the claimed rank's list, in which it is not.
fn enter_awaiting(claim: &mut Claim<'_>, receiver: RecordRef<Receiver>) {
    receiver.awaits.set(true);
    claim.of::<Partitioned>().awaiting.push(receiver);
    claim.expect_more(TaskKind::Shm);
}

/// Takes a receive out of the claimed rank's list, in which it is.
fn leave_awaiting(claim: &mut Claim<'_>, receiver: RecordRef<Receiver>) {
    receiver.awaits.set(false);
    claim.of::<Partitioned>().awaiting.remove(receiver);
    claim.expect_less(TaskKind::Shm);
}

/// A partitioned receive (`MPI_Precv_init`).
#[derive(Debug)]
pub struct PartitionedReceive(RecordRef<Receiver>);

// SAFETY: the parts that change without the claim are atomic.
unsafe impl Send for PartitionedReceive {}
// SAFETY: as above.
unsafe impl Sync for PartitionedReceive {}

impl PartitionedReceive {
    /// A receive that waits for its sender's introduction.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] for a sender on another node, [`EngineError::OutOfMemory`].
    ///
    /// # Panics
    /// If `from` is a wildcard.
    pub fn new(
        claim: &mut Claim<'_>,
        data: Partitions,
        from: Source,
        context: u32,
        tag: i32,
    ) -> Result<Self, EngineError> {
        let Source::Rank { peer: sender, comm_rank } = from else {
            panic!("partitioned receives have one sender");
        };
        require_local(claim, sender)?;
        let length = size_of::<Option<RecordRef<Channel>>>() as u64;
        let block = claim.alloc_aligned(size_of::<Receiver>(), align_of::<Receiver>());
        let receiver = block.ok_or(EngineError::OutOfMemory)?.cast::<Receiver>();
        // SAFETY: a fresh block, which lives until the introduction is received or cancelled.
        unsafe {
            let introduced = &raw mut (*receiver.as_ptr()).introduced;
            introduced.write(UnsafeCell::new(None));
            let room = Buffer::of_bytes(introduced.cast(), length);
            let posted = irecv(claim, room, from, context | PARTITIONED, Tag::Is(tag));
            let introduction = posted.inspect_err(|_| claim.free_local(receiver.cast()))?;
            let address = *(*introduced).get();
            receiver.write(Receiver {
                data,
                from: Envelope { context, source: comm_rank, tag },
                rank: claim.rank().node().rank(claim.rank().id()),
                introduction,
                introduced: UnsafeCell::new(address),
                channel: AtomicPtr::new(null_mut()),
                round: AtomicU32::new(0),
                awaits: Cell::new(false),
                is_given_back: Cell::new(false),
                links: Links::none(),
            });
            Ok(Self(RecordRef::new(receiver)))
        }
    }

    fn receiver(&self) -> &Receiver {
        &self.0
    }

    fn round(&self) -> u32 {
        self.receiver().round.load(Ordering::Relaxed)
    }

    /// Number of partitions.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.receiver().data.partitions
    }

    /// Begins a round; the one before is over. Opens the buffer, now or as soon as the sender is
    /// known. The caller does not hold the claim.
    pub fn start(&self) {
        let receiver = self.receiver();
        let mut claim = receiver.rank.enter();
        receiver.round.fetch_add(1, Ordering::Relaxed);
        let opened = receiver.open(&mut claim);
        if opened.is_none() {
            enter_awaiting(&mut claim, self.0);
        }
        drop(claim);
        if let Some(opened) = opened {
            opened.copy_ready();
        }
    }

    /// Whether a partition of this round has arrived (`MPI_Parrived`).
    ///
    /// # Panics
    /// If there is no such partition.
    #[must_use]
    pub fn has_arrived(&self, partition: u32) -> bool {
        let (receiver, round) = (self.receiver(), self.round());
        assert!(partition < receiver.data.partitions, "no such partition");
        receiver.channel().is_some_and(|channel| {
            let sender = (channel.source.partitions, channel.source.bytes());
            overlapping(sender, &receiver.data, partition)
                .all(|part| channel.rounds.has_arrived(channel.state(part), round))
        })
    }

    /// Whether this round is over.
    #[inline]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let channel = self.receiver().channel();
        channel.is_some_and(|channel| channel.rounds.is_over(self.round()))
    }

    /// The outcome of a round that is over.
    #[must_use]
    pub fn status(&self) -> Status {
        let receiver = self.receiver();
        receiver.channel().map_or(Status::EMPTY, |channel| {
            let message = channel.source.all().bytes();
            Status::delivered(channel.envelope, message, receiver.data.all().bytes())
        })
    }

    /// Gives the receive back. It stays until its introduction has come, which is for no other receive.
    pub fn release(self, claim: &mut Claim<'_>) {
        let receiver = self.receiver();
        let is_known = receiver.introduction.is_complete();
        receiver.is_given_back.set(true);
        match receiver.awaits.get() {
            true if is_known => leave_awaiting(claim, self.0),
            false if !is_known => enter_awaiting(claim, self.0),
            _ => {}
        }
        if is_known {
            Receiver::free(self.0, claim);
        }
    }
}

#[cfg(test)]
mod tests;

//! Partitioned communication between nodes.
//!
//! The sender introduces itself as within a node, by a message that says how its data is cut, and
//! in which *lane* its first partition travels. Each partition that is marked ready is a message in
//! a lane of its own: a tag that no program has, in the context of introductions. The receiver
//! posts a receive for each of them when a round is started, or, if the introduction has not come
//! by then, in a later turn of its owner. In a lane messages keep their order, so those of an early
//! round never meet the receive of another.
//!
//! A partition of the sender need not end where an element of the receiver's type ends: then it is
//! received packed, and unpacked by the first thread of the owner that asks for it.

use super::Partitioned;
use super::picture::{incoming, outgoing};
use super::{Partitions, overlapping};
use crate::messages::{irecv, isend, isend_owned};
use crate::packed::PackedBlock;
use crate::want::PARTITIONED;
use cohort_base::Peer;
use cohort_base::picture::{Fact, Told};
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::list::{Linked, Links};
use cohort_core::message::{Envelope, SendMode, Source, Status, Tag};
use cohort_core::rank::Rank;
use cohort_core::rank_box::RankBox;
use cohort_core::record::RecordRef;
use cohort_core::request::Request;
use cohort_core::request::RequestRef;
use cohort_core::waits::Awaited;
use cohort_datatype::{self as datatype, Buffer};
use cohort_steal::TaskKind;
use core::cell::{Cell, OnceCell, UnsafeCell};
use core::ptr::null_mut;

/// The tag of lane 0; the others are below.
const FIRST_TAG: i32 = -2;

/// Lanes of a rank, used in turn. Two operations share one only if as many partitions lie between them.
const LANES: u32 = 1 << 30;

/// What a sender says of itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Introduction {
    partitions: u32,
    first_lane: u32,
    /// Bytes of one partition.
    bytes: u64,
}

/// The tag of a partition's messages.
fn tag_of(first_lane: u32, partition: u32) -> Tag {
    Tag::Is(FIRST_TAG - (first_lane.wrapping_add(partition) % LANES) as i32)
}

/// Why a partition could not be marked ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// It was marked before in this round.
    Already,
    /// [`EngineError::OutOfMemory`].
    OutOfMemory,
}

/// The message of a partition in this round; null before it is under way.
#[derive(Debug)]
struct Message(AtomicPtr<Request>);

impl Message {
    fn none() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// What a look at the message says; `None` before it is under way.
    fn look<R>(&self, look: impl FnOnce(&RequestRef) -> R) -> Option<R> {
        // Acquire pairs with the Release in `set`.
        let request = self.0.load(Ordering::Acquire);
        // SAFETY: null, or set by `set` and not released since. Nothing is released here.
        let request = unsafe { RequestRef::from_raw(request) };
        request.as_ref().map(look)
    }

    /// Whether the message is under way, or over.
    fn is_there(&self) -> bool {
        self.look(|_| ()).is_some()
    }

    fn set(&self, request: RequestRef) {
        self.0.store(request.into_raw(), Ordering::Release);
    }

    fn is_complete(&self) -> bool {
        self.look(RequestRef::is_complete).unwrap_or(false)
    }

    /// What the message waits for, if it is under way.
    fn told(&self, claim: &mut Claim<'_>) -> Option<Fact> {
        let mut told = None;
        self.look(|request| Awaited::tell(&request, claim, &mut |fact| told = Some(fact)));
        told
    }

    /// Lets go of a message that is complete, if there is one.
    fn forget(&self, claim: &mut Claim<'_>) {
        let request = self.0.swap(null_mut(), Ordering::Relaxed);
        // SAFETY: null, or set by `set` and not released since.
        if let Some(request) = unsafe { RequestRef::from_raw(request) } {
            request.release(claim);
        }
    }
}

/// A partitioned send to another node. Its owner's.
#[derive(Debug)]
pub struct AwaySend {
    rank: &'static Rank,
    data: Partitions,
    to: Peer,
    envelope: Envelope,
    first_lane: u32,
    messages: RankBox<[Message]>,
}

impl AwaySend {
    /// A send that introduces itself to its receiver.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub fn new(claim: &mut Claim<'_>, data: Partitions, to: Peer, envelope: Envelope) -> Result<Self, EngineError> {
        let messages = RankBox::slice(claim, data.partitions as usize, |_, _| Ok(Message::none()))?;
        let first_lane = claim.of::<Partitioned>().take_lanes(data.partitions);
        let envelope = Envelope { context: envelope.context | PARTITIONED, ..envelope };
        let introduction = Introduction { partitions: data.partitions, first_lane, bytes: data.bytes() };
        let block = PackedBlock::of_value(claim, introduction).ok_or(EngineError::OutOfMemory)?;
        isend_owned(claim, block, to, envelope)?.release(claim);
        let rank = claim.rank();
        Ok(Self { rank: rank.node().rank(rank.id()), messages, data, to, envelope, first_lane })
    }

    /// Number of partitions.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.data.partitions
    }

    /// Begins a round; the one before is over. The caller does not hold the claim.
    pub fn start(&self) {
        let claim = &mut self.rank.enter();
        self.messages.iter().for_each(|message| message.forget(claim));
    }

    /// Marks a partition of this round ready, and sends it. Any thread of the rank, without the claim.
    ///
    /// # Errors
    /// [`NotReady`].
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn ready(&self, partition: u32) -> Result<(), NotReady> {
        let message = &self.messages[partition as usize];
        let (rank, mut claim) = (self.rank, self.rank.enter());
        if message.is_there() {
            return Err(NotReady::Already);
        }
        let data = self.data.partition(partition);
        let Tag::Is(tag) = tag_of(self.first_lane, partition) else {
            unreachable!("lanes have tags");
        };
        let envelope = Envelope { tag, ..self.envelope };
        let mode = SendMode::Standard;
        let sent = isend(&mut claim, data, self.to, envelope, mode);
        message.set(sent.map_err(|_| NotReady::OutOfMemory)?);
        // A message that left at once wakes nobody, and another thread may sleep until the round is over. When the
        // claim is gone, it may free the request.
        let is_awaited = rank.threads_multiple() && self.is_complete();
        drop(claim);
        if is_awaited {
            rank.wake();
        }
        Ok(())
    }

    /// Whether this round is over: all partitions were marked ready and sent.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.messages.iter().all(Message::is_complete)
    }

    /// Tells what a round that is not over waits for.
    pub fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let left = self.messages.iter().filter(|message| !message.is_there()).count() as u32;
        let mut under_way = self.messages.iter().filter_map(|message| message.told(claim));
        match under_way.find(|fact| fact.told != Told::Send) {
            Some(fact) => tell(fact),
            None => tell(outgoing(claim, self.to, self.envelope, (self.data.all().bytes(), left))),
        }
    }

    /// Gives the send back.
    pub fn release(self, claim: &mut Claim<'_>) {
        self.messages.iter().for_each(|message| message.forget(claim));
    }
}

/// What becomes of a partition that is received packed.
const PACKED: u32 = 0;
const UNPACKING: u32 = 1;
const IN_PLACE: u32 = 2;

/// A partition of the sender, at the receiver.
#[derive(Debug)]
struct Part {
    message: Message,
    /// Place in the data, and length of what fits there.
    from: u64,
    length: u64,
    /// Room for a partition that is to be unpacked.
    room: Option<RankBox<[UnsafeCell<u8>]>>,
    state: AtomicU32,
}

impl Part {
    fn new(
        claim: &mut Claim<'_>,
        introduction: &Introduction,
        partition: u32,
        data: &Partitions,
    ) -> Result<Self, EngineError> {
        let all = data.all().bytes();
        let from = (u64::from(partition) * introduction.bytes).min(all);
        let length = introduction.bytes.min(all - from);
        let element = data.first.datatype().size() as u64;
        let fits = length == 0 || (from.is_multiple_of(element) && length.is_multiple_of(element));
        let room = match fits {
            true => None,
            false => Some(RankBox::slice(claim, length as usize, |_, _| Ok(UnsafeCell::new(0)))?),
        };
        Ok(Self { message: Message::none(), from, length, room, state: AtomicU32::new(IN_PLACE) })
    }

    /// Posts the receive of this round. Once a round.
    fn post(&self, claim: &mut Claim<'_>, receiver: &AwayReceiver, tag: Tag) -> Result<(), EngineError> {
        let data = &receiver.data;
        let buffer = if let Some(room) = &self.room {
            // Nobody unpacks before the message is complete.
            let base = room.as_ptr().cast::<u8>().cast_mut();
            // SAFETY: the room has so many bytes, and lives until the receive is released, which ends its messages.
            unsafe { Buffer::of_bytes(base, self.length) }
        } else {
            let element = (data.first.datatype().size() as u64).max(1);
            let first = data.first.as_buffer();
            // SAFETY: the range is part of the data, which is the engine's in a round.
            unsafe { first.part(self.from / element, self.length / element) }
        };
        let state = if self.room.is_none() { IN_PLACE } else { PACKED };
        self.state.store(state, Ordering::Relaxed);
        let (source, context) = (receiver.from, receiver.context);
        let posted = irecv(claim, buffer, source, context, tag)?;
        self.message.set(posted);
        Ok(())
    }

    /// Whether the partition is in the program's buffer, where this call may bring it.
    fn has_arrived(&self, data: &Partitions) -> bool {
        if !self.message.is_complete() {
            return false;
        }
        // Acquire pairs with the Release below: who finds it in place sees it.
        let taken = self.state.compare_exchange(PACKED, UNPACKING, Ordering::Acquire, Ordering::Acquire);
        if taken.is_ok() {
            if let Some(room) = &self.room {
                let packed = room.as_ptr().cast::<u8>();
                // SAFETY: the message is complete, and nobody else unpacks it; the data is the engine's.
                unsafe { datatype::unpack(data.all(), self.from, packed, self.length) };
            }
            self.state.store(IN_PLACE, Ordering::Release);
        }
        taken != Err(UNPACKING)
    }
}

/// [`Links`] of the owner's list of receives with a round that waits to be posted.
pub(crate) const IN_AWAY: u8 = 0;

/// What [`AwayReceive`] leads to; a block of the rank's heap.
#[derive(Debug)]
pub(crate) struct AwayReceiver {
    rank: &'static Rank,
    data: Partitions,
    from: Source,
    /// Of introductions and partitions.
    context: u32,
    tag: i32,
    /// The receive of the introduction; set once, before anybody looks.
    introduction: OnceCell<RequestRef>,
    introduced: UnsafeCell<Introduction>,
    /// The sender's partitions, made under the claim; published by `is_known`.
    parts: UnsafeCell<Option<RankBox<[Part]>>>,
    is_known: AtomicBool,
    /// Receives of this round that were posted, and whether it waits for more. Under the claim.
    posted: Cell<u32>,
    waits: Cell<bool>,
    /// The program has given it back before its introduction, or while a message was on its way into it. It is in the
    /// list until that has come.
    is_given_back: Cell<bool>,
    links: Links<Self>,
}

impl Linked<IN_AWAY> for AwayReceiver {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl AwayReceiver {
    /// The sender's partitions; none before it is known.
    fn parts(&self) -> &[Part] {
        // Acquire pairs with the Release in `post`: from then on the list stays as it is.
        match self.is_known.load(Ordering::Acquire) {
            // SAFETY: written before, and not any more.
            true => unsafe { (*self.parts.get()).as_deref().unwrap_or(&[]) },
            false => &[],
        }
    }

    /// Posts the receives of this round, if the sender is known. Says whether all are.
    fn post(&self, claim: &mut Claim<'_>) -> bool {
        if !self.introduction.get().is_some_and(RequestRef::is_complete) {
            return false;
        }
        // SAFETY: the introduction is there, and written no more.
        let introduction = unsafe { *self.introduced.get() };
        if !self.is_known.load(Ordering::Relaxed) {
            let parts = RankBox::slice(claim, introduction.partitions as usize, |claim, index| {
                Part::new(claim, &introduction, index as u32, &self.data)
            });
            // Without memory a later turn goes on.
            let Ok(parts) = parts else {
                return false;
            };
            // SAFETY: the claim is held, and readers wait for `is_known`.
            unsafe { *self.parts.get() = Some(parts) };
            self.is_known.store(true, Ordering::Release);
        }
        for partition in self.posted.get()..introduction.partitions {
            let tag = tag_of(introduction.first_lane, partition);
            let part = &self.parts()[partition as usize];
            if part.post(claim, self, tag).is_err() {
                return false;
            }
            self.posted.set(partition + 1);
        }
        true
    }

    /// Whether a message may be written to it: its introduction, or partitions of this round.
    fn is_in_use(&self) -> bool {
        let is_on_its_way = |message: &RequestRef| !message.is_complete();
        self.introduction.get().is_some_and(is_on_its_way)
            || self.parts().iter().any(|part| part.message.look(is_on_its_way) == Some(true))
    }

    /// Frees one that was given back.
    fn free(this: RecordRef<Self>, claim: &mut Claim<'_>) {
        debug_assert!(!this.is_in_use());
        for part in this.parts() {
            part.message.forget(claim);
        }
        // SAFETY: the owner has given it back, and no message uses it any more.
        let mut receiver = unsafe { this.into_value(claim) };
        if let Some(introduction) = receiver.introduction.take() {
            introduction.release(claim);
        }
    }
}

/// Posts what can be posted of rounds that wait for it, and frees what was given back and is over. By a task of the
/// claimed rank's own process. Says whether anything was.
pub(crate) fn go_on(claim: &mut Claim<'_>) -> bool {
    let mut moved = false;
    let mut next = claim.of::<Partitioned>().away.first();
    while let Some(receiver) = next {
        next = claim.of::<Partitioned>().away.next(receiver);
        if receiver.is_given_back.get() {
            if !receiver.is_in_use() {
                leave(claim, receiver);
                AwayReceiver::free(receiver, claim);
                moved = true;
            }
        } else if receiver.post(claim) {
            leave(claim, receiver);
            moved = true;
        }
    }
    moved
}

/// Puts a receive into the claimed rank's list, in which it is not.
fn enter(claim: &mut Claim<'_>, receiver: RecordRef<AwayReceiver>) {
    receiver.waits.set(true);
    claim.of::<Partitioned>().away.push(receiver);
    claim.expect_more(TaskKind::Net);
}

/// Takes a receive out of the claimed rank's list, in which it is.
fn leave(claim: &mut Claim<'_>, receiver: RecordRef<AwayReceiver>) {
    receiver.waits.set(false);
    claim.of::<Partitioned>().away.remove(receiver);
    claim.expect_less(TaskKind::Net);
}

/// A partitioned receive from another node.
#[derive(Debug)]
pub struct AwayReceive(RecordRef<AwayReceiver>);

// SAFETY: what changes without the claim is atomic, see the fields.
unsafe impl Send for AwayReceive {}
// SAFETY: as above.
unsafe impl Sync for AwayReceive {}

impl AwayReceive {
    /// A receive that waits for its sender's introduction.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub fn new(
        claim: &mut Claim<'_>,
        data: Partitions,
        from: Source,
        context: u32,
        tag: i32,
    ) -> Result<Self, EngineError> {
        let context = context | PARTITIONED;
        let rank = claim.rank();
        let fresh = AwayReceiver {
            rank: rank.forever(),
            data,
            from,
            context,
            tag,
            introduction: OnceCell::new(),
            introduced: UnsafeCell::new(Introduction { partitions: 0, first_lane: 0, bytes: 0 }),
            parts: UnsafeCell::new(None),
            is_known: AtomicBool::new(false),
            posted: Cell::new(0),
            waits: Cell::new(false),
            is_given_back: Cell::new(false),
            links: Links::none(),
        };
        let length = size_of::<Introduction>() as u64;
        let receiver = RecordRef::make(claim, fresh).ok_or(EngineError::OutOfMemory)?;
        // SAFETY: the room for the introduction lives until that is received or cancelled.
        let room = unsafe { Buffer::of_bytes(receiver.introduced.get().cast(), length) };
        // SAFETY: without a receive nobody knows it.
        let introduction =
            irecv(claim, room, from, context, Tag::Is(tag)).inspect_err(|_| unsafe { receiver.free(claim) })?;
        receiver.introduction.get_or_init(|| introduction);
        Ok(Self(receiver))
    }

    fn receiver(&self) -> &AwayReceiver {
        &self.0
    }

    /// Number of partitions.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.receiver().data.partitions
    }

    /// Begins a round; the one before is over. The caller does not hold the claim.
    pub fn start(&self) {
        let receiver = self.receiver();
        let claim = &mut receiver.rank.enter();
        for part in receiver.parts() {
            part.message.forget(claim);
        }
        receiver.posted.set(0);
        if !receiver.post(claim) {
            enter(claim, self.0);
        }
    }

    /// Whether a partition of this round has arrived.
    ///
    /// # Panics
    /// If there is no such partition.
    #[must_use]
    pub fn has_arrived(&self, partition: u32) -> bool {
        let receiver = self.receiver();
        assert!(partition < receiver.data.partitions, "no such partition");
        let parts = receiver.parts();
        let Some(bytes) = self.bytes_of_part() else {
            return false;
        };
        overlapping((parts.len() as u32, bytes), &receiver.data, partition)
            .all(|part| parts[part as usize].has_arrived(&receiver.data))
    }

    /// Bytes of the sender's partitions, once it is known.
    fn bytes_of_part(&self) -> Option<u64> {
        let receiver = self.receiver();
        let is_known = receiver.is_known.load(Ordering::Acquire);
        // SAFETY: the introduction is written no more.
        is_known.then(|| unsafe { (*receiver.introduced.get()).bytes })
    }

    /// Whether this round is over.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let receiver = self.receiver();
        let parts = receiver.parts();
        // All are asked, so that all are unpacked.
        !parts.is_empty()
            && parts.iter().all(|part| part.message.is_complete())
            && parts.iter().all(|part| part.has_arrived(&receiver.data))
    }

    /// Whether all messages of this round have come, which may be packed yet.
    #[must_use]
    pub fn has_come(&self) -> bool {
        let parts = self.receiver().parts();
        !parts.is_empty() && parts.iter().all(|part| part.message.is_complete())
    }

    /// The outcome of a round that is over.
    #[must_use]
    pub fn status(&self) -> Status {
        let receiver = self.receiver();
        let Source::Rank { comm_rank, .. } = receiver.from else {
            return Status::EMPTY;
        };
        let bytes = self.bytes_of_part().unwrap_or(0) * receiver.parts().len() as u64;
        let envelope = Envelope { context: receiver.context, source: comm_rank, tag: receiver.tag };
        Status::delivered(envelope, bytes, receiver.data.all().bytes())
    }

    /// Tells what a round that is not over waits for.
    pub fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let receiver = self.receiver();
        let Source::Rank { comm_rank, .. } = receiver.from else {
            return tell(Fact::new(Told::Outside));
        };
        let is_known = receiver.introduction.get().is_some_and(RequestRef::is_complete);
        let parts = receiver.parts();
        let is_posted = is_known && !parts.is_empty() && receiver.posted.get() as usize == parts.len();
        let mut under_way = parts.iter().filter_map(|part| part.message.told(claim));
        match under_way.find(|fact| fact.told != Told::Receive) {
            Some(fact) => tell(fact),
            // What is to be posted yet is the rank's own doing.
            None if is_known && !is_posted => tell(Fact::new(Told::Outside)),
            None => tell(incoming(Envelope { context: receiver.context, source: comm_rank, tag: receiver.tag })),
        }
    }

    /// Gives the receive back. It stays until its introduction has come, which is for no other receive, and what is on
    /// its way into it.
    pub fn release(self, claim: &mut Claim<'_>) {
        let receiver = self.receiver();
        if receiver.waits.get() {
            leave(claim, self.0);
        }
        if receiver.is_in_use() {
            receiver.is_given_back.set(true);
            enter(claim, self.0);
        } else {
            AwayReceiver::free(self.0, claim);
        }
    }
}

//! Rings of events, one for each rank: what a timeline (`COHORT_TRACE`) is made of.
//!
//! The loader makes a ring before its rank starts ([`crate::boot::RankBoot::trace`]) and reads all when the last rank
//! has ended, however it did: they lie in its own memory. The tasks of a rank write, several at a time if it
//! has threads, and nobody waits.
//!
//! # A slot
//! One cache line: a stamp, and seven words. The ring counts events for ever. Event `n` belongs in slot `n % SLOTS`,
//! and its stamp is `2 (n + 1)` once it is whole. An odd stamp says that a task writes, 0 that nobody has yet.
//!
//! ```text
//! writer                                     reader
//! W1 n = next, next += 1                     R1 stamp s (Acquire); 0 or odd: no event
//! W2 stamp s of the slot; odd, or greater    R2 read the words
//!    than 2 (n + 1): the event is lost       R3 fence (Acquire)
//! W3 swap the stamp s -> s + 1, else lost    R4 stamp is s still: the event is s / 2 - 1
//! W4 fence (Release), write the words
//! W5 stamp = 2 (n + 1) (Release)
//! ```
//!
//! # Why it holds
//! *No event is mixed of two.* Between W3 and W5 the stamp is odd, so no other writer passes W2, and W3 lets one
//! writer of several through. A reader that has read a word of W4 sees, by the two fences, the odd stamp or a later
//! one in R4, and stamps of a slot only grow.
//! *A writer that is killed* between W3 and W5 leaves an odd stamp: its slot holds no event from then on.
//! *All losses are counted.* Each event that was begun took a number in W1. So those that no slot holds are `next` less
//! the events read: older ones that were overwritten, and the few that W2, W3 or a kill has lost.
//!
//! # A call
//! It is one event, which is noted when the call begins and gets its end when it has returned ([`Ring::end`]): with
//! the stamp that it was noted with, E1 the stamp goes from that to the odd one before it, E2 the end is written, E3
//! the stamp is as before. If E1 finds another stamp, a newer event has the slot, and keeps it. Between E1 and
//! E3 W2 turns other writers away, as between W3 and W5. A reader may meet the stamp both before E1 and after E3, and
//! then has one word of two possible ones, the end, and either is right.

use crate::sync::CacheLine;
use crate::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of an event, behind the stamp.
pub const WORDS: usize = 7;

/// Which of them says when it ended.
const END: usize = 1;

/// What an event is of.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A call of MPI: `name`, and in `bytes` and `tag` what it names, if anything; `end` is 0 as long as it runs.
    Call = 1,
    /// The rank has moved something of the rank `peer`, which computes or sleeps; `flow` is nonzero if of its network.
    Steal = 2,
    /// The rank has slept; `flow` is nonzero if somebody woke it.
    Sleep = 3,
    /// The rank has woken the rank `peer`.
    Wake = 4,
    /// A message to the rank `peer` leaves, the `flow`.
    Sent = 5,
    /// The message `flow` from the rank `peer` has met its receive.
    Matched = 6,
    /// The rank has copied a part of a long message of its own.
    Copy = 7,
    /// A turn of the rank's own signal or progress thread.
    Turn = 8,
    /// As `Sent`, to another node: `peer` is the rank's number in the job.
    SentFar = 9,
    /// As `Matched`, from another node: `peer` is the rank's number in the job.
    MatchedFar = 10,
    /// The policy `auto` has changed what helps the rank; `flow` is nonzero if it has turned its fallback on.
    Policy = 11,
}

impl EventKind {
    const ALL: [Self; 11] = [
        Self::Call,
        Self::Steal,
        Self::Sleep,
        Self::Wake,
        Self::Sent,
        Self::Matched,
        Self::Copy,
        Self::Turn,
        Self::SentFar,
        Self::MatchedFar,
        Self::Policy,
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == number)
    }
}

/// No rank of the node.
pub const NOBODY: u32 = u32::MAX;

/// [`Event::tag`] of a call without a tag.
pub const NO_TAG: i32 = i32::MIN;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is of.
    pub kind: EventKind,
    /// The other rank: its index on the node, or what [`EventKind`] says, or, of a call, its rank in the communicator;
    /// [`NOBODY`] if there is none.
    pub peer: u32,
    /// Which task of the rank: a [`thread`], or one of the numbers below.
    pub thread: u64,
    /// When it began, in ticks of [`crate::clock`].
    pub begin: u64,
    /// When it ended; as `begin` for what takes no time, 0 for what has not ended.
    pub end: u64,
    /// What tells a message from others that are under way, or as [`EventKind`] says. Of a call, the address of its
    /// name.
    pub flow: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Tag of a message.
    pub tag: i32,
    /// Bytes of the name of a call.
    pub name: u8,
}

impl Event {
    /// One that takes no time, now, by nobody knows which task.
    #[must_use]
    pub fn now(kind: EventKind, peer: u32) -> Self {
        Self::at(kind, peer, ANYBODY, crate::clock::ticks())
    }

    /// One that takes no time, of a task ([`thread`]) at a time in ticks.
    #[must_use]
    pub fn at(kind: EventKind, peer: u32, thread: u64, time: u64) -> Self {
        Self { kind, peer, thread, begin: time, end: time, flow: 0, bytes: 0, tag: 0, name: 0 }
    }

    /// One of a task ([`thread`]) that has begun at `begin`, in ticks, and ends now.
    #[must_use]
    pub fn since(kind: EventKind, peer: u32, thread: u64, begin: u64) -> Self {
        Self { thread, begin, ..Self::now(kind, peer) }
    }

    /// As numbers, for another node.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let small = u64::from(self.kind as u8) | u64::from(self.name) << 8;
        [
            self.begin,
            self.end,
            small | u64::from(self.peer) << 32,
            self.thread,
            self.flow,
            self.bytes,
            u64::from(self.tag.cast_unsigned()),
        ]
    }

    /// From numbers; `None` if they are no event's.
    #[must_use]
    pub fn of(words: [u64; WORDS]) -> Option<Self> {
        let [begin, end, small, thread, flow, bytes, tag] = words;
        Some(Self {
            kind: EventKind::of(small as u8)?,
            peer: (small >> 32) as u32,
            thread,
            begin,
            end,
            flow,
            bytes,
            tag: (tag as u32).cast_signed(),
            name: (small >> 8) as u8,
        })
    }
}

/// [`Event::thread`] of what may be done by whatever task.
pub const ANYBODY: u64 = 0;

/// [`Event::thread`] of a dedicated worker, whose host the rank is.
pub const WORKER: u64 = 1;

/// [`Event::thread`] of the rank's progress thread.
pub const PROGRESS: u64 = 2;

/// What tells the calling thread from others of its rank: the address of its control block, to which the segment
/// register of every thread of a C library leads. For a rank's own threads: the engine's have no block of their own.
#[inline]
#[must_use]
pub fn thread() -> u64 {
    #[cfg(all(not(miri), not(loom)))]
    {
        cohort_arch::thread_block() as u64
    }
    #[cfg(any(miri, loom))]
    0
}

/// A slot; zeros are an empty one.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Slot {
    stamp: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Slot {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self { stamp: AtomicU64::new(0), words: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// The event in it and its number, if it is whole.
    fn read(&self) -> Option<(u64, Event)> {
        // Acquire pairs with W5.
        let stamp = self.stamp.load(Ordering::Acquire);
        if stamp == 0 || stamp & 1 != 0 {
            return None;
        }
        let words = core::array::from_fn(|place| self.words[place].load(Ordering::Relaxed));
        // Pairs with the fence in `write`.
        fence(Ordering::Acquire);
        if self.stamp.load(Ordering::Relaxed) != stamp {
            return None;
        }
        Some((stamp / 2 - 1, Event::of(words)?))
    }

    #[inline]
    fn write(&self, number: u64, event: &Event) {
        let whole = 2 * (number + 1);
        let seen = self.stamp.load(Ordering::Relaxed);
        if seen & 1 != 0 || seen > whole {
            return;
        }
        // Acquire: the words of the writer before come first.
        let taken = self.stamp.compare_exchange(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            return;
        }
        // Pairs with the fence in `read`.
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(event.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.stamp.store(whole, Ordering::Release);
    }

    #[inline]
    fn end(&self, number: u64, time: u64) -> bool {
        let whole = 2 * (number + 1);
        // Acquire: the words of the event come first.
        let taken = self.stamp.compare_exchange(whole, whole - 1, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            self.words[END].store(time, Ordering::Relaxed);
            self.stamp.store(whole, Ordering::Release);
        }
        taken.is_ok()
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

/// What a ring says of the event with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It.
    Whole(Event),
    /// Nothing: a task writes it, or never will.
    NotYet,
    /// A later one is in its place.
    Gone,
}

/// The newest events of one rank.
#[repr(C)]
#[derive(Debug)]
pub struct Ring {
    next: CacheLine<AtomicU64>,
    slots: *const Slot,
    count: usize,
}

// SAFETY: the pointer is that of a shared reference, which `new` got.
unsafe impl Sync for Ring {}
// SAFETY: as above.
unsafe impl Send for Ring {}

impl Ring {
    /// An empty ring of so many empty slots, at least one.
    #[must_use]
    pub fn new(slots: &'static [Slot]) -> Self {
        assert!(!slots.is_empty(), "a ring has a slot");
        Self { next: CacheLine(AtomicU64::new(0)), slots: slots.as_ptr(), count: slots.len() }
    }

    fn slots(&self) -> &[Slot] {
        // SAFETY: the slice that `new` got, which lives for ever.
        unsafe { core::slice::from_raw_parts(self.slots, self.count) }
    }

    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        &self.slots()[(number % self.count as u64) as usize]
    }

    /// Notes an event. By any task; waits for nobody. Gives its number, for [`Ring::end`].
    #[cold]
    pub fn note(&self, event: &Event) -> u64 {
        // Relaxed: the number says all there is.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.slot(number).write(number, event);
        number
    }

    /// An event that was noted with this number has ended; `false` if newer ones have its slot. By the task that
    /// noted it.
    #[cold]
    pub fn end(&self, number: u64, time: u64) -> bool {
        self.slot(number).end(number, time)
    }

    /// How many events the ring holds at most.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.count as u64
    }

    /// The event with this number, if the ring holds it. At any time, by anybody.
    #[must_use]
    pub fn get(&self, number: u64) -> Found {
        match self.slot(number).read() {
            Some((found, event)) if found == number => Found::Whole(event),
            Some((found, _)) if found > number => Found::Gone,
            _ => Found::NotYet,
        }
    }

    /// Events that were begun to be noted.
    #[must_use]
    pub fn noted(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The events that the ring holds, with their numbers, in any order. At any time, by anybody.
    pub fn events(&self) -> impl Iterator<Item = (u64, Event)> {
        self.slots().iter().filter_map(Slot::read)
    }
}

#[cfg(test)]
mod tests;

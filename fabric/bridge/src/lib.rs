//! The transport between jobs (MPI-5.0, 11.9: ports).
//!
//! Processes of two jobs have no manager, no network and no address space in common. Their launchers have a connection,
//! and carry what ranks leave in rings of memory, a *line* for each node of another job:
//!
//! ```text
//! rank ──► ring of the line ──► launcher ═══ TCP ═══ launcher ──► inbox of the rank ──► rank
//! ```
//!
//! Ranks see a [`Transport`]: to send is to write into a ring, to poll is to read the own inbox. Neither calls the
//! system but to wake a thread of the launcher that sleeps. Nobody watches: the launcher wakes whom something has come
//! for. What launchers do is in `pip-loader/src/launch/outside.rs`.
//!
//! Ranks of other jobs have numbers behind all that the own job may have, so many for each line as that node may have
//! ranks. They mean something on this node only; on a connection frames name ranks by their indexes on their nodes.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod ring;

use cohort_fabric::{
    Budget, Event, Limits, LocalRank, Packet, Polled, Refused, Region, Sent, TOGETHER_MAX, Token, Transfer, Transport,
    WorldRank,
};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use core::time::Duration;
use ring::{Frame, Kind, Ring};

/// Bytes of the longest packet.
pub const PACKET_MAX: usize = 1 << 16;

/// Bytes of each ring: several of the longest packets of any network.
pub const RING: usize = 1 << 22;

/// The end of all numbers of ranks: they are integers of MPI.
const END: WorldRank = 1 << 31;

/// A node of another job.
#[derive(Debug)]
pub struct Line {
    /// The number of its first rank here; the others follow.
    pub first: WorldRank,
    /// How many ranks it may have.
    pub ranks: u32,
    /// What tells its job from others.
    pub job: u64,
    /// The index of the node there.
    pub node: u32,
    /// What is for its ranks.
    pub out: Ring,
    /// Communicators of ranks of this node that have members there, each counted at each rank, where [`Losses`] has no
    /// place for them.
    users: AtomicU32,
    /// 0 while it can be reached; then the system's number for the reason, or [`ENDED`].
    end: AtomicI32,
    losses: Losses,
}

/// What is kept of each rank where ranks survive failures, their own job's and others'; zeros at first. Else both are
/// empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Which failure each rank of the other node has had, as this node counts them, plus one.
    pub failures: &'static [AtomicU32],
    /// Communicators of each rank of this node that have members there: those of one that dies do not count any more.
    pub users: &'static [AtomicU32],
}

/// The other job has ended as jobs do.
pub const ENDED: i32 = -1;

impl Line {
    /// One to this node, whose ranks have numbers from `first` on.
    #[must_use]
    pub fn new((first, ranks): (WorldRank, u32), (job, node): (u64, u32), out: Ring, losses: Losses) -> Self {
        Self { first, ranks, job, node, out, users: AtomicU32::new(0), end: AtomicI32::new(0), losses }
    }

    /// Which failure the rank with this number has had, from 0 on.
    #[must_use]
    pub fn failure_of(&self, rank: WorldRank) -> Option<u32> {
        let place = self.losses.failures.get(rank.checked_sub(self.first)? as usize)?;
        place.load(Ordering::Acquire).checked_sub(1)
    }

    /// Notes that a rank, by its index on its node, has failed as the `number`-th. False if that is known. One call at
    /// a time.
    pub fn note_failure(&self, index: u32, number: u32) -> bool {
        let place = self.losses.failures.get(index as usize).filter(|place| place.load(Ordering::Relaxed) == 0);
        // Release: pairs with the Acquire of those who ask.
        place.inspect(|place| place.store(number + 1, Ordering::Release));
        place.is_some()
    }

    /// Whether failures of its ranks are survived.
    #[must_use]
    pub fn survives(&self) -> bool {
        !self.losses.failures.is_empty()
    }

    /// Whether it leads somewhere.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.end.load(Ordering::Acquire) == 0
    }

    /// It leads nowhere any more, for this reason. Its launcher's threads hear of it.
    pub fn end(&self, reason: i32) {
        self.end.store(reason, Ordering::Release);
        self.out.ring();
    }

    /// A rank has one more communicator with members there, or one less.
    pub fn use_it(&self, rank: LocalRank, more: bool) {
        let users = self.losses.users.get(rank as usize).unwrap_or(&self.users);
        match more {
            true => users.fetch_add(1, Ordering::AcqRel),
            false => users.fetch_sub(1, Ordering::AcqRel),
        };
    }

    /// Whether communicators have members there.
    #[must_use]
    pub fn is_used(&self) -> bool {
        let mut all = self.losses.users.iter().chain([&self.users]);
        all.any(|users| users.load(Ordering::Acquire) != 0)
    }

    /// Whether communicators of this rank have; of any where ranks do not survive failures.
    #[must_use]
    pub fn is_used_by(&self, rank: LocalRank) -> bool {
        let users = self.losses.users.get(rank as usize).unwrap_or(&self.users);
        users.load(Ordering::Acquire) != 0
    }

    /// A rank of this node has died: its communicators count no more.
    pub fn forget(&self, rank: LocalRank) {
        if let Some(users) = self.losses.users.get(rank as usize) {
            users.store(0, Ordering::Release);
        }
    }
}

/// What joins a node with other jobs. Launcher and node image share it; neither frees it.
#[derive(Debug)]
pub struct Bridge {
    /// What tells the own job from others, and the index of this node there.
    pub own: (u64, u32),
    /// The first number of a rank of another job.
    first: WorldRank,
    lines: &'static [AtomicPtr<Line>],
    count: AtomicU32,
    /// What has come for each rank of the node.
    inboxes: &'static [AtomicPtr<Ring>],
}

impl Bridge {
    /// A bridge without lines, over zeroed tables of its own: for so many lines as there may ever be, and for all ranks
    /// that the node may have.
    #[must_use]
    pub fn new(
        own: (u64, u32),
        first: WorldRank,
        lines: &'static [AtomicPtr<Line>],
        inboxes: &'static [AtomicPtr<Ring>],
    ) -> Self {
        Self { own, first, lines, count: AtomicU32::new(0), inboxes }
    }

    /// The lines, the oldest first.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &'static Line> + '_ {
        let count = self.count.load(Ordering::Acquire) as usize;
        // SAFETY: lines below the count were stored before it, and stay.
        self.lines[..count].iter().map(|line| unsafe { &*line.load(Ordering::Relaxed) })
    }

    /// The line to a node of another job, the last one if there were several.
    #[must_use]
    pub fn line_to(&self, job: u64, node: u32) -> Option<&'static Line> {
        self.lines().rev().find(|line| (line.job, line.node) == (job, node))
    }

    /// The index of the line to this rank.
    #[must_use]
    pub fn index_of(&self, rank: WorldRank) -> Option<usize> {
        let count = self.count.load(Ordering::Acquire) as usize;
        let first = |index: usize| -> WorldRank {
            // SAFETY: as above.
            unsafe { (*self.lines[index].load(Ordering::Relaxed)).first }
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match first(middle) <= rank {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low.checked_sub(1)
    }

    /// The line to this rank.
    #[must_use]
    pub fn line_of(&self, rank: WorldRank) -> Option<&'static Line> {
        let index = self.index_of(rank)?;
        // SAFETY: as above.
        let line = unsafe { &*self.lines[index].load(Ordering::Relaxed) };
        (rank - line.first < line.ranks).then_some(line)
    }

    /// The numbers that the next line gets, if it may have so many ranks. By the launcher.
    #[must_use]
    pub fn room(&self, ranks: u32) -> Option<WorldRank> {
        let first = self.lines().next_back().map_or(self.first, |line| line.first + line.ranks);
        let has_place = (self.count.load(Ordering::Relaxed) as usize) < self.lines.len();
        (has_place && first.checked_add(ranks)? < END).then_some(first)
    }

    /// Adds a line, with the numbers of [`Bridge::room`]. By the launcher, one at a time.
    pub fn add(&self, line: &'static Line) {
        let count = self.count.load(Ordering::Relaxed);
        self.lines[count as usize].store(core::ptr::from_ref(line).cast_mut(), Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
    }

    /// What has come for a rank of the node, if ever anything has.
    #[must_use]
    pub fn inbox(&self, rank: LocalRank) -> Option<&'static Ring> {
        let inbox = self.inboxes.get(rank as usize)?.load(Ordering::Acquire);
        // SAFETY: null, or a ring that stays.
        unsafe { inbox.as_ref() }
    }

    /// Makes the inbox of a rank of the node, which has none. By the launcher, one at a time.
    pub fn open_inbox(&self, rank: LocalRank, ring: &'static Ring) {
        if let Some(place) = self.inboxes.get(rank as usize) {
            place.store(core::ptr::from_ref(ring).cast_mut(), Ordering::Release);
        }
    }

    /// Whether something has come for a rank of the node that nobody has taken.
    #[must_use]
    pub fn has_come(&self, rank: LocalRank) -> bool {
        self.inbox(rank).is_some_and(Ring::has_frames)
    }

    fn push(&self, from: LocalRank, to: WorldRank, packet: &Packet<'_>) -> Result<(), Refused> {
        let line = self.line_of(to).ok_or(Refused::Lost(0))?;
        match line.end.load(Ordering::Acquire) {
            0 => {}
            ENDED => return Err(Refused::Lost(0)),
            reason => return Err(Refused::Lost(reason)),
        }
        let length = (packet.header.len() + packet.body.len()) as u32;
        let frame = Frame { length, kind: Kind::Packet as u32, from, to: to - line.first };
        match line.out.push(frame, [packet.header, packet.body], false) {
            true => Ok(()),
            false => Err(Refused::Busy),
        }
    }
}

// SAFETY: packets are copied before `send` returns, and nothing else is kept.
unsafe impl Transport for Bridge {
    fn limits(&self) -> Limits {
        Limits { packet: PACKET_MAX, transfer: 0 }
    }

    unsafe fn send(
        &self,
        endpoint: LocalRank,
        _caller: LocalRank,
        to: WorldRank,
        packet: Packet<'_>,
        _token: Token,
    ) -> Result<Sent, Refused> {
        self.push(endpoint, to, &packet).map(|()| Sent::Done)
    }

    fn send_now(&self, endpoint: LocalRank, _caller: LocalRank, to: WorldRank, packets: &[Packet<'_>]) -> bool {
        debug_assert!(packets.len() <= TOGETHER_MAX);
        match packets {
            [packet] => self.push(endpoint, to, packet).is_ok(),
            // Some of them could be sent, and others not.
            _ => false,
        }
    }

    unsafe fn expose(
        &self,
        _endpoint: LocalRank,
        _caller: LocalRank,
        _start: *mut u8,
        _length: usize,
    ) -> Result<Region, Refused> {
        Err(Refused::OutOfMemory)
    }

    fn withdraw(&self, _endpoint: LocalRank, _caller: LocalRank, _region: Region) {}

    unsafe fn transfer(&self, _endpoint: LocalRank, _caller: LocalRank, _transfer: Transfer) -> Result<(), Refused> {
        Err(Refused::OutOfMemory)
    }

    fn poll(&self, endpoint: LocalRank, _caller: LocalRank, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> Polled {
        let Some(inbox) = self.inbox(endpoint) else {
            return Polled::default();
        };
        let mut events = 0;
        while events < budget.events {
            let front = inbox.front(1);
            let Some(frame) = front.first_chunk().map(Frame::of_bytes) else {
                break;
            };
            if frame.kind == Kind::Gone as u32 {
                sink(Event::Lost { rank: frame.from, code: frame.length.cast_signed() });
            } else if frame.kind == Kind::Over as u32 {
                let ranks = self.line_of(frame.from).map_or(0, |line| line.ranks);
                for rank in frame.from..frame.from + ranks {
                    sink(Event::Lost { rank, code: frame.length.cast_signed() });
                }
            } else if let Some(bytes) = front.get(Frame::BYTES..Frame::BYTES + frame.length as usize) {
                sink(Event::Packet { from: frame.from, bytes });
            }
            if inbox.take(Frame::BYTES + frame.body()) {
                // The launcher waits for room.
                inbox.ring();
            }
            events += 1;
        }
        Polled::events(events)
    }

    fn owes(&self, _endpoint: LocalRank) -> bool {
        false
    }

    /// The launcher wakes whom something has come for: nobody need watch.
    fn watch(&self, _caller: LocalRank, _limit: Option<Duration>, _others: &[i32]) {}

    fn interrupt(&self, _caller: LocalRank) {}
}

/// A place of a table before anything is there.
#[must_use]
pub const fn nothing<T>() -> AtomicPtr<T> {
    AtomicPtr::new(null_mut())
}

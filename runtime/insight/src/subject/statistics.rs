//! What is counted of a rank's calls (`COHORT_STATS`).
//!
//! A rank writes its own, on any of its threads. The root task reads when all ranks have ended. Additions are relaxed:
//! they order nothing.

use super::course::Course;
use super::files::FileTally;
use super::sum::Sum;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_base::clock::ticks_per_us;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spin::{Mutex, MutexGuard};

/// World ranks up to which a rank counts for each other rank; in larger jobs it counts sums only.
pub const PEERS_MAX: u32 = 1 << 14;

/// Requests whose peers are remembered, by the lowest bits of their handles.
pub const REQUESTS: usize = 1 << 10;

/// Microseconds of the course's bins at first.
const FIRST_BIN_US: u64 = 64;

/// Arrivals that a communicator remembers: those of its latest collectives.
const ROUNDS: usize = 64;

/// Calls of one kind. Times are in ticks.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many.
    pub count: Sum,
    /// How long they took.
    pub time: Sum,
    /// How much of that they waited for others.
    pub waiting: Sum,
    /// What they sent or gave.
    pub bytes: Sum,
}

/// What has to do with one other rank.
#[derive(Debug, Default)]
pub struct PeerTally {
    /// Messages to it.
    pub messages: Sum,
    /// Bytes of these.
    pub bytes: Sum,
    /// Ticks of waiting for it.
    pub waited: Sum,
}

/// Who came when to the latest collectives of a communicator all of whose members are of this node.
///
/// A word is the time of an arrival, shifted, with the rank in its lowest bits; the greatest stays. Times grow from
/// one collective to the next, so a place is used again without being cleared.
#[derive(Debug)]
pub struct Arrivals {
    last: [AtomicU64; ROUNDS],
    roots: [AtomicU64; ROUNDS],
}

/// Bits of the rank in a word of [`Arrivals`].
const RANK_BITS: u32 = 12;

impl Default for Arrivals {
    fn default() -> Self {
        Self { last: [const { AtomicU64::new(0) }; ROUNDS], roots: [const { AtomicU64::new(0) }; ROUNDS] }
    }
}

impl Arrivals {
    /// Most members of a communicator that has arrivals.
    pub const MEMBERS_MAX: u32 = 1 << RANK_BITS;

    /// Member `me` comes to collective number `round` at `now`.
    pub fn come(&self, round: u64, me: u32, now: u64, is_root: bool) {
        let word = (now >> RANK_BITS) << RANK_BITS | u64::from(me);
        let place = round as usize % ROUNDS;
        self.last[place].fetch_max(word, Ordering::Relaxed);
        if is_root {
            self.roots[place].fetch_max(word, Ordering::Relaxed);
        }
    }

    /// Who came last to collective number `round`, and when, for one who has left it and knows that all have come.
    #[must_use]
    pub fn last(&self, round: u64) -> (u32, u64) {
        Self::read(&self.last[round as usize % ROUNDS])
    }

    /// The root of collective number `round`, and when it came, for one who has what it gave.
    #[must_use]
    pub fn root(&self, round: u64) -> (u32, u64) {
        Self::read(&self.roots[round as usize % ROUNDS])
    }

    fn read(word: &AtomicU64) -> (u32, u64) {
        let word = word.load(Ordering::Relaxed);
        let mask = (1 << RANK_BITS) - 1;
        ((word & mask) as u32, word & !mask)
    }
}

/// What was done on one communicator, or on those of one name and size that followed each other.
#[derive(Debug)]
pub struct CommTally {
    /// Neutral handle while it exists, else 0.
    pub handle: u32,
    /// Its name.
    pub name: String,
    /// Its members.
    pub size: u32,
    /// Its calls.
    pub tally: Tally,
    /// Blocking collectives that were begun on it.
    pub rounds: u64,
    /// Who came when, if all members are here.
    pub arrivals: Option<&'static Arrivals>,
}

/// A stage of the program.
#[derive(Debug, Default)]
pub struct Section {
    /// Its label.
    pub label: String,
    /// How often it ended.
    pub count: u64,
    /// What happened in it.
    pub sums: Sums,
    /// How often it was begun within itself.
    pub open: u32,
    /// What the rank had when it was begun.
    pub at_begin: Sums,
}

/// Sums at one time, or their growth. Times are in ticks; the first is that of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Time.
    pub time: u64,
    /// In MPI.
    pub mpi: u64,
    /// Of that, waiting.
    pub waiting: u64,
    /// Messages sent.
    pub messages: u64,
    /// Bytes of these.
    pub bytes: u64,
}

impl Sums {
    /// Adds what came between two times.
    pub fn add(&mut self, from: &Self, to: &Self) {
        self.time += to.time.saturating_sub(from.time);
        self.mpi += to.mpi - from.mpi;
        self.waiting += to.waiting - from.waiting;
        self.messages += to.messages - from.messages;
        self.bytes += to.bytes - from.bytes;
    }
}

/// How often a reader that is no rank tries to have a lock of a rank's.
const TRIES: u32 = 10_000;

/// What a rank's lock guards, for a reader that is no rank. None if it is not to be had: a rank that was killed may
/// have it for ever, and what it was changing is not to be touched.
pub fn from_outside<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    (0..TRIES).find_map(|_| {
        let guard = lock.try_lock();
        if guard.is_none() {
            core::hint::spin_loop();
        }
        guard
    })
}

/// Everything that is counted of a rank.
#[derive(Debug)]
pub struct Statistics {
    /// `MPI_Pcontrol(0)`: nothing is counted.
    pub is_paused: AtomicBool,
    /// When the first call began; 0 before.
    pub begun: Sum,
    /// When the latest call ended.
    pub ended: Sum,
    /// Nanoseconds of CPU time that the rank had taken then.
    pub cpu_begun: Sum,
    /// The same when `MPI_Finalize` returned; 0 before.
    pub cpu_ended: Sum,
    /// Ticks in MPI of the thread that called MPI first.
    pub mpi: Sum,
    /// Ticks of waiting of that thread.
    pub waiting: Sum,
    /// The call that this thread is in: the function's place in the table + 1, or 0.
    pub inside: Sum,
    /// When that began.
    pub inside_since: Sum,
    /// Messages sent.
    pub messages: Sum,
    /// Their bytes.
    pub bytes: Sum,
    /// By the functions' places in the table.
    pub calls: Box<[Tally]>,
    /// By world rank; nothing in jobs with more than [`PEERS_MAX`].
    pub peers: Box<[PeerTally]>,
    /// In the order in which they were met.
    pub comms: Mutex<Vec<CommTally>>,
    /// In the order in which they were opened.
    pub files: Mutex<Vec<FileTally>>,
    /// Peers of requests: the handle above, the peer's world rank + 1 below.
    pub requests: Box<[AtomicU64]>,
    /// What a start of a persistent request sends: peer and bytes, by handle.
    pub persistent: Mutex<BTreeMap<u32, (u32, u64)>>,
    /// For whom each thread waits in the call that it is in: world rank + 1.
    pub awaited: Box<[Sum]>,
    /// In the order in which they were first begun.
    pub sections: Mutex<Vec<Section>>,
    /// When the thread that called MPI first was in it.
    pub course: Mutex<Course>,
}

impl Statistics {
    /// Nothing counted.
    #[must_use]
    pub fn new(world: u32, calls: usize, threads: usize) -> Self {
        let peers = if world <= PEERS_MAX { world } else { 0 };
        Self {
            is_paused: AtomicBool::new(false),
            begun: Sum::default(),
            ended: Sum::default(),
            cpu_begun: Sum::default(),
            cpu_ended: Sum::default(),
            mpi: Sum::default(),
            waiting: Sum::default(),
            inside: Sum::default(),
            inside_since: Sum::default(),
            messages: Sum::default(),
            bytes: Sum::default(),
            calls: (0..calls).map(|_| Tally::default()).collect(),
            peers: (0..peers).map(|_| PeerTally::default()).collect(),
            comms: Mutex::default(),
            files: Mutex::default(),
            requests: (0..REQUESTS).map(|_| AtomicU64::new(0)).collect(),
            persistent: Mutex::default(),
            awaited: (0..threads).map(|_| Sum::default()).collect(),
            sections: Mutex::default(),
            course: Mutex::new(Course::new(FIRST_BIN_US * ticks_per_us())),
        }
    }

    /// Counts the call that the thread which called MPI first is in as one that waits and ends at `now`: the job is
    /// over, and it will not return. One that the program has left with `longjmp` counts so too if no other came after
    /// it.
    pub fn settle(&self, now: u64) {
        let Some(tally) = (self.inside.get() as usize).checked_sub(1).and_then(|number| self.calls.get(number)) else {
            return;
        };
        let since = self.inside_since.get();
        let time = now.saturating_sub(since);
        for sum in [&tally.time, &tally.waiting, &self.mpi, &self.waiting] {
            sum.add(time);
        }
        tally.count.add(1);
        let at = |ticks: u64| ticks.saturating_sub(self.begun.get());
        if let Some(mut course) = from_outside(&self.course) {
            course.add(at(since), at(now), time);
        }
        self.ended.set(now);
        self.inside.set(0);
    }

    /// The sums at `now`.
    #[must_use]
    pub fn sums(&self, now: u64) -> Sums {
        Sums {
            time: now,
            mpi: self.mpi.get(),
            waiting: self.waiting.get(),
            messages: self.messages.get(),
            bytes: self.bytes.get(),
        }
    }

    /// A message to a rank of the world.
    pub fn sent(&self, to: u32, bytes: u64) {
        self.messages.add(1);
        self.bytes.add(bytes);
        if let Some(peer) = self.peers.get(to as usize) {
            peer.messages.add(1);
            peer.bytes.add(bytes);
        }
    }

    /// A request has this peer, a world rank, or none that is known.
    pub fn remember(&self, request: u32, peer: Option<u32>) {
        let word = u64::from(request) << 32 | peer.map_or(0, |peer| u64::from(peer) + 1);
        self.requests[request as usize % REQUESTS].store(word, Ordering::Relaxed);
    }

    /// The peer of a request, if it is known.
    #[must_use]
    pub fn peer_of(&self, request: u32) -> Option<u32> {
        let word = self.requests[request as usize % REQUESTS].load(Ordering::Relaxed);
        let is_it = word >> 32 == u64::from(request);
        (word as u32).checked_sub(1).filter(|_| is_it)
    }

    /// A stage begins.
    pub fn begin_section(&self, label: &str, now: u64) {
        let mut sections = self.sections.lock();
        let found = sections.iter().position(|section| section.label == label);
        let index = found.unwrap_or_else(|| {
            sections.push(Section { label: label.into(), ..Section::default() });
            sections.len() - 1
        });
        let section = &mut sections[index];
        section.open += 1;
        if section.open == 1 {
            section.at_begin = self.sums(now);
        }
    }

    /// A stage ends; nothing happens if it has not begun.
    pub fn end_section(&self, label: &str, now: u64) {
        let mut sections = self.sections.lock();
        let is_it = |section: &&mut Section| section.label == label && section.open > 0;
        if let Some(section) = sections.iter_mut().find(is_it) {
            section.open -= 1;
            if section.open == 0 {
                section.count += 1;
                let from = section.at_begin;
                section.sums.add(&from, &self.sums(now));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_come_is_known_and_a_place_is_used_again() {
        let arrivals = Arrivals::default();
        let time = |n: u64| n << 20;
        arrivals.come(0, 1, time(5), false);
        arrivals.come(0, 2, time(9), true);
        arrivals.come(0, 0, time(7), false);
        assert_eq!(arrivals.last(0), (2, time(9)));
        assert_eq!(arrivals.root(0), (2, time(9)));
        let again = ROUNDS as u64;
        arrivals.come(again, 1, time(20), false);
        assert_eq!(arrivals.last(again), (1, time(20)));
        assert_eq!(arrivals.last(1), (0, 0));
    }

    #[test]
    fn a_request_has_the_peer_that_was_said_last() {
        let statistics = Statistics::new(4, 1, 1);
        statistics.remember(7, Some(0));
        statistics.remember(8, None);
        assert_eq!(statistics.peer_of(7), Some(0));
        assert_eq!(statistics.peer_of(8), None);
        assert_eq!(statistics.peer_of(7 + REQUESTS as u32), None);
        statistics.remember(7, None);
        assert_eq!(statistics.peer_of(7), None);
    }

    #[test]
    fn a_call_that_never_returned_has_waited_until_the_end() {
        let statistics = Statistics::new(2, 3, 1);
        statistics.begun.set(100);
        statistics.settle(5000);
        assert_eq!(statistics.mpi.get(), 0, "in no call");
        statistics.inside_since.set(1000);
        statistics.inside.set(2);
        statistics.settle(5000);
        statistics.settle(9000);
        let tally = &statistics.calls[1];
        assert_eq!((tally.count.get(), tally.waiting.get()), (1, 4000));
        assert_eq!((statistics.mpi.get(), statistics.ended.get()), (4000, 5000));
        assert_eq!(statistics.course.lock().waiting.iter().sum::<u64>(), 4000);
    }

    #[test]
    fn a_section_has_what_came_while_it_was_open() {
        let statistics = Statistics::new(2, 1, 1);
        statistics.sent(1, 100);
        statistics.begin_section("solve", 1000);
        statistics.sent(1, 10);
        statistics.begin_section("solve", 1100);
        statistics.end_section("solve", 1200);
        statistics.mpi.add(30);
        statistics.end_section("solve", 1500);
        statistics.sent(0, 5);
        statistics.end_section("solve", 1600);
        statistics.end_section("never begun", 1600);
        let sections = statistics.sections.lock();
        assert_eq!(sections.len(), 1);
        assert_eq!(sections[0].count, 1);
        let sums = sections[0].sums;
        assert_eq!((sums.time, sums.mpi, sums.messages, sums.bytes), (500, 30, 1, 10));
        assert_eq!((statistics.peers[1].bytes.get(), statistics.messages.get()), (110, 3));
    }
}

//! Carries packets between ranks of this node and a node of another job: two threads for each connection.
//!
//! One takes what ranks have left in the line's ring and writes it to the connection, the other reads the connection
//! and puts packets into the inboxes of ranks, which it wakes; where there is no room they wait for it ([`Overflow`]).
//! Both wait in the kernel: for the ring's bell, and for input. Frames are the same in rings and on connections, but
//! that ranks of this node know those of the other one by numbers of their own ([`cohort_bridge`]).

use super::contact::Place;
use super::overflow::{Overflow, Waiting};
use super::wire::{Reader, Wire, Writer};
use cohort_base::boot::VERSION;
use cohort_base::settings::ALIKE;
use cohort_base::spawn::SHARED_NUMBERS;
use cohort_bridge::ring::{Frame, Kind, Ring};
use cohort_bridge::{Bridge, ENDED, Line, Losses, RING};
use cohort_fabric::record;
use pip_ground::say;
use pip_load::boot::Outside as Node;
use pip_load::image::reserve;
use std::collections::BTreeSet;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are written at a time.
const PIECE: usize = 256 << 10;

/// How long a rank that reads nothing is waited for between two looks whether it, the line or the job has ended.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long the end of a connection waits until it counts as a failure: those who disconnect leave one after the other.
const LEAVE_TIME: Duration = Duration::from_millis(300);

/// The same where the other job has ended well: one whose members have failed may, before all have taken leave of it.
const PART_TIME: Duration = Duration::from_secs(2);

/// Longest frame that another launcher may send.
const FRAME_MAX: u32 = (RING / 2) as u32;

/// What both launchers say first on a connection that is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The node.
    pub place: Place,
    /// How many ranks it may have.
    pub ranks: u32,
    /// Whether its user wants what travels encrypted.
    pub encrypts: bool,
    /// Whether its ranks survive each other's failures.
    pub survives: bool,
    /// Whether it goes on when ranks of other jobs fail.
    pub outlives: bool,
    /// [`Settings::alike`]: members of several jobs send each other what these say.
    ///
    /// [`Settings::alike`]: cohort_base::settings::Settings::alike
    pub alike: [u8; ALIKE.len()],
}

/// The one of [`ALIKE`] that several jobs need not have alike: groups with members of other jobs do not look at it.
const OF_ONE_JOB: &str = "COHORT_DOUBLING";

impl Greeting {
    const BYTES: usize = 40;

    /// Where the number of a setting lies in the word of wishes: two bits each, behind the other wishes.
    const fn shift_of(setting: usize) -> usize {
        8 + 2 * setting
    }

    /// As it travels.
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(b"CohortJ1");
        bytes[8..16].copy_from_slice(&record::build().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.place.job.to_le_bytes());
        let mut wishes = u32::from(self.encrypts) | u32::from(self.survives) << 1 | u32::from(self.outlives) << 2;
        for (setting, value) in self.alike.into_iter().enumerate() {
            wishes |= u32::from(value) << Self::shift_of(setting);
        }
        for (at, word) in [(24, self.place.node), (28, self.ranks), (32, wishes), (36, VERSION)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Says it, and hears that of the other launcher.
    ///
    /// # Errors
    /// Why they cannot be connected.
    pub fn exchange(&self, stream: &mut TcpStream) -> Result<Self, String> {
        let own = self.bytes();
        let mut came = [0; Self::BYTES];
        let said = stream.write_all(&own).and_then(|()| stream.read_exact(&mut came));
        said.map_err(|error| format!("it has ended the connection: {error}"))?;
        let word = |at: usize| u32::from_le_bytes([came[at], came[at + 1], came[at + 2], came[at + 3]]);
        if came[..16] != own[..16] || word(36) != VERSION {
            return Err("it is of another version of Cohort: jobs that are to meet use the same".to_owned());
        }
        let job = u64::from(word(16)) | u64::from(word(20)) << 32;
        let [encrypts, survives, outlives] = [1, 2, 4].map(|wish| word(32) & wish != 0);
        // Collectives of ranks that survive each other go other ways.
        if survives != self.survives {
            let (with, without) = if survives { ("that one", "this one") } else { ("this one", "that one") };
            return Err(format!(
                "{with} is started with --on-failure continue and {without} is not: jobs that are to meet have the same"
            ));
        }
        let alike = std::array::from_fn(|setting| (word(32) >> Self::shift_of(setting) & 3) as u8);
        let mut settings = ALIKE.iter().zip(alike.iter().zip(&self.alike));
        if let Some((name, _)) = settings.find(|(name, (theirs, own))| **name != OF_ONE_JOB && theirs != own) {
            return Err(format!("{name} has another value there than here: jobs that are to meet have the same"));
        }
        Ok(Self { place: Place { job, node: word(24) }, ranks: word(28), encrypts, survives, outlives, alike })
    }
}

/// What says that a rank of this node has failed.
fn death(rank: u32) -> Frame {
    Frame { length: 0, kind: Kind::Dead as u32, from: rank, to: 0 }
}

/// Whether a context is one of a communicator of several jobs.
pub fn is_shared(context: u32) -> bool {
    context / 2 >= SHARED_NUMBERS
}

/// Something that a connection is to carry behind what is in its ring.
struct Due {
    /// The line's first number.
    line: u32,
    /// So many bytes are in front of it at most.
    before: usize,
    /// The writer had it in mind when it looked into the ring: what was there before it, it has seen.
    is_seen: bool,
    frame: Frame,
}

/// What connections are to carry behind what is in their rings.
#[derive(Default)]
struct News(Mutex<Vec<Due>>);

impl News {
    fn all(&self) -> MutexGuard<'_, Vec<Due>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame that is to be carried on a line, unless it is there already.
    fn add(&self, line: u32, frame: Frame) {
        let mut news = self.all();
        if !news.iter().any(|due| (due.line, due.frame) == (line, frame)) {
            news.push(Due { line, before: RING, is_seen: false, frame });
        }
    }

    /// The writer of a line is about to look into its ring.
    fn see(&self, line: u32) {
        self.all().iter_mut().filter(|due| due.line == line).for_each(|due| due.is_seen = true);
    }

    /// Takes out what is due on a line when so many bytes have been written that the writer has found in the ring. What
    /// has come since it [looked](News::see) is not: something may lie in front of it that the writer has not found.
    fn take(&self, line: u32, written: usize) -> Vec<Frame> {
        let (mut news, mut taken) = (self.all(), Vec::new());
        news.retain_mut(|due| {
            let counts = due.line == line && due.is_seen;
            let is_due = counts && due.before <= written;
            match is_due {
                true => taken.push(due.frame),
                false if counts => due.before -= written,
                false => {}
            }
            !is_due
        });
        taken
    }
}

/// What all threads share. It stays.
pub struct Carrier {
    node: Node,
    pub bridge: &'static Bridge,
    /// This job goes on when another one fails.
    outlives: bool,
    news: News,
    /// What waits for room in inboxes.
    overflow: Overflow,
    /// Ranks of this node that have failed since there is a carrier: before that nobody could be told of a port.
    dead: Mutex<BTreeSet<u32>>,
    /// Makes lines and inboxes.
    turn: Mutex<()>,
    /// The job has come to its end: what other jobs say is of no interest any more.
    ends: AtomicBool,
    /// Threads that write.
    writers: AtomicUsize,
}

impl Carrier {
    /// One for this node.
    #[must_use]
    pub fn new(node: Node, bridge: &'static Bridge, outlives: bool) -> Self {
        let (ends, writers) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (news, overflow, dead) = (News::default(), Overflow::default(), Mutex::default());
        Self { node, bridge, outlives, news, overflow, dead, turn: Mutex::new(()), ends, writers }
    }

    /// The line to this place that leads somewhere; makes one if there is none. None if no numbers are left.
    #[must_use]
    pub fn line(&self, place: Place, ranks: u32) -> Option<&'static Line> {
        let _turn = self.turn.lock();
        if let Some(line) = self.bridge.line_to(place.job, place.node).filter(|line| line.is_open()) {
            return Some(line);
        }
        let first = self.bridge.room(ranks)?;
        let zeros = |count: u32| &*(0..count).map(|_| AtomicU32::new(0)).collect::<Vec<_>>().leak();
        let losses = match self.outlives {
            true => Losses { failures: zeros(ranks), users: zeros(self.node.capacity()) },
            false => Losses::default(),
        };
        let line = Line::new((first, ranks), (place.job, place.node), ring()?, losses);
        let line = Box::leak(Box::new(line));
        self.bridge.add(line);
        Some(line)
    }

    fn inbox(&self, rank: u32) -> Option<&'static Ring> {
        self.bridge.inbox(rank).or_else(|| {
            let _turn = self.turn.lock();
            self.bridge.inbox(rank).or_else(|| {
                let made: &'static Ring = Box::leak(Box::new(ring()?));
                self.bridge.open_inbox(rank, made);
                Some(made)
            })
        })
    }

    /// Carries what travels on a line, by a thread of its own and the calling one, until it ends.
    pub fn carry(&'static self, line: &'static Line, Wire { reader, mut writer }: Wire) {
        self.writers.fetch_add(1, Ordering::AcqRel);
        let write = move || {
            if let Err(error) = self.write(line, &mut writer) {
                line.end(error.raw_os_error().unwrap_or(libc::EPIPE));
            }
            writer.close();
            // A server has any number of clients in its life.
            let (memory, size) = line.out.memory();
            // SAFETY: a mapping of ours, whose bytes only this thread has read, which does so no more.
            unsafe { libc::madvise(memory.cast(), size, libc::MADV_DONTNEED) };
            self.writers.fetch_sub(1, Ordering::AcqRel);
        };
        let begun = std::thread::Builder::new().name("port-writer".into()).spawn(write).inspect_err(|_| {
            self.writers.fetch_sub(1, Ordering::AcqRel);
        });
        let code = match begun.and_then(|_| self.read(line, reader)) {
            Ok(code) => code,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                say(format_args!(
                    "what came from node {} of the job {:016x} is not what it wrote: its connection is ended",
                    line.node, line.job
                ));
                libc::EPROTO
            }
            Err(error) => error.raw_os_error().unwrap_or(libc::ECONNRESET),
        };
        self.finish(line, code);
    }

    /// Writes what ranks leave in the line's ring, until the line ends.
    fn write(&self, line: &Line, stream: &mut Writer) -> io::Result<()> {
        loop {
            let heard = line.out.heard();
            // Before the looks: who ends the line says first what it has to say.
            let is_open = line.is_open();
            self.news.see(line.first);
            let front = line.out.front(PIECE);
            let news = self.news.take(line.first, if front.is_empty() { RING } else { front.len() });
            if !front.is_empty() {
                stream.write_all(front)?;
                if line.out.take(front.len()) {
                    // Whoever has found no room.
                    (0..).take_while(|&rank| self.node.arrived(rank)).count();
                }
            } else if news.is_empty() && is_open {
                line.out.wait(heard, None);
            } else if news.is_empty() {
                return Ok(());
            }
            news.iter().try_for_each(|frame| stream.write_all(&frame.bytes()))?;
        }
    }

    /// Tells the other ends of all connections.
    pub fn tell(&self, frame: Frame) {
        self.bridge.lines().filter(|line| line.is_open()).for_each(|line| self.tell_on(line, frame));
    }

    /// Tells the other end of a line, behind what is in its ring.
    fn tell_on(&self, line: &Line, frame: Frame) {
        self.news.add(line.first, frame);
        line.out.ring();
    }

    /// A rank of this node has failed, and the job goes on.
    pub fn tell_of_death(&self, rank: u32) {
        // Before lines are looked through: to one that is added meanwhile `tell_of_dead` tells it.
        self.dead().insert(rank);
        self.tell(death(rank));
    }

    /// Tells the other end of a new connection which ranks have failed. If its job does not go on without them it hears
    /// of each one that it speaks to: it may have come for another one.
    pub fn tell_of_dead(&self, line: &Line, outlives: bool) {
        if outlives {
            self.dead().iter().for_each(|&rank| self.tell_on(line, death(rank)));
        }
    }

    fn dead(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a rank of this node answers nothing more.
    fn is_over(&self, rank: u32) -> bool {
        self.node.is_over(rank) || self.dead().contains(&rank)
    }

    /// Reads what is for ranks of this node, until the connection ends; gives the system's number for the reason, or 0
    /// if the other job is over as jobs are.
    fn read(&'static self, line: &'static Line, stream: Reader) -> io::Result<i32> {
        let mut stream = BufReader::with_capacity(PIECE, stream);
        let mut body = Vec::new();
        loop {
            let mut head = [0; Frame::BYTES];
            stream.read_exact(&mut head)?;
            let frame = Frame::of_bytes(&head);
            if frame.kind == Kind::Over as u32 {
                return Ok(frame.length.cast_signed());
            }
            if frame.kind == Kind::Closed as u32 && is_shared(frame.length) {
                self.node.close_context(frame.length);
                continue;
            }
            if frame.kind == Kind::Dead as u32 && frame.from < line.ranks {
                if !line.survives() {
                    return Ok(libc::EOWNERDEAD);
                }
                // Behind what it has sent before.
                self.await_overflow(line);
                self.node.failed_outside(line, Some(frame.from));
                continue;
            }
            let is_known = frame.kind == Kind::Packet as u32 || frame.kind == Kind::Gone as u32;
            if !is_known || frame.length > FRAME_MAX || frame.from >= line.ranks || frame.to >= self.node.capacity() {
                say(format_args!(
                    "node {} of the job {:016x} sends what makes no sense: its connection is ended",
                    line.node, line.job
                ));
                return Ok(libc::EPROTO);
            }
            body.resize(frame.body(), 0);
            stream.read_exact(&mut body)?;
            let used = if body.is_empty() { 0 } else { frame.length as usize };
            if frame.kind == Kind::Packet as u32 && self.is_over(frame.to) {
                self.refuse(line, frame.from, frame.to);
                continue;
            }
            let here = Frame { from: line.first + frame.from, ..frame };
            self.put(line, here, &body[..used]);
        }
    }

    /// Tells a rank of the other node, by its index there, that a rank of this one answers nothing more.
    fn refuse(&self, line: &Line, from: u32, to: u32) {
        let gone = Frame { length: 0, kind: Kind::Gone as u32, from: to, to: from };
        // A rank may have the ring's lock for long: it was killed, or waits for a CPU.
        if !line.out.push(gone, [&[], &[]], false) {
            self.tell_on(line, gone);
        }
    }

    /// Puts something into the inbox of a rank, which it wakes, or has it wait for room there.
    fn put(&'static self, line: &'static Line, frame: Frame, body: &[u8]) {
        let Some(inbox) = self.inbox(frame.to) else {
            // It is missed by the rank that it is for, and the line with it.
            return line.end(libc::ENOMEM);
        };
        if !self.overflow.is_for(frame.to) && inbox.push(frame, [body, &[]], true) {
            self.node.arrived(frame.to);
            return;
        }
        if self.overflow.add(Waiting { line, frame, body: body.to_vec() }) {
            let thread = std::thread::Builder::new().name("port-inbox".into());
            if thread.spawn(move || self.fill(frame.to, inbox)).is_err() {
                self.fill(frame.to, inbox);
            }
        }
    }

    /// Moves what waits for a rank into its inbox, until nothing does.
    fn fill(&self, rank: u32, inbox: &Ring) {
        loop {
            let is_over = self.is_over(rank);
            let is_done = self.overflow.move_on(rank, |Waiting { line, frame, body }| {
                if is_over && frame.kind == Kind::Packet as u32 {
                    self.refuse(line, frame.from - line.first, rank);
                }
                is_over || inbox.push(*frame, [body, &[]], true)
            });
            self.node.arrived(rank);
            if is_done || self.ends.load(Ordering::Relaxed) {
                return;
            }
            inbox.wait_for_room(PATIENCE);
        }
    }

    /// Waits until all that has come by a line is in inboxes: what follows must not overtake it.
    fn await_overflow(&self, line: &Line) {
        while self.overflow.is_of(line) && line.is_open() && !self.ends.load(Ordering::Relaxed) {
            std::thread::sleep(PATIENCE);
        }
    }

    /// A line is over: tells all ranks.
    fn finish(&self, line: &'static Line, code: i32) {
        self.await_overflow(line);
        let is_failure = code != 0;
        let is_waited_for = is_failure || line.survives();
        let until = Instant::now() + if is_failure { LEAVE_TIME } else { PART_TIME };
        while is_waited_for && line.is_used() && Instant::now() < until && !self.ends.load(Ordering::Relaxed) {
            std::thread::sleep(PATIENCE);
        }
        if line.is_used() && line.survives() && !self.ends.load(Ordering::Relaxed) {
            let what = if is_failure { "has failed with" } else { "has ended at" };
            say(format_args!(
                "another job that this one is connected with, {:016x}, {what} its node {}. This job goes on",
                line.job, line.node
            ));
            self.node.failed_outside(line, None);
        }
        line.end(if code == 0 { ENDED } else { code });
        let over = |to| Frame { length: code.cast_unsigned(), kind: Kind::Over as u32, from: line.first, to };
        let tell = |rank: &u32| {
            self.node.arrived(*rank) && {
                let inbox = self.inbox(*rank);
                // Whose inbox is full of what it does not read will see that the line has ended.
                let _ = inbox.is_some_and(|inbox| inbox.push(over(*rank), [&[], &[]], true));
                self.node.arrived(*rank)
            }
        };
        (0..).take_while(tell).count();
    }

    /// The end of this job: says so on all lines, and waits for a moment until it is written.
    pub fn end(&self, is_well: bool, limit: Duration) {
        self.ends.store(true, Ordering::Relaxed);
        let code = if is_well { 0 } else { libc::ECONNABORTED };
        for line in self.bridge.lines().filter(|line| line.is_open()) {
            // Not by its ring, which may be full, or locked by a rank that was killed.
            let over = Frame { length: code.cast_unsigned(), kind: Kind::Over as u32, from: 0, to: 0 };
            self.tell_on(line, over);
            line.end(ENDED);
        }
        let until = Instant::now() + limit;
        while self.writers.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A ring that stays; none without memory, which comes with its use.
fn ring() -> Option<Ring> {
    let memory = reserve(RING, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_NORESERVE).ok()?;
    // SAFETY: fresh memory that is never unmapped.
    Some(unsafe { Ring::over(memory.cast(), RING) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_carried_once_and_behind_what_was_there() {
        let news = News::default();
        let frame = |from| Frame { length: 0, kind: Kind::Gone as u32, from, to: 0 };
        for from in [3, 4, 3] {
            news.add(100, frame(from));
        }
        news.add(200, frame(5));
        assert!(news.take(100, RING).is_empty(), "what was in the ring is not known");
        for line in [100, 200] {
            news.see(line);
        }
        assert!(news.take(100, RING / 2).is_empty());
        assert_eq!(news.take(100, RING / 2), [frame(3), frame(4)]);
        assert_eq!((news.take(100, RING), news.take(200, RING)), (vec![], vec![frame(5)]));
        // Said once more after it was carried.
        news.add(100, frame(3));
        news.see(100);
        news.add(100, frame(6));
        assert_eq!(news.take(100, RING), [frame(3)]);
    }
}

//! How two nodes come by a connection.
//!
//! Either may connect; the other proves it and is proven by it ([`cohort_proof`]), and then says with one
//! byte whether the connection is taken. Two nodes that connect at the same time would have two: so a node whose own
//! attempt is *established*, which means that the other system has answered, refuses the other's as *crossed* if its
//! own number is the lower one, and otherwise gives its own up.
//!
//! | own attempt established | connected | the other's number is | the other's connection is |
//! |---|---|---|---|
//! | no | no | | taken, an own attempt is given up |
//! | yes | no | lower | taken, the own attempt is given up |
//! | yes | no | higher | crossed |
//! | | yes | | crossed |
//!
//! So at most one is taken: nobody proves an attempt before it is established, so one that is given up before has not
//! been taken by the other. If both are established, that of the lower node stays: nobody refuses it, since the higher
//! node takes it unless it is connected, and then by this very rule with the lower one. Who was told that it crossed
//! waits for the other's; an attempt that fails is made again until the time of `COHORT_NET_TIMEOUT` is over. A
//! firewall that drops what comes from outside leaves one of the two directions, and that is enough. [`complaint`] has
//! what is said where none works.
//!
//! # Strangers
//! A node holds at most [`STRANGERS_MAX`] connections that are not proven, for at most [`PROOF_TIME`], and reads no
//! more than the words of the proof. One more takes the place of the oldest, if that has had [`GUARANTEED`]; until then
//! it waits in the system's queue. A node of the job says its words at once, so a thousand that call one at the same
//! time come one after the other. One that was pushed out all the same tries again. What is proven nobody pushes out.

mod complaint;
mod negotiation;
#[cfg(test)]
mod tests;

use super::{new_socket, set_up};
use crate::pairs::{self, InterfaceAddress, Pair};
use crate::shared::Shared;
use crate::{last_code, random};
use cohort_cipher::{Agreement, Cipher};
use cohort_fabric_host::endpoint::RejectedPackets;
use cohort_fabric_host::{address, packet};
use cohort_proof::{Handshake, Nonce, Purpose, Secret};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind of listener, in proofs.
const SERVICE: u32 = 2;

/// Connections at a time that nobody has proven.
const STRANGERS_MAX: usize = 64;

/// How long a proof may take.
const PROOF_TIME: Duration = Duration::from_secs(5);

/// How long a connection is kept even if others wait.
const GUARANTEED: Duration = Duration::from_millis(20);

/// Pauses between attempts to connect: the first, and the longest.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// The acceptor's last word.
const TAKEN: u8 = 1;
const CROSSED: u8 = 0;

/// Why an attempt was put off whose connection works, and has crossed the other's.
const IS_CROSSED: i32 = libc::EALREADY;

/// A connection between nodes: the rail and the other node.
type Way = (u32, u32);

/// A connection that is not proven yet, or whose verdict is to come.
#[derive(Debug)]
struct Meeting {
    socket: OwnedFd,
    handshake: Handshake,
    since: Instant,
    deadline: Instant,
    /// The other system has answered.
    is_established: bool,
    /// Where it leads, if this node has begun it.
    to: Option<Way>,
    /// This end's part of what the keys are made of; none before the proof, or once the keys are there.
    agreement: Option<Agreement>,
    /// What has come of the other end's part.
    other_part: Vec<u8>,
    /// What it says from here on is encrypted; none before the keys are there, or at all.
    cipher: Option<Box<Cipher>>,
    /// What has come of the acceptor's last word.
    verdict: Vec<u8>,
}

/// Where others connect.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: OwnedFd,
    /// Its address.
    pub place: InterfaceAddress,
}

/// What this node does to reach another.
#[derive(Debug)]
struct Attempt {
    /// When it was wanted first.
    since: Instant,
    pause: Duration,
    /// How many there were; each may take another pair of addresses.
    count: u32,
    /// When to connect; none while a meeting is under way.
    next: Option<Instant>,
    /// The other system has answered that meeting.
    is_established: bool,
    code: i32,
    /// It was said that nothing comes of it.
    is_told: bool,
}

/// All that is on its way to be a connection.
#[derive(Debug)]
pub struct Meetings {
    shared: Arc<Shared>,
    listeners: Vec<OwnedFd>,
    /// The addresses of the listeners.
    own: Vec<InterfaceAddress>,
    /// Those of all nodes.
    addresses: Vec<Box<[SocketAddr]>>,
    secret: Secret,
    meetings: Vec<Meeting>,
    attempts: BTreeMap<Way, Attempt>,
    rejected: RejectedPackets,
    /// No descriptors were left; the listener rests until then.
    rests_until: Option<Instant>,
    /// It was said that a pair of addresses leads nowhere.
    has_complained: bool,
    /// It was said that descriptors are short.
    has_told_shortage: bool,
}

/// How a meeting goes on.
enum Step {
    /// More is to come.
    Waits,
    /// It is over: nothing came of it, by the system's number.
    Over(i32),
    /// It is proven, and this node has to say what becomes of it.
    Asked(Way),
    /// The other node has taken it, or not.
    Told(Way, bool),
}

impl Meetings {
    /// None yet.
    pub fn new(shared: Arc<Shared>, listeners: Vec<Listener>, addresses: Vec<Box<[SocketAddr]>>) -> Self {
        let own = listeners.iter().map(|listener| listener.place).collect();
        let listeners = listeners.into_iter().map(|listener| listener.socket);
        let secret = packet::secret(shared.node.job.number);
        Self {
            shared,
            listeners: listeners.collect(),
            own,
            addresses,
            secret,
            meetings: Vec::new(),
            attempts: BTreeMap::new(),
            rejected: RejectedPackets::default(),
            rests_until: None,
            has_complained: false,
            has_told_shortage: false,
        }
    }

    /// What to wait for: the listeners, then each meeting.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, i16)> {
        let listens = match self.rests_until.or_else(|| self.full_until()) {
            None => libc::POLLIN,
            Some(_) => 0,
        };
        let meetings = self.meetings.iter().map(|meeting| {
            let writes = !meeting.handshake.output().is_empty();
            let events = if writes { libc::POLLOUT } else { libc::POLLIN };
            (meeting.socket.as_fd(), events)
        });
        let listeners = self.listeners.iter();
        let listeners = listeners.map(move |listener| (listener.as_fd(), listens));
        listeners.chain(meetings)
    }

    /// How long to wait at most.
    pub fn time_left(&self) -> Option<Duration> {
        let deadlines = self.meetings.iter().map(|meeting| meeting.deadline);
        let attempts = self.attempts.values().filter_map(|attempt| attempt.next);
        let rests = self.rests_until.into_iter().chain(self.full_until());
        let times = deadlines.chain(attempts).chain(rests);
        let first = times.chain(self.complains_at()).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// Deals with what has come; `ready` is for the descriptors as they were.
    pub fn serve(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let (listeners, meetings) = ready.split_at(self.listeners.len().min(ready.len()));
        let all = std::mem::take(&mut self.meetings);
        for (index, mut meeting) in all.into_iter().enumerate() {
            let is_ready = meetings.get(index).copied().unwrap_or(false);
            let attempt = meeting.to.map(|way| self.attempts.get_mut(&way));
            if matches!(attempt, Some(None)) {
                // The other's connection was taken meanwhile.
                continue;
            }
            let step = match is_ready {
                true => meeting.go_on(self.shared.encrypts),
                false => Step::Waits,
            };
            if let Some(Some(attempt)) = attempt {
                attempt.is_established |= meeting.is_established;
            }
            let step = match step {
                Step::Waits if now >= meeting.deadline => Step::Over(libc::ETIMEDOUT),
                step => step,
            };
            self.take_step(meeting, step);
        }
        if self.rests_until.is_some_and(|until| now >= until) {
            self.rests_until = None;
        }
        for (index, is_ready) in listeners.iter().enumerate() {
            if *is_ready {
                self.accept(index);
            }
        }
        self.complain_in_time(now);
        self.try_again(now);
    }

    fn take_step(&mut self, meeting: Meeting, step: Step) {
        match step {
            Step::Waits => self.meetings.push(meeting),
            Step::Over(code) => match meeting.to {
                Some(way) => self.put_off(way, code),
                None if code == libc::EPROTO || self.is_stranger(&meeting) => {
                    self.rejected.refuse(self.shared.node.job.own_rank(0), format_args!("a connection"));
                }
                None => {}
            },
            Step::Asked(way) => self.decide(meeting, way),
            Step::Told(way, true) => {
                self.attempts.remove(&way);
                let Meeting { socket, cipher, .. } = meeting;
                self.shared.connected(way.0 as usize, way.1, socket, cipher);
            }
            Step::Told(way, false) => self.put_off(way, IS_CROSSED),
        }
    }

    /// Whether who has not proven itself is of another job: it knew what to say first, and left when it heard this
    /// node's proof. A node of this job leaves so when two connections have crossed.
    fn is_stranger(&self, meeting: &Meeting) -> bool {
        meeting.handshake.claim().is_some_and(|claim| {
            let way = (claim.lane, claim.from);
            !self.attempts.contains_key(&way) && !self.shared.is_connected(way)
        })
    }

    /// Takes a connection that another node has begun, or not.
    fn decide(&mut self, mut meeting: Meeting, way: Way) {
        let (rail, node) = way;
        let own = self.shared.node.job.node;
        let is_known =
            (rail as usize) < self.shared.rails.len() && (node as usize) < self.addresses.len() && node != own;
        // Meetings are taken one by one out of their list meanwhile, attempts stay.
        let attempt = self.attempts.get(&way);
        let is_connecting = attempt.is_some_and(|it| it.next.is_none() && it.is_established);
        let is_taken = is_known
            && self.shared.node.job.node_death(node).is_none()
            && !self.shared.is_connected(way)
            && !(is_connecting && own < node);
        let verdict = if is_taken { TAKEN } else { CROSSED };
        let is_said = meeting.say(verdict);
        if is_taken && is_said {
            self.attempts.remove(&way);
            self.meetings.retain(|meeting| meeting.to != Some(way));
            let Meeting { socket, cipher, .. } = meeting;
            self.shared.connected(rail as usize, node, socket, cipher);
        }
    }

    /// Takes in those who connect at a listener.
    fn accept(&mut self, listener: usize) {
        // A bound for one turn; the rest waits in the system's queue.
        for _ in 0..STRANGERS_MAX {
            if !self.make_room() {
                return;
            }
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let none = std::ptr::null_mut();
            // SAFETY: the address is not asked for.
            let socket = unsafe {
                let listener = self.listeners[listener].as_raw_fd();
                libc::accept4(listener, none, std::ptr::null_mut(), flags)
            };
            if socket < 0 {
                let code = last_code();
                self.tell_shortage(code);
                if matches!(code, libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) {
                    self.rests_until = Some(Instant::now() + RETRY_MAX);
                }
                return;
            }
            // SAFETY: a new descriptor.
            let socket = unsafe { OwnedFd::from_raw_fd(socket) };
            let Ok(nonce) = nonce() else { return };
            let own = self.shared.node.job.node;
            let handshake = Handshake::accept(self.secret.clone(), SERVICE, own, nonce);
            let now = Instant::now();
            self.meetings.push(Meeting {
                socket,
                handshake,
                since: now,
                deadline: now + PROOF_TIME,
                is_established: true,
                to: None,
                agreement: None,
                other_part: Vec::new(),
                cipher: None,
                verdict: Vec::new(),
            });
        }
    }

    /// Whether one more stranger may come; the oldest goes for that if it has had its time.
    fn make_room(&mut self) -> bool {
        match self.oldest_of_full() {
            None => true,
            Some(oldest) if Instant::now() >= self.meetings[oldest].since + GUARANTEED => {
                self.meetings.remove(oldest);
                true
            }
            Some(_) => false,
        }
    }

    /// The oldest stranger, if there are as many as there may be.
    fn oldest_of_full(&self) -> Option<usize> {
        let is_stranger = |meeting: &Meeting| meeting.to.is_none();
        let count = self.meetings.iter().filter(|one| is_stranger(one)).count();
        let oldest = self.meetings.iter().position(is_stranger);
        oldest.filter(|_| count >= STRANGERS_MAX)
    }

    /// Until when nobody else may come.
    fn full_until(&self) -> Option<Instant> {
        let until = self.meetings[self.oldest_of_full()?].since + GUARANTEED;
        (Instant::now() < until).then_some(until)
    }

    /// Begins to connect with the nodes that packets wait for.
    pub fn connect_wanted(&mut self) {
        let shared = Arc::clone(&self.shared);
        for (rail, one) in shared.rails.iter().enumerate() {
            let caller = shared.root();
            let mut held = one.hold(&shared.node, &caller);
            let mut wanted = held.take_wanted();
            // The other may have connected since.
            wanted.retain(|&node| !held.is_connected(node));
            drop(held);
            for node in wanted {
                let now = Instant::now();
                let attempt = || Attempt {
                    since: now,
                    pause: RETRY_MIN,
                    count: 0,
                    next: Some(now),
                    is_established: false,
                    code: libc::ETIMEDOUT,
                    is_told: false,
                };
                self.attempts.entry((rail as u32, node)).or_insert_with(attempt);
            }
        }
        self.try_again(Instant::now());
    }

    /// Makes the attempts whose time has come.
    fn try_again(&mut self, now: Instant) {
        let due = |attempt: &Attempt| attempt.next.is_some_and(|next| next <= now);
        let ways = self.attempts.iter().filter(|(_, attempt)| due(attempt));
        let ways: Vec<Way> = ways.map(|(&way, _)| way).collect();
        for way in ways {
            match self.connect(way) {
                Ok(meeting) => {
                    if let Some(attempt) = self.attempts.get_mut(&way) {
                        (attempt.next, attempt.is_established) = (None, false);
                    }
                    self.meetings.push(meeting);
                }
                Err(code) => self.put_off(way, code),
            }
        }
    }

    /// An attempt has failed: makes it again later, or gives the node up.
    fn put_off(&mut self, way: Way, code: i32) {
        self.tell_shortage(code);
        let Some(attempt) = self.attempts.get_mut(&way) else {
            return;
        };
        let now = Instant::now();
        if code != IS_CROSSED {
            attempt.code = code;
        }
        if now - attempt.since > self.shared.node.job.timeout {
            let code = attempt.code;
            self.give_up(way);
            self.attempts.remove(&way);
            self.shared.node.lose(way.1, code);
            self.shared.interrupt(self.shared.processes.root());
            return;
        }
        attempt.next = Some(now + attempt.pause);
        attempt.pause = (attempt.pause * 2).min(RETRY_MAX);
        if code != IS_CROSSED {
            let count = attempt.count;
            attempt.count += 1;
            self.complain(way, count, code);
        }
    }

    /// The addresses that an attempt joins.
    fn pair(&self, (rail, node): Way, count: u32) -> Option<Pair> {
        let others = self.addresses.get(node as usize)?;
        let is_lower = self.shared.node.job.node < node;
        pairs::pair(&self.own, others, is_lower, rail, count)
    }

    fn connect(&self, way: Way) -> Result<Meeting, i32> {
        let (rail, node) = way;
        let count = self.attempts.get(&way).map_or(0, |attempt| attempt.count);
        let (from, to) = self.pair(way, count).ok_or(libc::EADDRNOTAVAIL)?;
        let timeout = self.shared.node.job.timeout;
        let family = match to {
            SocketAddr::V4(_) => libc::AF_INET,
            SocketAddr::V6(_) => libc::AF_INET6,
        };
        let socket = new_socket(family, &self.shared.congestion).ok_or_else(last_code)?;
        set_up(socket.as_fd(), timeout);
        if let Some(from) = from {
            let from = address::bytes(SocketAddr::new(from, 0));
            // SAFETY: an address as the system lays it out.
            let result = unsafe {
                let (start, length) = (from.as_ptr().cast(), from.len() as u32);
                libc::bind(socket.as_raw_fd(), start, length)
            };
            if result != 0 {
                return Err(last_code());
            }
        }
        let address = address::bytes(to);
        // SAFETY: an address as the system lays it out.
        let result = unsafe {
            let (start, length) = (address.as_ptr().cast(), address.len() as u32);
            libc::connect(socket.as_raw_fd(), start, length)
        };
        if result != 0 && last_code() != libc::EINPROGRESS {
            return Err(last_code());
        }
        // There must be time for the other ways.
        let time = match from {
            Some(_) => PROOF_TIME.min(timeout / 4),
            None => PROOF_TIME,
        };
        let purpose = Purpose { service: SERVICE, from: self.shared.node.job.node, to: node, lane: rail };
        let now = Instant::now();
        Ok(Meeting {
            socket,
            handshake: Handshake::connect(self.secret.clone(), purpose, nonce()?),
            since: now,
            deadline: now + time,
            is_established: false,
            to: Some(way),
            agreement: None,
            other_part: Vec::new(),
            cipher: None,
            verdict: Vec::new(),
        })
    }
}

/// A number that nobody has seen before.
fn nonce() -> Result<Nonce, i32> {
    let mut nonce = Nonce::default();
    random(&mut nonce)?;
    Ok(nonce)
}

impl Shared {
    /// Whether a connection is there.
    fn is_connected(&self, (rail, node): Way) -> bool {
        let caller = self.root();
        let rail = self.rails.get(rail as usize);
        rail.is_some_and(|rail| {
            let held = rail.hold(&self.node, &caller);
            let is_connected = held.is_connected(node);
            drop(held);
            rail.finish(&self.node, &caller);
            is_connected
        })
    }
}

//! The thread of the service.

use super::line::{FLAGS, Line};
use super::message::{Kind, Message};
use super::pulse::{Patience, Pulse, Verdict};
use super::roster::{Roster, WINDOW};
use super::{GUARANTEED, STRANGER_TIME, STRANGERS_MAX, Shared};
use crate::job::Job;
use crate::watch::Waker;
use cohort_fabric::boot::DeadNode;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::accept_with;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Connections that are accepted before others get their turn.
const ACCEPTS: usize = 64;

/// A wait that lasts so much longer than it should says that this process was stopped.
const PAUSE: Duration = Duration::from_millis(500);

/// How long the last words of this node may need to arrive, and how often to look.
const GOODBYE_TIME: Duration = Duration::from_secs(4);
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// How long to wait for a descriptor.
const SHORTAGE: Duration = Duration::from_millis(10);

/// Descriptors that are kept for the nodes that ask this one: both of the ring's, and one that only passes by. When the
/// process has no other left, its neighbours shall not take it for dead.
const SPARES: usize = 3;

/// A connection that another node has made.
#[derive(Debug)]
struct Guest {
    line: Line,
    /// Its node, once it has shown the job's cookie.
    node: Option<u32>,
    since: Instant,
}

/// A node that is looked at.
#[derive(Debug)]
struct Watched {
    pulse: Pulse,
    line: Option<Line>,
    /// The number of the question that waits for an answer.
    asked: Option<u64>,
    /// Whether its connection is kept: it is one of the ring.
    is_kept: bool,
    /// Whether it is the next of the ring: its death is this node's to report.
    is_next: bool,
    /// Its system has taken a connection.
    is_reached: bool,
    /// It was said that its system takes none.
    is_told: bool,
}

/// What the thread has.
#[derive(Debug)]
pub struct Worker {
    job: Arc<Job>,
    waker: Arc<Waker>,
    shared: Arc<Shared>,
    listener: OwnedFd,
    addresses: Vec<SocketAddr>,
    guests: Vec<Guest>,
    /// Each stands for a descriptor, and goes when one is needed ([`SPARES`]).
    spares: Vec<OwnedFd>,
    watched: BTreeMap<u32, Watched>,
    /// Nodes that could not be reached when their turn was over.
    missed: BTreeMap<u32, Watched>,
    roster: Roster,
    /// Nodes that never answered are missed too.
    misses_all: bool,
    patience: Patience,
    /// For nodes that are not of the ring.
    shared_patience: Patience,
    /// When others take their turn.
    rotate: Instant,
    /// Questions so far.
    questions: u64,
}

impl Worker {
    /// For the services at these addresses, in the order of the nodes.
    pub fn new(
        job: Arc<Job>,
        waker: Arc<Waker>,
        shared: Arc<Shared>,
        listener: OwnedFd,
        addresses: Vec<SocketAddr>,
        misses_all: bool,
    ) -> Self {
        let nodes = addresses.len() as u32;
        let patience = Patience::of(job.timeout);
        let mut worker = Self {
            roster: Roster::new(job.node, nodes),
            shared_patience: patience.shared_by(nodes),
            patience,
            misses_all,
            rotate: Instant::now(),
            job,
            waker,
            shared,
            listener,
            addresses,
            guests: Vec::new(),
            spares: Vec::new(),
            watched: BTreeMap::new(),
            missed: BTreeMap::new(),
            questions: 0,
        };
        worker.restock();
        worker
    }

    /// Takes descriptors in the place of spares that were needed, as far as there are any.
    fn restock(&mut self) {
        while self.spares.len() < SPARES {
            let Ok(spare) = fcntl_dupfd_cloexec(&self.shared.bell, 0) else {
                return;
            };
            self.spares.push(spare);
        }
    }

    /// Works until the service ends.
    pub fn run(mut self) {
        let mut planned = Instant::now();
        // Acquire pairs with the Release of the service's end.
        while !self.shared.is_stopping.load(Ordering::Acquire) {
            let now = Instant::now();
            let late = now.saturating_duration_since(planned);
            if late > PAUSE {
                let all = self.watched.values_mut().chain(self.missed.values_mut());
                all.for_each(|watched| watched.pulse.forgive(late));
            }
            self.choose(now);
            self.look(now);
            self.judge(now);
            self.guests.retain(|guest| guest.node.is_some() || now < guest.since + STRANGER_TIME);
            self.restock();
            planned = self.next_time(now);
            let ready = self.wait(planned.saturating_duration_since(now));
            self.serve(&ready);
        }
        self.leave();
    }

    /// Tells who asks this node, and whom it asks, that its silence will mean nothing.
    fn leave(&self) {
        for (&node, watched) in &self.watched {
            if let Some(line) = &watched.line {
                let _ = line.send(&self.message(Kind::Leaving, node, 0));
            }
        }
        for guest in &self.guests {
            if let Some(node) = guest.node {
                // Who is gone need not know.
                let _ = guest.line.send(&self.message(Kind::Leaving, node, 0));
            }
        }
        self.wait_for_arrival();
    }

    /// Waits until the others have the last words, for a time. A network may lose them, and then a closed connection
    /// does not say them again.
    fn wait_for_arrival(&self) {
        let until = Instant::now() + GOODBYE_TIME;
        let lines = || {
            let watched = self.watched.values().filter_map(|it| it.line.as_ref());
            watched.chain(self.guests.iter().filter(|it| it.node.is_some()).map(|it| &it.line))
        };
        while !lines().all(Line::has_arrived) && Instant::now() < until {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn message(&self, kind: Kind, to: u32, number: u64) -> [u8; super::message::LENGTH] {
        let from = self.job.node;
        let message = Message { kind, from, to, number };
        message.bytes(self.job.cookie)
    }

    /// How patient this node is with one of those that it looks at.
    fn patience(&self, watched: &Watched) -> Patience {
        match (watched.is_next, watched.is_kept) {
            (true, _) => self.patience,
            (false, true) => self.patience.later(),
            (false, false) => self.shared_patience.later(),
        }
    }

    /// Says at whom to look.
    fn choose(&mut self, now: Instant) {
        for (place, node) in self.roster.ring().into_iter().enumerate() {
            let (missed, patience) = (&mut self.missed, self.patience);
            let watched = self.watched.entry(node).or_insert_with(|| take_up(missed, node, now, patience));
            (watched.is_kept, watched.is_next) = (true, place == 0);
        }
        if now < self.rotate {
            return;
        }
        self.rotate = now + self.shared_patience.period;
        let job = &self.job;
        let talks_with = |node| job.talks_with(node);
        let watched = &self.watched;
        let others = watched.values().filter(|watched| !watched.is_kept).count();
        let is_watched = |node| watched.contains_key(&node);
        // One round more than there is room tells whether others wait.
        let waiting = self.roster.next(WINDOW, talks_with, is_watched);
        let room = WINDOW - others;
        if waiting.len() > room {
            let is_over = |_: &u32, watched: &mut Watched| !watched.is_kept && watched.asked.is_none();
            let over = self.watched.extract_if(.., is_over);
            self.missed.extend(over.filter(|(_, watched)| watched.pulse.is_unreachable()));
        }
        let others = self.watched.values();
        let room = WINDOW - others.filter(|watched| !watched.is_kept).count();
        for node in waiting.into_iter().take(room) {
            let watched = take_up(&mut self.missed, node, now, self.shared_patience);
            self.watched.insert(node, watched);
        }
    }

    /// Asks those whose time has come.
    fn look(&mut self, now: Instant) {
        let mut due: Vec<u32> = Vec::new();
        for (&node, watched) in &mut self.watched {
            if watched.pulse.next() <= now {
                due.push(node);
            }
        }
        for node in due {
            let Some(mut watched) = self.watched.remove(&node) else {
                continue;
            };
            watched.pulse.look(now, self.patience(&watched));
            if watched.asked.take().is_some() {
                // A new connection may get through where an old one waits for its next try.
                watched.line = None;
                watched.pulse.fail(now, Errno::TIMEDOUT);
            }
            self.questions += 1;
            if let Err(error) = self.ask(&mut watched, node) {
                (watched.line, watched.asked) = (None, None);
                watched.pulse.fail(now, error);
            }
            self.watched.insert(node, watched);
        }
    }

    /// Asks a node, once it is connected.
    fn ask(&self, watched: &mut Watched, node: u32) -> Result<(), Errno> {
        let line = match watched.line.take() {
            Some(line) => line,
            None => Line::connect(self.addresses[node as usize])?,
        };
        watched.asked = Some(self.questions);
        let line = watched.line.insert(line);
        if line.is_connecting()? {
            return Ok(());
        }
        watched.is_reached = true;
        line.send(&self.message(Kind::Ask, node, self.questions))
    }

    /// Reports nodes that are dead.
    fn judge(&mut self, now: Instant) {
        let verdict = |(&node, watched): (&u32, &Watched)| {
            let is_missed = watched.pulse.is_met() || self.misses_all && watched.is_reached;
            let verdict = watched.pulse.verdict(now, self.patience(watched))?;
            let verdict = is_missed.then_some(verdict)?;
            Some((node, verdict))
        };
        let dead: Vec<(u32, Verdict)> = self.watched.iter().filter_map(verdict).collect();
        self.tell_unreached(now);
        for (node, Verdict { code, silent }) in dead {
            self.forget(node);
            self.job.mark_node_dead(node, code);
            self.waker.interrupt();
            let silent = silent.as_millis() as u64;
            self.shared.report(DeadNode { node, code, silent });
        }
    }

    /// Says of which nodes nobody would notice the silence here. Messages may reach them all the same, and their own
    /// questions say that they live.
    fn tell_unreached(&mut self, now: Instant) {
        if !self.misses_all {
            return;
        }
        let own = self.job.node;
        for (node, watched) in &mut self.watched {
            let is_met = watched.is_reached || watched.pulse.is_met();
            let is_silent = watched.pulse.verdict(now, self.patience).is_some();
            if is_silent && !is_met && !std::mem::replace(&mut watched.is_told, true) {
                let address = self.addresses[*node as usize];
                cohort_base::complain!(
                    "cohort: node {own} cannot ask node {node} at {address} whether it lives, perhaps because a \
                     firewall between them lets no connection through (COHORT_NET_PORTS): node {own} \
                     will not notice if it stops"
                );
            }
        }
    }

    fn forget(&mut self, node: u32) {
        self.watched.remove(&node);
        self.missed.remove(&node);
        self.roster.remove(node);
    }

    /// When there is something to do though nothing comes.
    fn next_time(&self, now: Instant) -> Instant {
        let watched = self.watched.values().flat_map(|watched| {
            let pulse = &watched.pulse;
            [pulse.next(), pulse.deadline(self.patience(watched))]
        });
        let strangers = self.guests.iter().filter(|guest| guest.node.is_none());
        let ends = strangers.map(|guest| guest.since + STRANGER_TIME);
        let times = watched.chain(ends).chain([self.rotate]);
        let times = times.chain(self.full_until());
        // What is due has been done.
        let times = times.filter(|&time| time > now);
        times.min().unwrap_or(now + self.patience.period)
    }

    /// Waits; says which of the bell, the listener, the guests and the lines of watched nodes have something.
    fn wait(&self, time: Duration) -> Vec<bool> {
        let lines = self.watched.values().filter_map(|watched| watched.line.as_ref());
        let listens = match self.full_until() {
            None => PollFlags::IN,
            Some(_) => PollFlags::empty(),
        };
        let mut entries = vec![PollFd::new(&self.shared.bell, PollFlags::IN), PollFd::new(&self.listener, listens)];
        entries.extend(self.guests.iter().map(|guest| guest.line.entry()));
        entries.extend(lines.map(Line::entry));
        // A millisecond more, so that the time has come when the wait is over.
        let time = Timespec::try_from(time + Duration::from_millis(1)).ok();
        // What ends the wait early is seen next time.
        let _ = poll(&mut entries, time.as_ref());
        entries.iter().map(|entry| !entry.revents().is_empty()).collect()
    }

    /// Deals with what has come.
    fn serve(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let (rest, _bell) = (&ready[1..], ready[0]);
        let (guests, lines) = rest[1..].split_at(self.guests.len());
        let mut lines = lines.iter();
        let nodes: Vec<u32> = self
            .watched
            .iter()
            .filter(|(_, watched)| watched.line.is_some())
            .filter_map(|(&node, _)| lines.next().copied().unwrap_or(false).then_some(node))
            .collect();
        for node in nodes {
            self.hear(node, now);
        }
        self.hear_guests(guests, now);
        if rest[0] {
            self.accept(now);
        }
    }

    /// Answers guests. Who asks lives, also if this node cannot ask it: a firewall may let through one direction only.
    fn hear_guests(&mut self, ready: &[bool], now: Instant) {
        let mut kept: Vec<Guest> = Vec::with_capacity(self.guests.len());
        for (mut guest, &ready) in std::mem::take(&mut self.guests).into_iter().zip(ready) {
            let was_known = guest.node.is_some();
            let answered = match ready {
                true => self.answer(&mut guest),
                false => Ok(true),
            };
            if let (Some(node), true) = (guest.node, ready) {
                match answered {
                    Ok(true) => {
                        self.missed.remove(&node);
                        if let Some(watched) = self.watched.get_mut(&node) {
                            watched.pulse.answer(now);
                        }
                    }
                    Ok(false) => self.forget(node),
                    Err(_) => {}
                }
                if !was_known {
                    // Whatever it had before is lost.
                    kept.retain(|other| other.node != Some(node));
                }
            }
            if answered == Ok(true) {
                kept.push(guest);
            }
        }
        self.guests = kept;
    }

    /// Takes in what a watched node says.
    fn hear(&mut self, node: u32, now: Instant) {
        let Some(mut watched) = self.watched.remove(&node) else {
            return;
        };
        match self.listen(&mut watched, node, now) {
            Ok(true) => {
                self.watched.insert(node, watched);
            }
            Ok(false) => self.roster.remove(node),
            Err(error) => {
                (watched.line, watched.asked) = (None, None);
                watched.pulse.fail(now, error);
                if !watched.is_kept && watched.pulse.refusals() > 0 {
                    // It has ended, with or without taking leave: the ends of its streams say more.
                    self.roster.remove(node);
                } else {
                    self.watched.insert(node, watched);
                }
            }
        }
    }

    /// Whether a watched node, which has said something, is to be looked at further.
    fn listen(&self, watched: &mut Watched, node: u32, now: Instant) -> Result<bool, Errno> {
        let Some(line) = &mut watched.line else {
            return Ok(true);
        };
        let was_connecting = line.entry_is_for_connecting();
        if line.is_connecting()? {
            return Ok(true);
        }
        watched.is_reached = true;
        if was_connecting && let Some(number) = watched.asked {
            line.send(&self.message(Kind::Ask, node, number))?;
        }
        while let Some(bytes) = line.receive()? {
            let message = Message::read(&bytes, self.job.cookie).ok_or(Errno::PROTO)?;
            if (message.from, message.to) != (node, self.job.node) {
                return Err(Errno::PROTO);
            }
            match message.kind {
                Kind::Leaving => return Ok(false),
                Kind::Answer if watched.asked == Some(message.number) => {
                    watched.asked = None;
                    watched.pulse.answer(now);
                }
                Kind::Answer | Kind::Ask => return Err(Errno::PROTO),
            }
        }
        if !watched.is_kept && watched.asked.is_none() {
            watched.line = None;
        }
        Ok(true)
    }

    /// Answers a guest; false if its node takes leave.
    fn answer(&self, guest: &mut Guest) -> Result<bool, Errno> {
        while let Some(bytes) = guest.line.receive()? {
            let message = Message::read(&bytes, self.job.cookie).ok_or(Errno::PROTO)?;
            let is_ours = message.to == self.job.node
                && matches!(message.kind, Kind::Ask | Kind::Leaving)
                && (message.from as usize) < self.addresses.len();
            if !is_ours {
                return Err(Errno::PROTO);
            }
            guest.node = Some(message.from);
            if message.kind == Kind::Leaving {
                return Ok(false);
            }
            let answer = self.message(Kind::Answer, message.from, message.number);
            guest.line.send(&answer)?;
        }
        Ok(true)
    }

    /// The oldest stranger, if there are as many as there may be.
    fn oldest_of_full(&self) -> Option<usize> {
        let is_stranger = |guest: &Guest| guest.node.is_none();
        let count = self.guests.iter().filter(|guest| is_stranger(guest));
        let is_full = count.count() >= STRANGERS_MAX;
        let oldest = self.guests.iter().position(is_stranger);
        oldest.filter(|_| is_full)
    }

    /// Until when nobody else may come: strangers have their time, and then the oldest goes.
    fn full_until(&self) -> Option<Instant> {
        let until = self.guests[self.oldest_of_full()?].since + GUARANTEED;
        (Instant::now() < until).then_some(until)
    }

    /// Takes in new connections; the oldest strangers make room.
    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS {
            if self.full_until().is_some() {
                return;
            }
            let socket = match accept_with(&self.listener, FLAGS) {
                Ok(socket) => socket,
                Err(Errno::MFILE | Errno::NFILE) => {
                    // A spare or the oldest stranger's descriptor is for the next. Without any, there may be one soon.
                    let oldest = self.guests.iter().position(|guest| guest.node.is_none());
                    match (self.spares.pop(), oldest) {
                        (Some(spare), _) => drop(spare),
                        (None, Some(oldest)) => drop(self.guests.remove(oldest)),
                        (None, None) => {
                            std::thread::sleep(SHORTAGE);
                            return;
                        }
                    }
                    continue;
                }
                Err(_) => return,
            };
            if let Some(oldest) = self.oldest_of_full() {
                self.guests.remove(oldest);
            }
            self.guests.push(Guest { line: Line::accepted(socket), node: None, since: now });
        }
    }
}

/// A node that is looked at from now on, with the silence that it has had.
fn take_up(missed: &mut BTreeMap<u32, Watched>, node: u32, now: Instant, patience: Patience) -> Watched {
    let Some(mut watched) = missed.remove(&node) else {
        return Watched::begin(now);
    };
    watched.pulse.resume(now, patience);
    watched
}

impl Watched {
    fn begin(now: Instant) -> Self {
        Self {
            pulse: Pulse::begin(now),
            line: None,
            asked: None,
            is_kept: false,
            is_next: false,
            is_reached: false,
            is_told: false,
        }
    }
}

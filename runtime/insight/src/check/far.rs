//! Messages between ranks of this node and those of other nodes.
//!
//! Nothing is added to a message. Each node notes what its ranks have sent to others and what they have received from
//! them, and the launcher of the first node compares that when all have ended. As messages do not overtake each other,
//! the receives that got messages of one rank with one tag, in the order in which they began, got them in the order in
//! which they were sent.

use super::findings::{Findings, Site};
use super::types;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::Status;
use cohort_abi::neutral::{ANY_SOURCE, ANY_TAG};
use cohort_base::LocalRank;
use cohort_base::check::{ANY_BYTES, ENDED, FIELD, Kinds, Mistake, RECORD, SHAPE, STREAM, UNSURE};
use cohort_engine::datatype::{Basic, OwnedBuffer};
use cohort_object::Comm;
use core::fmt::{self, Write};

/// The messages of one rank to another with one tag, as both have them. Ranks of the job have its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    context: u32,
    sender: u32,
    receiver: u32,
    /// Their ranks in the communicator.
    source: u32,
    to: u32,
    tag: i32,
    is_partitioned: bool,
}

/// The receives of a rank in a communicator.
pub type LaneKey = (u32, LocalRank);

/// The way of a message that an operation sends or receives each time.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// It is sent to another node.
    To(Key),
    /// It may come from one: which source and tag are asked for.
    From(LaneKey, i32, i32),
}

/// A message that has begun.
#[derive(Clone, Copy, Debug)]
pub enum Begun {
    /// One that is sent.
    Sent(Key),
    /// One that may be received.
    Waits(LaneKey, u64),
}

/// Messages that are alike, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    shape: u32,
    bytes: u64,
    hash: u64,
    times: u64,
}

/// What calls at one place send or receive, but for its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    site: Site,
    /// The digest of one element of the type; none if no type is to be compared.
    of: Option<(u64, u64)>,
}

/// What is told of a shape.
struct Told {
    number: u32,
    /// Bytes of an element.
    each: u64,
    is_bytes: bool,
    text: String,
}

/// A receive that is not complete, or waits for one that began before.
struct Waiting {
    site: Site,
    source: i32,
    tag: i32,
    buffer: Option<OwnedBuffer>,
    got: Option<(Key, Run)>,
}

/// What is known of the receives of a rank in a communicator.
struct Lane {
    own: u32,
    to: u32,
    /// The numbers of those who may send, by rank; none for those of this node, and of other jobs.
    members: Vec<Option<u32>>,
    waiting: BTreeMap<u64, Waiting>,
    /// Some of these are complete.
    is_blocked: bool,
    /// Something was received of which nobody knows what.
    is_unsure: bool,
}

/// Most runs and shapes that are kept.
const MOST: usize = 200_000;

/// All that is known.
pub struct Far {
    lanes: BTreeMap<LaneKey, Lane>,
    shapes: BTreeMap<Shape, Told>,
    sent: BTreeMap<Key, Vec<Run>>,
    received: BTreeMap<Key, Vec<Run>>,
    unsure: BTreeSet<Key>,
    ended: BTreeSet<u32>,
    runs: usize,
    last: u64,
    is_given_up: bool,
}

impl Far {
    /// Nothing.
    pub const fn new() -> Self {
        Self {
            lanes: BTreeMap::new(),
            shapes: BTreeMap::new(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            unsure: BTreeSet::new(),
            ended: BTreeSet::new(),
            runs: 0,
            last: 0,
            is_given_up: false,
        }
    }

    /// A new receive of a rank, which is in no lane.
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Not all calls were seen.
    pub fn give_up(&mut self) {
        *self = Self { is_given_up: true, ..Self::new() };
    }

    /// The way of what is sent, if it leaves the node.
    pub fn way_to(comm: &Comm, to: i32, tag: i32, is_partitioned: bool) -> Option<Way> {
        let node = comm.rank().node();
        let peer = comm.peer(to).filter(|&peer| node.local(peer).is_none() && !node.is_foreign(peer))?;
        Some(Way::To(Key {
            context: comm.context(),
            sender: node.world_rank(comm.rank().peer()),
            receiver: node.world_rank(peer),
            source: comm.me(),
            to: to as u32,
            tag,
            is_partitioned,
        }))
    }

    /// The way of what is received, if it may come from elsewhere.
    pub fn way_from(&mut self, comm: &Comm, source: i32, tag: i32) -> Option<Way> {
        let node = comm.rank().node();
        if node.boot().nodes <= 1 || self.is_given_up {
            return None;
        }
        let key = (comm.context(), comm.rank().id());
        let lane = self.lanes.entry(key).or_insert_with(|| Lane {
            own: node.world_rank(comm.rank().peer()),
            to: comm.me(),
            members: {
                let others = comm.peers().members().iter();
                let is_far = |&peer: &_| node.local(peer).is_none() && !node.is_foreign(peer);
                others.map(|&peer| is_far(&peer).then(|| node.world_rank(peer))).collect()
            },
            waiting: BTreeMap::new(),
            is_blocked: false,
            is_unsure: false,
        });
        let is_far = match source {
            ANY_SOURCE => lane.members.iter().any(Option::is_some),
            _ => lane.member(source).is_some(),
        };
        is_far.then_some(Way::From(key, source, tag))
    }

    /// A message begins.
    pub fn begin(
        &mut self,
        way: Way,
        site: Site,
        buffer: Option<&OwnedBuffer>,
        findings: &mut Findings,
    ) -> Option<Begun> {
        if self.is_given_up {
            return None;
        }
        match way {
            Way::To(key) => {
                let run = self.run(site, buffer, buffer.map_or(0, OwnedBuffer::bytes));
                self.add(key, run, true, findings);
                Some(Begun::Sent(key))
            }
            Way::From(key, source, tag) => {
                let number = self.next();
                let waiting = Waiting { site, source, tag, buffer: buffer.cloned(), got: None };
                self.lanes.get_mut(&key)?.waiting.insert(number, waiting);
                Some(Begun::Waits(key, number))
            }
        }
    }

    /// A partitioned message is made.
    pub fn partitioned(&mut self, way: Way, site: Site, buffer: &OwnedBuffer, findings: &mut Findings) {
        let (key, is_send) = match way {
            Way::To(key) => (Some(key), true),
            Way::From(lane, source, tag) => {
                let key = self.lanes.get(&lane).and_then(|it| it.key(lane.0, source, tag));
                (key.map(|key| Key { is_partitioned: true, ..key }), false)
            }
        };
        if let Some(key) = key {
            let run = self.run(site, Some(buffer), buffer.bytes());
            self.add(key, run, is_send, findings);
        }
    }

    /// A message that was taken out of the queue is received by this call.
    pub fn takes(&mut self, begun: Begun, by: Site, buffer: Option<OwnedBuffer>) {
        if let Begun::Waits(lane, number) = begun
            && let Some(waiting) = self.lanes.get_mut(&lane).and_then(|lane| lane.waiting.get_mut(&number))
        {
            (waiting.site, waiting.buffer) = (by, buffer);
        }
    }

    /// An operation is complete, with the status that its receive has, if that is known.
    pub fn complete(&mut self, begun: Begun, status: Option<Status>, findings: &mut Findings) {
        match (begun, status) {
            (Begun::Sent(key), Some(status)) if status.cancelled => drop(self.unsure.insert(key)),
            (Begun::Sent(_), _) => {}
            (Begun::Waits(..), None) => self.forget(begun),
            (Begun::Waits(lane, number), Some(status)) => self.received(lane, number, status, findings),
        }
    }

    fn received(&mut self, lane: LaneKey, number: u64, status: Status, findings: &mut Findings) {
        let Some(known) = self.lanes.get_mut(&lane) else {
            return;
        };
        let key = known.key(lane.0, status.source, status.tag).filter(|_| !status.cancelled);
        let (Some(key), Some(waiting)) = (key, known.waiting.get(&number)) else {
            known.waiting.remove(&number);
            return self.settle(lane, findings);
        };
        let (site, buffer) = (waiting.site, waiting.buffer.clone());
        let run = self.run(site, buffer.as_ref(), status.count_bytes.max(0) as u64);
        let Some(known) = self.lanes.get_mut(&lane) else {
            return;
        };
        if !known.is_blocked && known.is_next(number, key) {
            known.waiting.remove(&number);
            return self.add(key, run, false, findings);
        }
        if let Some(waiting) = known.waiting.get_mut(&number) {
            waiting.got = Some((key, run));
        }
        known.is_blocked = true;
        self.settle(lane, findings);
    }

    /// Notes what receives have got that no earlier one can still take.
    fn settle(&mut self, lane: LaneKey, findings: &mut Findings) {
        let Some(known) = self.lanes.get_mut(&lane).filter(|lane| lane.is_blocked) else {
            return;
        };
        let got = known.waiting.iter().filter_map(|(&number, waiting)| Some((number, waiting.got?)));
        let next: Vec<_> = got.filter(|&(number, (key, _))| known.is_next(number, key)).collect();
        known.waiting.retain(|&number, _| next.binary_search_by_key(&number, |it| it.0).is_err());
        known.is_blocked = known.waiting.values().any(|waiting| waiting.got.is_some());
        for (_, (key, run)) in next {
            self.add(key, run, false, findings);
        }
    }

    /// A call has failed, or nobody will know what comes of an operation.
    pub fn forget(&mut self, begun: Begun) {
        match begun {
            Begun::Sent(key) => drop(self.unsure.insert(key)),
            Begun::Waits(lane, number) => {
                if let Some(lane) = self.lanes.get_mut(&lane) {
                    lane.waiting.remove(&number);
                    lane.is_unsure = true;
                }
            }
        }
    }

    /// A rank is about to end MPI. Messages that it has taken out of the queue are told to be unreceived.
    pub fn finalizes(
        &mut self,
        (rank, number): (LocalRank, u32),
        taken: &[Begun],
        kinds: Kinds,
        findings: &mut Findings,
    ) {
        for &begun in taken {
            let Begun::Waits(lane, number) = begun else {
                continue;
            };
            let Some(waiting) = self.lanes.get_mut(&lane).and_then(|lane| lane.waiting.get_mut(&number)) else {
                continue;
            };
            waiting.buffer = None;
            let (site, source, tag) = (waiting.site, waiting.source, waiting.tag);
            let values = format_args!("a message from rank {source} of the communicator, tag {tag}");
            if kinds.has(Mistake::Unreceived) {
                findings.add(Mistake::Unreceived, &[site.did("took it out of the queue")], values);
            }
            let status = Status { source, tag, count_bytes: ANY_BYTES as i64, ..Status::EMPTY };
            self.received(lane, number, status, findings);
        }
        for (_, lane) in self.lanes.range_mut((0, 0)..).filter(|((_, own), _)| *own == rank) {
            lane.is_unsure |= !lane.waiting.is_empty();
        }
        self.ended.insert(number);
    }

    /// Whether a receive has got its message from another node.
    pub fn is_from_elsewhere(&self, begun: Begun, source: i32) -> bool {
        let Begun::Waits(lane, _) = begun else {
            return false;
        };
        self.lanes.get(&lane).is_some_and(|lane| lane.member(source).is_some())
    }

    /// What calls at a place send or receive.
    fn run(&mut self, site: Site, buffer: Option<&OwnedBuffer>, bytes: u64) -> Run {
        let buffer = buffer.filter(|_| bytes > 0);
        let of = buffer.map(|buffer| {
            let digest = buffer.datatype().signature().digest();
            (digest.elements, digest.hash)
        });
        let number = self.shapes.len() as u32;
        let told = self.shapes.entry(Shape { site, of }).or_insert_with(|| Told::of(number, buffer));
        let hash = buffer.filter(|_| told.each > 0).map_or(0, |buffer| hash_of(buffer, bytes));
        Run { shape: told.number, bytes, hash, times: 1 }
    }

    fn add(&mut self, key: Key, run: Run, is_send: bool, findings: &mut Findings) {
        let all = if is_send { &mut self.sent } else { &mut self.received };
        let runs = all.entry(key).or_default();
        match runs.last_mut().filter(|last| Run { times: 1, ..**last } == run) {
            Some(last) => last.times += 1,
            None => {
                runs.push(run);
                self.runs += 1;
            }
        }
        if self.runs > MOST || self.shapes.len() > MOST {
            self.give_up();
            findings.note("messages to other nodes differ more than the checker follows, and it says nothing of them");
        }
    }

    /// Writes all for the launchers.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        for (Shape { site, .. }, told) in &self.shapes {
            let (each, is_bytes) = (told.each, u8::from(told.is_bytes));
            write!(out, "{SHAPE}{FIELD}{}{FIELD}{}{FIELD}{}{FIELD}", told.number, site.rank, site.name)?;
            write!(out, "{each}{FIELD}{is_bytes}{FIELD}{}{FIELD}{:x}{FIELD}{RECORD}", told.text, site.address)?;
        }
        for (is_send, all) in [(1, &self.sent), (0, &self.received)] {
            for (key, runs) in all {
                write!(out, "{STREAM}{FIELD}{is_send}{FIELD}")?;
                key.write(out)?;
                for Run { shape, bytes, hash, times } in runs {
                    write!(out, "{FIELD}{shape} {bytes} {hash} {times}")?;
                }
                write!(out, "{FIELD}{RECORD}")?;
            }
        }
        for key in &self.unsure {
            write!(out, "{UNSURE}{FIELD}")?;
            key.write(out)?;
            write!(out, "{FIELD}{RECORD}")?;
        }
        for ((context, _), lane) in self.lanes.iter().filter(|(_, lane)| lane.is_unsure) {
            write!(out, "{UNSURE}{FIELD}{context} {}{FIELD}{RECORD}", lane.own)?;
        }
        self.ended.iter().try_for_each(|rank| write!(out, "{ENDED}{FIELD}{rank}{FIELD}{RECORD}"))
    }
}

/// The digest of the first bytes of a buffer's data; 0 if they end within an element.
fn hash_of(buffer: &OwnedBuffer, bytes: u64) -> u64 {
    let datatype = buffer.datatype();
    let signature = datatype.signature();
    let each = signature.elements().max(1);
    let elements = datatype.elements_in(bytes.min(buffer.bytes()) as i64).and_then(|count| u64::try_from(count).ok());
    elements.map_or(0, |all| signature.digest().repeat(all / each).and(signature.digest_of_first(all % each)).hash)
}

impl Told {
    /// What is told of messages of a buffer; nothing if there is no type to compare.
    fn of(number: u32, buffer: Option<&OwnedBuffer>) -> Self {
        let uniform = buffer.and_then(|buffer| buffer.datatype().signature().uniform());
        let (text, each) = match buffer.filter(|_| uniform != Some(Basic::Packed)) {
            Some(buffer) => types::of_one(buffer.datatype()),
            None => (String::new(), 0),
        };
        Self { number, each, is_bytes: uniform == Some(Basic::Byte), text }
    }
}

impl Begun {
    /// Whether it is received.
    pub const fn is_receive(&self) -> bool {
        matches!(self, Self::Waits(..))
    }
}

impl Key {
    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let Self { context, sender, receiver, source, to, tag, is_partitioned } = *self;
        let is_partitioned = u8::from(is_partitioned);
        write!(out, "{context} {receiver} {sender} {source} {to} {tag} {is_partitioned}")
    }
}

impl Lane {
    /// The number of who may send from elsewhere, by rank.
    fn member(&self, source: i32) -> Option<u32> {
        self.members.get(usize::try_from(source).ok()?).copied()?
    }

    /// Of which messages one is; `None` if it is of this node.
    fn key(&self, context: u32, source: i32, tag: i32) -> Option<Key> {
        let sender = self.member(source)?;
        let (receiver, to, is_partitioned) = (self.own, self.to, false);
        Some(Key { context, sender, receiver, source: source as u32, to, tag, is_partitioned })
    }

    /// Whether no receive that began before can take such a message, or has taken one that is not noted.
    fn is_next(&self, number: u64, key: Key) -> bool {
        self.waiting.range(..number).all(|(_, waiting)| match waiting.got {
            Some((other, _)) => other != key,
            None => {
                let is_source = waiting.source == ANY_SOURCE || waiting.source == key.source as i32;
                !is_source || waiting.tag != ANY_TAG && waiting.tag != key.tag
            }
        })
    }
}

//! Messages between ranks of the node: which receive takes which send, and what follows from that.
//!
//! The order in which MPI matches is known from the order of the calls: a receive that names its source takes the first
//! message of that source which fits, and that no receive before it takes. A receive from any source is open until it
//! is complete, and its status says where its message came from; later receives that it might take a message from wait
//! for that.

use super::buffers::Content;
use super::findings::{Findings, Site};
use super::orders::Orders;
use super::types;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use cohort_abi::neutral::{ANY_SOURCE, ANY_TAG};
use cohort_base::LocalRank;
use cohort_base::check::{Kinds, Mistake};
use cohort_engine::datatype::OwnedBuffer;

/// The number of an end of a message.
pub type EndNumber = u64;

/// A thread of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Actor {
    /// Its rank.
    pub rank: LocalRank,
    /// Which of its threads.
    pub thread: usize,
}

/// What has come of ends, for those who play the calls again.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// There is a new one.
    Known(EndNumber),
    /// A send and a receive have met.
    Paired(EndNumber, EndNumber),
    /// One has lost its partner.
    Parted(EndNumber),
    /// Nothing is followed any more.
    GaveUp,
}

/// One end of a message: a send or a receive.
pub struct End {
    /// Who has called what.
    pub site: Site,
    /// Rank and thread.
    pub actor: Actor,
    /// It sends.
    pub is_send: bool,
    /// Its data; `None` where a message is taken out of the queue, or has no data.
    pub buffer: Option<OwnedBuffer>,
    /// The sender's rank in the communicator, or any.
    pub source: i32,
    /// The tag, or any.
    pub tag: i32,
    /// The tag that a receive has asked for.
    pub wanted: i32,
    /// The receiver's rank in the communicator.
    pub to: i32,
    /// A hash of what is sent.
    pub content: u64,
    /// It is sent through the program's own buffer: nobody waits for its receive.
    pub is_buffered: bool,
    /// The receive's program does not learn where its message came from.
    pub is_blind: bool,
    /// What ranks knew of each other when it was sent.
    pub clock: Vec<u32>,
    /// The receive named no source.
    pub was_open: bool,
    /// The end that it meets.
    pub partner: Option<EndNumber>,
}

/// A receive from any source that is complete.
struct Taken {
    site: Site,
    tag: i32,
    source: i32,
    sender: Site,
    content: u64,
    /// Its program does not learn where the message came from.
    is_blind: bool,
    /// The receiver's own time then.
    time: u32,
}

/// Messages of a communicator to one of its members.
#[derive(Default)]
struct Lane {
    sends: VecDeque<EndNumber>,
    receives: VecDeque<EndNumber>,
    taken: Vec<Taken>,
    orders: Orders,
}

/// Most messages that wait with which a receive is compared whose program learns where its message came from.
const WAITING: usize = 64;

/// Most receives from any source that are remembered for a lane.
const TAKEN: usize = 16;

/// Most ends that are known at a time.
const MOST: usize = 300_000;

/// Most messages of a communicator to one of its members that wait for their receives, or the reverse.
const LONGEST: usize = 8000;

/// All that is under way.
#[derive(Default)]
pub struct Traffic {
    ends: BTreeMap<EndNumber, End>,
    lanes: BTreeMap<(u32, LocalRank), Lane>,
    last: EndNumber,
    clocks: BTreeMap<LocalRank, Vec<u32>>,
    /// More was under way than is followed, and nothing is followed any more.
    is_given_up: bool,
}

/// What the parts of the checker share with this one.
pub struct Ground<'a> {
    pub kinds: Kinds,
    pub findings: &'a mut Findings,
    pub events: Vec<Event>,
}

impl Traffic {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { ends: BTreeMap::new(), lanes: BTreeMap::new(), last: 0, clocks: BTreeMap::new(), is_given_up: false }
    }

    /// An end, if it is still known.
    pub fn end(&self, number: EndNumber) -> Option<&End> {
        self.ends.get(&number)
    }

    fn insert(&mut self, end: End, events: &mut Vec<Event>) -> Option<EndNumber> {
        if self.is_given_up {
            return None;
        }
        self.last += 1;
        events.push(Event::Known(self.last));
        self.ends.insert(self.last, end);
        Some(self.last)
    }

    /// A rank's time goes on; what it knows of all.
    pub fn tick(&mut self, rank: LocalRank) -> Vec<u32> {
        let clock = self.clocks.entry(rank).or_default();
        let own = rank as usize;
        if clock.len() <= own {
            clock.resize(own + 1, 0);
        }
        clock[own] += 1;
        clock.clone()
    }

    /// A rank learns what others knew.
    pub fn learn(&mut self, rank: LocalRank, others: &[u32]) {
        let clock = self.clocks.entry(rank).or_default();
        merge(clock, others);
    }

    /// More is under way than is followed: what was known is of no use any more.
    fn give_up(&mut self, ground: &mut Ground<'_>) {
        self.is_given_up = true;
        self.ends.clear();
        self.lanes.clear();
        ground.events.push(Event::GaveUp);
        ground.findings.note("more messages are under way than the checker follows, and it says no more of messages");
    }

    /// Gives up if a lane has become too long, or all of them.
    fn is_too_much(&mut self, key: (u32, LocalRank), ground: &mut Ground<'_>) -> bool {
        let lane = self.lanes.get(&key).map_or(0, |lane| lane.sends.len().max(lane.receives.len()));
        let is_it = lane > LONGEST || self.ends.len() > MOST;
        if is_it {
            self.give_up(ground);
        }
        is_it
    }

    /// A message is sent.
    pub fn send(&mut self, key: (u32, LocalRank), mut end: End, ground: &mut Ground<'_>) -> Option<EndNumber> {
        end.clock = self.tick(end.actor.rank);
        if ground.kinds.has(Mistake::Wildcards) {
            self.compare_with_taken(key, &end, ground.findings);
        }
        let number = self.insert(end, &mut ground.events)?;
        self.lanes.entry(key).or_default().sends.push_back(number);
        if self.is_too_much(key, ground) {
            return None;
        }
        if self.is_awaited(key, number) {
            self.settle(key, ground);
        }
        Some(number)
    }

    /// A receive begins.
    pub fn receive(&mut self, key: (u32, LocalRank), end: End, ground: &mut Ground<'_>) -> Option<EndNumber> {
        let number = self.insert(end, &mut ground.events)?;
        self.lanes.entry(key).or_default().receives.push_back(number);
        if self.is_too_much(key, ground) {
            return None;
        }
        self.settle_last(key, ground);
        Some(number)
    }

    /// Whether a receive that names its source may take a new message.
    fn is_awaited(&self, key: (u32, LocalRank), number: EndNumber) -> bool {
        let (Some(lane), Some(sent)) = (self.lanes.get(&key), self.ends.get(&number)) else {
            return false;
        };
        let takes = |end: &End| end.source == sent.source && fits(end.tag, sent.tag);
        lane.receives.iter().filter_map(|it| self.ends.get(it)).any(takes)
    }

    /// Pairs a new receive, which is the last one. Nothing else has become sure by it.
    fn settle_last(&mut self, key: (u32, LocalRank), ground: &mut Ground<'_>) {
        let only = self.lanes.get(&key).filter(|lane| lane.receives.len() == 1 || !lane.sends.is_empty());
        if only.is_some() {
            self.settle(key, ground);
        }
    }

    /// A receive is complete: where its message came from, as far as its status says.
    pub fn complete(
        &mut self,
        key: (u32, LocalRank),
        number: EndNumber,
        from: Option<(i32, i32)>,
        is_blind: bool,
        ground: &mut Ground<'_>,
    ) {
        let Some(end) = self.ends.get_mut(&number) else {
            return;
        };
        end.is_blind = is_blind;
        let rank = end.actor.rank;
        if end.partner.is_none()
            && let Some((source, tag)) = from
        {
            (end.source, end.tag) = (source, tag);
            self.settle(key, ground);
        }
        let partner = self.ends.get(&number).and_then(|end| end.partner);
        if let Some(sent) = partner.and_then(|partner| self.ends.get(&partner)) {
            let clock = sent.clock.clone();
            self.learn(rank, &clock);
        }
        self.tick(rank);
        if ground.kinds.has(Mistake::Wildcards) {
            self.took(key, number, ground.findings);
        }
    }

    /// An end is none any more: its call has failed, or it was cancelled. Or it will not be complete.
    pub fn forget(&mut self, key: (u32, LocalRank), number: EndNumber, ground: &mut Ground<'_>) {
        let partner = self.ends.get(&number).and_then(|end| end.partner);
        if let Some((partner, end)) = partner.and_then(|it| Some((it, self.ends.get_mut(&it)?))) {
            // It waits for somebody else, as it did before.
            end.partner = None;
            if end.was_open {
                (end.source, end.tag) = (ANY_SOURCE, end.wanted);
            }
            ground.events.push(Event::Parted(partner));
            let lane = self.lanes.entry(key).or_default();
            let list = if end.is_send { &mut lane.sends } else { &mut lane.receives };
            let place = list.partition_point(|&it| it < partner);
            list.insert(place, partner);
        }
        if let Some(lane) = self.lanes.get_mut(&key) {
            take(&mut lane.sends, number);
            take(&mut lane.receives, number);
        }
        self.ends.remove(&number);
        self.settle(key, ground);
    }

    /// An end that met its partner is of no use any more.
    pub fn drop_pair(&mut self, number: EndNumber) {
        if let Some(end) = self.ends.remove(&number)
            && let Some(partner) = end.partner
        {
            self.ends.remove(&partner);
        }
    }

    /// Pairs what is sure.
    fn settle(&mut self, key: (u32, LocalRank), ground: &mut Ground<'_>) {
        while let Some((send, receive)) = self.sure_pair(key) {
            if let Some(lane) = self.lanes.get_mut(&key) {
                take(&mut lane.sends, send);
                take(&mut lane.receives, receive);
            }
            if let Some(end) = self.ends.get_mut(&send) {
                end.partner = Some(receive);
            }
            if let Some(end) = self.ends.get_mut(&receive) {
                end.partner = Some(send);
            }
            if let (Some(sent), Some(taken)) = (self.ends.get(&send), self.ends.get(&receive))
                && let (Some(from), Some(into)) = (&sent.buffer, &taken.buffer)
            {
                types::compare((sent.site, from), (taken.site, into), ground.kinds, ground.findings);
            }
            if let (Some(sent), Some(taken), Some(lane)) =
                (self.ends.get(&send), self.ends.get(&receive), self.lanes.get_mut(&key))
            {
                lane.orders.took((sent.source, sent.tag), taken.site, taken.was_open);
            }
            ground.events.push(Event::Paired(send, receive));
        }
    }

    /// The first receive whose message is known for sure, and that message.
    fn sure_pair(&self, key: (u32, LocalRank)) -> Option<(EndNumber, EndNumber)> {
        let lane = self.lanes.get(&key)?;
        let mut open: Vec<i32> = Vec::new();
        for &receive in &lane.receives {
            let taken = self.ends.get(&receive)?;
            if taken.source == ANY_SOURCE {
                open.push(taken.tag);
                continue;
            }
            let is_it = |send: &&EndNumber| {
                self.ends.get(send).is_some_and(|sent| sent.source == taken.source && fits(taken.tag, sent.tag))
            };
            let Some(&send) = lane.sends.iter().find(is_it) else {
                continue;
            };
            let tag = self.ends.get(&send)?.tag;
            if open.iter().all(|&wanted| !fits(wanted, tag)) {
                return Some((send, receive));
            }
        }
        None
    }

    /// A receive from any source has taken a message: are there others that it could have taken?
    fn took(&mut self, key: (u32, LocalRank), number: EndNumber, findings: &mut Findings) {
        let Some(end) = self.ends.get(&number).filter(|end| end.was_open) else {
            return;
        };
        let Some(sent) = end.partner.and_then(|partner| self.ends.get(&partner)) else {
            return;
        };
        let rank = end.actor.rank;
        let time = self.clocks.get(&rank).and_then(|clock| clock.get(rank as usize)).copied().unwrap_or(0);
        let taken = Taken {
            site: end.site,
            tag: end.wanted,
            source: sent.source,
            sender: sent.site,
            content: sent.content,
            is_blind: end.is_blind,
            time,
        };
        if let Some(Lane { sends, taken: all, orders, .. }) = self.lanes.get_mut(&key) {
            let most = if taken.is_blind { usize::MAX } else { WAITING };
            for other in sends.iter().take(most).filter_map(|send| self.ends.get(send)) {
                taken.compare(other, orders, findings);
            }
            if all.len() >= TAKEN {
                all.remove(0);
            }
            all.push(taken);
        }
    }

    fn compare_with_taken(&mut self, key: (u32, LocalRank), sent: &End, findings: &mut Findings) {
        let Some(Lane { taken, orders, .. }) = self.lanes.get_mut(&key) else {
            return;
        };
        let knows = sent.clock.get(key.1 as usize).copied().unwrap_or(0);
        for taken in taken.iter().filter(|taken| knows < taken.time) {
            taken.compare(sent, orders, findings);
        }
    }

    /// Tells of receives from any source that could have taken what a later receive of a rank that has ended MPI names.
    pub fn tell_orders(&self, has_finalized: impl Fn(LocalRank) -> bool, findings: &mut Findings) {
        for lane in self.lanes.iter().filter(|((_, to), _)| has_finalized(*to)).map(|(_, lane)| lane) {
            let left = |origin| {
                let mut sends = lane.sends.iter().filter_map(|send| self.ends.get(send));
                sends.any(|sent| (sent.source, sent.tag) == origin)
            };
            lane.orders.tell(left, findings);
        }
    }

    /// Tells messages that were never received by ranks that have ended MPI.
    pub fn tell_unreceived(&self, has_finalized: impl Fn(LocalRank) -> bool, findings: &mut Findings) {
        for lane in self.lanes.iter().filter(|((_, to), _)| has_finalized(*to)).map(|(_, lane)| lane) {
            let is_open = lane.receives.iter().any(|it| self.ends.get(it).is_some_and(|end| end.source == ANY_SOURCE));
            if is_open {
                continue;
            }
            for sent in lane.sends.iter().filter_map(|send| self.ends.get(send)) {
                let bytes = sent.buffer.as_ref().map_or(0, OwnedBuffer::bytes);
                let (source, tag, member) = (sent.source, sent.tag, sent.to);
                let values =
                    format_args!("{bytes} bytes from rank {source} to rank {member} of the communicator, tag {tag}");
                findings.add(Mistake::Unreceived, &[sent.site.did("sent")], values);
            }
        }
    }
}

/// Takes a number out of a list, which is most likely the first.
fn take(list: &mut VecDeque<EndNumber>, number: EndNumber) {
    if let Ok(place) = list.binary_search(&number) {
        list.remove(place);
    }
}

/// Adds what others knew.
pub fn merge(clock: &mut Vec<u32>, others: &[u32]) {
    if clock.len() < others.len() {
        clock.resize(others.len(), 0);
    }
    for (own, &other) in clock.iter_mut().zip(others) {
        *own = (*own).max(other);
    }
}

/// Whether a receive for a tag takes a message with one.
fn fits(wanted: i32, tag: i32) -> bool {
    wanted == ANY_TAG || wanted == tag
}

impl Taken {
    /// This receive could have taken another message: notes it, and tells it if that says something else.
    fn compare(&self, other: &End, orders: &mut Orders, findings: &mut Findings) {
        if other.source == self.source || !fits(self.tag, other.tag) {
            return;
        }
        orders.could((other.source, other.tag), (self.site, self.sender, self.source), other.site);
        if other.content == self.content || !self.is_blind {
            return;
        }
        let places = [self.site.did("receives"), self.sender.did("was taken"), other.site.did("could have been taken")];
        let values = format_args!(
            "from rank {} or rank {}, with different data; the status is ignored",
            self.source, other.source
        );
        findings.add(Mistake::Wildcards, &places, values);
    }
}

/// The hash of what a buffer holds.
pub fn hash(buffer: Option<&OwnedBuffer>) -> u64 {
    buffer.map_or(0, |buffer| Content::of(buffer).hash())
}

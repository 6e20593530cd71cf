//! What the events of ranks say: pieces of time on tracks, and arrows between them.

use super::record::{Record, Source};
use super::scale::{NodeFacts, Scale, scales};
use cohort_base::trace::{ANYBODY, Event, EventKind, NO_TAG, NOBODY, PROGRESS, WORKER};
use std::collections::HashMap;

/// A piece of time on a track.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Nanoseconds since the job's start, on the first node's clock.
    pub begin: u64,
    /// The same.
    pub end: u64,
    /// What is shown.
    pub name: String,
    /// Which kind of thing it is.
    pub category: &'static str,
    /// More about it.
    pub facts: Vec<(&'static str, Fact)>,
    /// The arrow that begins here.
    pub leaves: Option<u64>,
    /// The arrow that ends here.
    pub comes: Option<u64>,
}

/// A fact's value.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A count, a rank, a tag.
    Number(i64),
    /// Yes.
    True,
}

/// One line of the picture.
#[derive(Debug)]
pub struct Track {
    /// Its number, unique on the node.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// What is on it, in order.
    pub pieces: Vec<Piece>,
}

/// One rank.
#[derive(Debug)]
pub struct RankLine {
    /// Its node's place in [`Timeline::nodes`].
    pub node: usize,
    /// Its number in the job.
    pub number: u32,
    /// What it is called.
    pub name: String,
    /// Events that it had.
    pub noted: u64,
    /// Those of them that are not here.
    pub lost: u64,
    /// Its tracks: its threads, and what others did for it.
    pub tracks: Vec<Track>,
}

/// All of a job, or of a node.
#[derive(Debug)]
pub struct Timeline {
    /// The nodes.
    pub nodes: Vec<NodeFacts>,
    /// When it starts, in nanoseconds since 1970.
    pub start: u64,
    /// By nodes, and by their numbers.
    pub ranks: Vec<RankLine>,
}

/// Tracks of a rank have numbers from this times the rank's number.
const TRACKS_PER_RANK: u64 = 100;

/// What [`Maker::track`] calls the track of what others did for a rank.
const BY_OTHERS: u64 = 3;

/// A message on its way: what tells it from others, from which rank to which.
type Flow = (u64, usize, usize);

impl Timeline {
    /// What nodes have noted, the first one first.
    #[must_use]
    pub fn of(records: Vec<Record>) -> Self {
        let (known, start) = scales(&records);
        let (scales, nodes): (Vec<_>, Vec<_>) = known.into_iter().unzip();
        let mut maker = Maker::new(records, &scales);
        maker.add_calls();
        maker.add_others();
        Self { nodes, start, ranks: maker.finish() }
    }
}

fn threads_of(source: &Source) -> Vec<u64> {
    let mut known = Vec::new();
    for event in &source.events {
        if event.thread > BY_OTHERS && !known.contains(&event.thread) {
            known.push(event.thread);
        }
    }
    known
}

/// A node's ranks, by their places on it, of each place in the order of their times.
struct Node {
    places: Vec<Vec<usize>>,
    scale: Scale,
    /// When it ended, in ticks.
    ended: u64,
    names: HashMap<(u64, u8), String>,
}

struct Maker {
    /// Of all nodes, one after the other.
    numbers: Vec<u32>,
    nodes: Vec<Node>,
    /// By rank: its node's place.
    homes: Vec<usize>,
    sources: Vec<Source>,
    /// Pieces by rank and thread.
    pieces: HashMap<(usize, u64), Vec<Piece>>,
    /// Threads of each rank, in the order in which they appear.
    threads: Vec<Vec<u64>>,
    arrows: u64,
}

impl Maker {
    fn new(records: Vec<Record>, scales: &[Scale]) -> Self {
        let mut this = Self {
            numbers: Vec::new(),
            nodes: Vec::new(),
            homes: Vec::new(),
            sources: Vec::new(),
            pieces: HashMap::new(),
            threads: Vec::new(),
            arrows: 0,
        };
        for (place, (record, &scale)) in records.into_iter().zip(scales).enumerate() {
            let first = this.sources.len();
            this.sources.extend(record.sources);
            let end = this.sources.len();
            let mut places = Vec::new();
            for rank in first..end {
                let own = this.sources[rank].place;
                places.resize_with(places.len().max(own + 1), Vec::new);
                places[own].push(rank);
            }
            this.numbers.extend(record.numbers);
            this.homes.resize(end, place);
            this.nodes.push(Node { places, scale, ended: record.clocks[1].ticks, names: record.names });
        }
        this.threads = this.sources.iter().map(threads_of).collect();
        this
    }

    fn node(&self, rank: usize) -> &Node {
        &self.nodes[self.homes[rank]]
    }

    /// Of a rank's event: the time in nanoseconds.
    fn ns(&self, rank: usize, ticks: u64) -> u64 {
        self.node(rank).scale.ns(ticks)
    }

    fn piece(&self, rank: usize, event: &Event, name: String, category: &'static str) -> Piece {
        Piece {
            begin: self.ns(rank, event.begin),
            end: self.ns(rank, event.end.max(event.begin)),
            name,
            category,
            facts: Vec::new(),
            leaves: None,
            comes: None,
        }
    }

    /// The place of the other rank that an event of a rank names, if it is known.
    fn other(&self, rank: usize, event: &Event) -> Option<usize> {
        let peer = event.peer as usize;
        if matches!(event.kind, EventKind::SentFar | EventKind::MatchedFar) {
            return self.numbers.iter().position(|&number| number == event.peer);
        }
        let node = self.node(rank);
        let is_it = |&&other: &&usize| self.sources[other].since <= event.begin;
        // Of those who were there in turn, the last one that had come.
        let there = node.places.get(peer)?;
        there.iter().rev().find(is_it).or(there.first()).copied()
    }

    /// The number in the job of the other rank that an event of a rank names, and what it is called.
    fn names_of_other(&self, rank: usize, event: &Event) -> (u32, String) {
        match self.other(rank, event) {
            Some(place) => (self.numbers[place], self.name(place)),
            None => (event.peer, event.peer.to_string()),
        }
    }

    fn name(&self, rank: usize) -> String {
        let own = self.sources[rank].name.clone();
        own.unwrap_or_else(|| self.numbers[rank].to_string())
    }

    fn arrow(&mut self) -> u64 {
        self.arrows += 1;
        self.arrows
    }

    /// Calls that did not return last until the end.
    fn add_calls(&mut self) {
        for rank in 0..self.sources.len() {
            let events = std::mem::take(&mut self.sources[rank].events);
            for event in events.iter().filter(|it| it.kind == EventKind::Call) {
                let name = self.node(rank).names.get(&(event.flow, event.name));
                let name = name.cloned().unwrap_or_default();
                let mut call = self.piece(rank, event, name, "mpi");
                call.facts = facts_of_call(event);
                if event.end == 0 {
                    call.end = self.ns(rank, self.node(rank).ended);
                    call.facts.push(("unfinished", Fact::True));
                }
                self.put(rank, event.thread, call);
            }
            self.sources[rank].events = events;
        }
        for calls in self.pieces.values_mut() {
            calls.sort_by_key(|call| (call.begin, u64::MAX - call.end));
        }
    }

    fn put(&mut self, rank: usize, thread: u64, piece: Piece) {
        self.pieces.entry((rank, thread)).or_default().push(piece);
    }

    /// The thread of a rank that something is shown with which whatever task may have done: one that is in a call.
    fn thread_at(&self, rank: usize, ns: u64) -> u64 {
        let is_in_call = |thread: &&u64| {
            let calls = self.pieces.get(&(rank, **thread)).map_or(&[][..], |it| it);
            let before = calls.partition_point(|call| call.begin <= ns);
            // Calls within calls are short, and few.
            let mut near = calls[..before].iter().rev().take(8);
            near.any(|call| call.category == "mpi" && ns <= call.end)
        };
        let mut threads = self.threads[rank].iter();
        let found = threads.find(is_in_call).or(self.threads[rank].first());
        found.copied().unwrap_or(ANYBODY)
    }

    fn add_others(&mut self) {
        let mut all: Vec<(usize, Event)> = Vec::new();
        for (rank, source) in self.sources.iter().enumerate() {
            let others = source.events.iter();
            let others = others.filter(|event| event.kind != EventKind::Call);
            all.extend(others.map(|&event| (rank, event)));
        }
        all.sort_by_key(|(rank, event)| self.ns(*rank, event.begin));
        let arrivals = self.match_messages(&all);
        let wakes = self.match_wakes(&all);
        let mut added: Vec<(usize, u64, Piece)> = Vec::new();
        for (place, (rank, event)) in all.iter().enumerate() {
            let thread = match event.thread {
                ANYBODY => self.thread_at(*rank, self.ns(*rank, event.begin)),
                known => known,
            };
            let arrow = arrivals.get(&place).or(wakes.get(&place)).copied();
            self.add(&mut added, *rank, thread, event, arrow);
        }
        for (rank, thread, piece) in added {
            self.put(rank, thread, piece);
        }
    }

    /// Gives both ends of a message that has met its receive the same arrow.
    fn match_messages(&mut self, all: &[(usize, Event)]) -> HashMap<usize, u64> {
        let mut under_way: HashMap<Flow, usize> = HashMap::new();
        let mut arrows = HashMap::new();
        let mut join = |this: &mut Self, sent: usize, came: usize| {
            let arrow = this.arrow();
            arrows.insert(sent, arrow);
            arrows.insert(came, arrow);
        };
        // By the clocks of two nodes a message may come before it leaves, so those that came are looked at later.
        let mut far = Vec::new();
        for (place, (rank, event)) in all.iter().enumerate() {
            let Some(other) = self.other(*rank, event) else {
                continue;
            };
            match event.kind {
                EventKind::Sent | EventKind::SentFar => {
                    under_way.insert((event.flow, *rank, other), place);
                }
                EventKind::Matched => {
                    if let Some(sent) = under_way.remove(&(event.flow, other, *rank)) {
                        join(self, sent, place);
                    }
                }
                EventKind::MatchedFar => far.push((place, (event.flow, other, *rank))),
                _ => {}
            }
        }
        for (came, flow) in far {
            if let Some(sent) = under_way.remove(&flow) {
                join(self, sent, came);
            }
        }
        arrows
    }

    /// The same for sleeps and the wake-ups that ended them.
    fn match_wakes(&mut self, all: &[(usize, Event)]) -> HashMap<usize, u64> {
        let mut sleeps: HashMap<usize, Vec<usize>> = HashMap::new();
        for (place, (rank, event)) in all.iter().enumerate() {
            if event.kind == EventKind::Sleep && event.flow != 0 {
                sleeps.entry(*rank).or_default().push(place);
            }
        }
        let mut arrows = HashMap::new();
        for (place, (rank, event)) in all.iter().enumerate() {
            if event.kind != EventKind::Wake {
                continue;
            }
            let Some(other) = self.other(*rank, event) else {
                continue;
            };
            let slept =
                sleeps.get(&other).map_or(&[][..], |it| it).iter().rfind(|&&slept| all[slept].1.begin <= event.begin);
            if let Some(&slept) = slept
                && event.begin <= all[slept].1.end
                && !arrows.contains_key(&slept)
            {
                let arrow = self.arrow();
                arrows.insert(slept, arrow);
                arrows.insert(place, arrow);
            }
        }
        arrows
    }

    fn add(
        &mut self,
        added: &mut Vec<(usize, u64, Piece)>,
        rank: usize,
        thread: u64,
        event: &Event,
        arrow: Option<u64>,
    ) {
        let (peer, called) = self.names_of_other(rank, event);
        let bytes = ("bytes", Fact::Number(event.bytes as i64));
        let mut piece = match event.kind {
            EventKind::Call => return,
            EventKind::Steal => return self.add_steal(added, rank, thread, event),
            EventKind::Sleep => self.piece(rank, event, "sleeps".into(), "sleep"),
            EventKind::Wake => self.piece(rank, event, format!("wakes rank {called}"), "wake"),
            EventKind::Sent | EventKind::SentFar => {
                self.piece(rank, event, format!("message to rank {called}"), "sent")
            }
            EventKind::Matched | EventKind::MatchedFar => {
                self.piece(rank, event, format!("message from rank {called}"), "received")
            }
            EventKind::Copy => self.piece(rank, event, "copies".into(), "copy"),
            EventKind::Turn => self.piece(rank, event, "progresses itself".into(), "turn"),
            EventKind::Policy => {
                let does = if event.flow != 0 { "on" } else { "off" };
                self.piece(rank, event, format!("auto turns its fallback {does}"), "policy")
            }
        };
        match event.kind {
            EventKind::Sent | EventKind::Matched | EventKind::SentFar | EventKind::MatchedFar => {
                let tag = ("tag", Fact::Number(event.tag.into()));
                piece.facts = vec![("peer", Fact::Number(peer.into())), bytes, tag];
            }
            EventKind::Copy | EventKind::Turn => piece.facts = vec![bytes],
            _ => {}
        }
        if event.kind == EventKind::Sleep {
            // The arrow comes to the moment of waking.
            let mut woken = piece.clone();
            woken.begin = woken.end;
            (woken.name, woken.category, woken.comes) = ("awake".into(), "awake", arrow);
            if arrow.is_some() {
                added.push((rank, thread, woken));
            }
        } else if matches!(event.kind, EventKind::Matched | EventKind::MatchedFar) {
            piece.comes = arrow;
        } else {
            piece.leaves = arrow;
        }
        added.push((rank, thread, piece));
    }

    /// Stolen work is on two tracks: the thief's, and that of what others did for the owner.
    fn add_steal(&mut self, added: &mut Vec<(usize, u64, Piece)>, rank: usize, thread: u64, event: &Event) {
        let Some(place) = self.other(rank, event) else {
            return;
        };
        let arrow = self.arrow();
        let (thief, owner) = (self.numbers[rank], self.numbers[place]);
        let mut facts = vec![
            ("owner", Fact::Number(owner.into())),
            ("thief", Fact::Number(thief.into())),
            ("bytes", Fact::Number(event.bytes as i64)),
        ];
        if event.flow != 0 {
            facts.push(("network", Fact::True));
        }
        let [by, whose] = [rank, place].map(|it| self.name(it));
        let mut stolen = self.piece(rank, event, format!("works for rank {whose}"), "steal");
        let mut helped = self.piece(rank, event, format!("done by rank {by}"), "helped");
        (stolen.leaves, helped.comes) = (Some(arrow), Some(arrow));
        stolen.facts.clone_from(&facts);
        helped.facts = facts;
        added.push((rank, thread, stolen));
        added.push((place, BY_OTHERS, helped));
    }

    fn finish(mut self) -> Vec<RankLine> {
        let mut ranks = Vec::new();
        for (rank, source) in self.sources.iter().enumerate() {
            let (number, name) = (self.numbers[rank], self.name(rank));
            let threads = self.threads[rank].iter().copied();
            let mut tracks = Vec::new();
            let own = threads.chain([ANYBODY, PROGRESS, WORKER, BY_OTHERS]);
            for (place, thread) in own.enumerate() {
                let pieces = self.pieces.remove(&(rank, thread)).unwrap_or_default();
                if pieces.is_empty() && place > 0 {
                    continue;
                }
                tracks.push(Track {
                    number: u64::from(number + 1) * TRACKS_PER_RANK + tracks.len() as u64,
                    name: name_of_track(&name, thread, place),
                    pieces: nested(pieces),
                });
            }
            ranks.push(RankLine {
                node: self.homes[rank],
                number,
                name,
                noted: source.noted,
                lost: source.noted - source.events.len() as u64,
                tracks,
            });
        }
        ranks
    }
}

fn facts_of_call(event: &Event) -> Vec<(&'static str, Fact)> {
    let number = |name, value| Some((name, Fact::Number(value)));
    let peer = event.peer.cast_signed().into();
    let facts = [
        number("peer", peer).filter(|_| event.peer != NOBODY),
        number("bytes", event.bytes as i64).filter(|_| event.bytes > 0),
        number("tag", event.tag.into()).filter(|_| event.tag != NO_TAG),
    ];
    facts.into_iter().flatten().collect()
}

fn name_of_track(rank: &str, thread: u64, place: usize) -> String {
    match (thread, place) {
        (WORKER, _) => format!("rank {rank}: dedicated worker"),
        (PROGRESS, _) => format!("rank {rank}: progress thread"),
        (BY_OTHERS, _) => format!("rank {rank}: done by others"),
        (_, 0) => format!("rank {rank}"),
        (_, place) => format!("rank {rank}: thread {place}"),
    }
}

/// Pieces in order. One that reaches out of the piece that it began in is cut: viewers draw pieces within pieces.
fn nested(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| (piece.begin, u64::MAX - piece.end));
    let mut around: Vec<u64> = Vec::new();
    for piece in &mut pieces {
        while around.last().is_some_and(|&end| end <= piece.begin) {
            around.pop();
        }
        if let Some(&end) = around.last() {
            piece.end = piece.end.min(end);
        }
        around.push(piece.end);
    }
    pieces
}

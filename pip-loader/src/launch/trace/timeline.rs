//! What the events of a node's ranks say: pieces of time on tracks, and arrows between them.

use cohort_base::trace::{ANYBODY, Event, Kind, NO_TAG, NOBODY, PROGRESS, Ring, WORKER};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use std::collections::HashMap;
use std::io::IoSliceMut;

/// How ticks become nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    begin: u64,
    end: u64,
    ns: u64,
}

impl Scale {
    /// Between two times, in ticks, so many nanoseconds have passed.
    #[must_use]
    pub fn new((begin, end): (u64, u64), ns: u64) -> Self {
        Self { begin, end, ns }
    }

    /// Nanoseconds since the beginning.
    fn ns(&self, ticks: u64) -> u64 {
        let passed = u128::from(ticks.saturating_sub(self.begin));
        let all = u128::from(self.end.saturating_sub(self.begin).max(1));
        (passed * u128::from(self.ns) / all) as u64
    }
}

/// A piece of time on a track.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Nanoseconds since the job's start.
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
    /// Its number in the job.
    pub number: u32,
    /// Events that it had.
    pub noted: u64,
    /// Those of them that are not here.
    pub lost: u64,
    /// Its tracks: its threads, and what others did for it.
    pub tracks: Vec<Track>,
}

/// All of a node.
#[derive(Debug)]
pub struct Timeline {
    /// By their numbers.
    pub ranks: Vec<RankLine>,
}

/// Tracks of a rank have numbers from this times the rank's number.
const TRACKS_PER_RANK: u64 = 100;

/// What [`Maker::track`] calls the track of what others did for a rank.
const BY_OTHERS: u64 = 3;

/// A message on its way: what tells it from others, from which rank to which.
type Flow = (u64, usize, usize);

impl Timeline {
    /// What the rings of ranks with these numbers say.
    #[must_use]
    pub fn of(rings: &[Ring], numbers: &[u32], scale: Scale) -> Self {
        let mut maker = Maker::new(rings, numbers, scale);
        maker.add_calls();
        maker.add_others();
        maker.finish()
    }
}

/// Events of one rank, in order.
struct Source {
    noted: u64,
    events: Vec<Event>,
}

impl Source {
    fn of(ring: &Ring) -> Self {
        let mut events: Vec<(u64, Event)> = ring.events().collect();
        events.sort_unstable_by_key(|&(number, _)| number);
        Self {
            noted: ring.noted(),
            events: events.into_iter().map(|(_, event)| event).collect(),
        }
    }
}

struct Maker<'a> {
    numbers: &'a [u32],
    scale: Scale,
    sources: Vec<Source>,
    /// Pieces by rank and thread.
    pieces: HashMap<(usize, u64), Vec<Piece>>,
    /// Threads of each rank, in the order in which they appear.
    threads: Vec<Vec<u64>>,
    arrows: u64,
    names: Names,
}

impl<'a> Maker<'a> {
    fn new(rings: &[Ring], numbers: &'a [u32], scale: Scale) -> Self {
        let sources: Vec<Source> = rings.iter().map(Source::of).collect();
        let threads = sources.iter().map(|source| {
            let mut known = Vec::new();
            for event in &source.events {
                if event.thread > BY_OTHERS && !known.contains(&event.thread) {
                    known.push(event.thread);
                }
            }
            known
        });
        Self {
            threads: threads.collect(),
            numbers,
            scale,
            sources,
            pieces: HashMap::new(),
            arrows: 0,
            names: Names::default(),
        }
    }

    fn piece(&self, event: &Event, name: String, category: &'static str) -> Piece {
        Piece {
            begin: self.scale.ns(event.begin),
            end: self.scale.ns(event.end.max(event.begin)),
            name,
            category,
            facts: Vec::new(),
            leaves: None,
            comes: None,
        }
    }

    /// A rank's number in the job.
    fn number(&self, index: u32) -> u32 {
        self.numbers.get(index as usize).copied().unwrap_or(index)
    }

    fn arrow(&mut self) -> u64 {
        self.arrows += 1;
        self.arrows
    }

    /// Joins the beginning and the end of each call.
    fn add_calls(&mut self) {
        for rank in 0..self.sources.len() {
            let events = std::mem::take(&mut self.sources[rank].events);
            let mut open: HashMap<u64, Vec<Piece>> = HashMap::new();
            for event in &events {
                match event.kind {
                    Kind::Begin => {
                        let name = self.names.read(event.flow, event.name);
                        let mut call = self.piece(event, name, "mpi");
                        call.facts = facts_of_call(event);
                        open.entry(event.thread).or_default().push(call);
                    }
                    Kind::End => {
                        // One whose beginning is lost is left out.
                        if let Some(mut call) = open.entry(event.thread).or_default().pop() {
                            call.end = self.scale.ns(event.end);
                            self.put(rank, event.thread, call);
                        }
                    }
                    _ => {}
                }
            }
            for (thread, calls) in open {
                for mut call in calls {
                    call.end = self.scale.ns(self.scale.end);
                    call.facts.push(("unfinished", Fact::True));
                    self.put(rank, thread, call);
                }
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
            let others = others.filter(|event| !matches!(event.kind, Kind::Begin | Kind::End));
            all.extend(others.map(|&event| (rank, event)));
        }
        all.sort_by_key(|(_, event)| event.begin);
        let arrivals = self.match_messages(&all);
        let wakes = self.match_wakes(&all);
        let mut added: Vec<(usize, u64, Piece)> = Vec::new();
        for (place, (rank, event)) in all.iter().enumerate() {
            let thread = match event.thread {
                ANYBODY => self.thread_at(*rank, self.scale.ns(event.begin)),
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
        for (place, (rank, event)) in all.iter().enumerate() {
            let peer = event.peer as usize;
            match event.kind {
                Kind::Sent => {
                    under_way.insert((event.flow, *rank, peer), place);
                }
                Kind::Matched => {
                    if let Some(sent) = under_way.remove(&(event.flow, peer, *rank)) {
                        let arrow = self.arrow();
                        arrows.insert(sent, arrow);
                        arrows.insert(place, arrow);
                    }
                }
                _ => {}
            }
        }
        arrows
    }

    /// The same for sleeps and the wake-ups that ended them.
    fn match_wakes(&mut self, all: &[(usize, Event)]) -> HashMap<usize, u64> {
        let mut sleeps: HashMap<usize, Vec<usize>> = HashMap::new();
        for (place, (rank, event)) in all.iter().enumerate() {
            if event.kind == Kind::Sleep && event.flow != 0 {
                sleeps.entry(*rank).or_default().push(place);
            }
        }
        let mut arrows = HashMap::new();
        for (place, (_, event)) in all.iter().enumerate() {
            if event.kind != Kind::Wake {
                continue;
            }
            let slept = sleeps
                .get(&(event.peer as usize))
                .map_or(&[][..], |it| it)
                .iter()
                .rfind(|&&slept| all[slept].1.begin <= event.begin);
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
        let peer = self.number(event.peer);
        let bytes = ("bytes", Fact::Number(event.bytes as i64));
        let mut piece = match event.kind {
            Kind::Begin | Kind::End => return,
            Kind::Steal => return self.add_steal(added, rank, thread, event),
            Kind::Sleep => self.piece(event, "sleeps".into(), "sleep"),
            Kind::Wake => self.piece(event, format!("wakes rank {peer}"), "wake"),
            Kind::Sent => self.piece(event, format!("message to rank {peer}"), "sent"),
            Kind::Matched => self.piece(event, format!("message from rank {peer}"), "received"),
            Kind::Copy => self.piece(event, "copies".into(), "copy"),
            Kind::Turn => self.piece(event, "progresses itself".into(), "turn"),
        };
        match event.kind {
            Kind::Sent | Kind::Matched => {
                let tag = ("tag", Fact::Number(event.tag.into()));
                piece.facts = vec![("peer", Fact::Number(peer.into())), bytes, tag];
            }
            Kind::Copy | Kind::Turn => piece.facts = vec![bytes],
            _ => {}
        }
        if event.kind == Kind::Sleep {
            // The arrow comes to the moment of waking.
            let mut woken = piece.clone();
            woken.begin = woken.end;
            (woken.name, woken.category, woken.comes) = ("awake".into(), "awake", arrow);
            if arrow.is_some() {
                added.push((rank, thread, woken));
            }
        } else if event.kind == Kind::Matched {
            piece.comes = arrow;
        } else {
            piece.leaves = arrow;
        }
        added.push((rank, thread, piece));
    }

    /// Stolen work is on two tracks: the thief's, and that of what others did for the owner.
    fn add_steal(
        &mut self,
        added: &mut Vec<(usize, u64, Piece)>,
        rank: usize,
        thread: u64,
        event: &Event,
    ) {
        if event.peer == NOBODY || event.peer as usize >= self.sources.len() {
            return;
        }
        let arrow = self.arrow();
        let (thief, owner) = (self.numbers[rank], self.number(event.peer));
        let mut facts = vec![
            ("owner", Fact::Number(owner.into())),
            ("thief", Fact::Number(thief.into())),
            ("bytes", Fact::Number(event.bytes as i64)),
        ];
        if event.flow != 0 {
            facts.push(("network", Fact::True));
        }
        let mut stolen = self.piece(event, format!("works for rank {owner}"), "steal");
        let mut helped = self.piece(event, format!("done by rank {thief}"), "helped");
        (stolen.leaves, helped.comes) = (Some(arrow), Some(arrow));
        stolen.facts.clone_from(&facts);
        helped.facts = facts;
        added.push((rank, thread, stolen));
        added.push((event.peer as usize, BY_OTHERS, helped));
    }

    fn finish(mut self) -> Timeline {
        let mut ranks = Vec::new();
        for (rank, source) in self.sources.iter().enumerate() {
            let number = self.numbers[rank];
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
                    name: name_of_track(number, thread, place),
                    pieces: nested(pieces),
                });
            }
            ranks.push(RankLine {
                number,
                noted: source.noted,
                lost: source.noted - source.events.len() as u64,
                tracks,
            });
        }
        Timeline { ranks }
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

fn name_of_track(rank: u32, thread: u64, place: usize) -> String {
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

/// Names of calls, which are strings of the node image.
#[derive(Debug, Default)]
struct Names(HashMap<(u64, u8), String>);

impl Names {
    /// The name at an address, which a program may have overwritten in its event.
    fn read(&mut self, address: u64, length: u8) -> String {
        let known = self.0.entry((address, length));
        let name = known.or_insert_with(|| {
            let mut bytes = vec![0; length.into()];
            let remote = RemoteIoVec {
                base: address as usize,
                len: length.into(),
            };
            let own = nix::unistd::getpid();
            let read = process_vm_readv(own, &mut [IoSliceMut::new(&mut bytes)], &[remote]);
            let text = read.ok().and_then(|_| String::from_utf8(bytes).ok());
            text.unwrap_or_else(|| "a call of MPI".into())
        });
        name.clone()
    }
}

//! What a node has noted, as its launcher reads it from the rings and sends it to the first node's.

use super::Clocks;
use super::line::Point;
use super::names::Names;
use cohort_base::trace::{Event, EventKind, Ring, WORDS};
use cohort_manager::wireup::RANKS_MAX;
use std::collections::HashMap;

/// Where a rank notes its events.
#[derive(Debug)]
pub struct Noted {
    /// That.
    pub ring: &'static Ring,
    /// Its number in the job; one that is spawned has one that no other rank has.
    pub number: u32,
    /// What it is called if it was spawned: the number of its world, and its own there, "1.0".
    pub name: Option<String>,
    /// Its place on the node.
    pub place: usize,
    /// Since when that is its own, in ticks.
    pub since: u64,
}

impl Noted {
    /// A rank that the job begins with.
    #[must_use]
    pub fn first(ring: &'static Ring, place: usize, number: u32) -> Self {
        Self { ring, number, name: None, place, since: 0 }
    }
}

/// Events of one rank, in order.
#[derive(Debug, PartialEq)]
pub struct Source {
    /// As in [`Noted`].
    pub name: Option<String>,
    /// The same.
    pub place: usize,
    /// The same.
    pub since: u64,
    /// Events that it had.
    pub noted: u64,
    /// Those that are here.
    pub events: Vec<Event>,
}

impl Source {
    fn of(it: &Noted) -> Self {
        let mut events: Vec<(u64, Event)> = it.ring.events().collect();
        events.sort_unstable_by_key(|&(number, _)| number);
        Self {
            name: it.name.clone(),
            place: it.place,
            since: it.since,
            noted: it.ring.noted(),
            events: events.into_iter().map(|(_, event)| event).collect(),
        }
    }
}

/// What a node has noted.
#[derive(Debug, PartialEq)]
pub struct Record {
    /// Its number.
    pub node: u32,
    /// Its name.
    pub host: String,
    /// Its clocks when its ranks began, and when they had ended.
    pub clocks: [Clocks; 2],
    /// Its ticks and those of the first node; the same ones on that node itself.
    pub points: [Point; 2],
    /// Its ranks' numbers in the job.
    pub numbers: Vec<u32>,
    /// By rank.
    pub sources: Vec<Source>,
    /// Names of calls by what [`EventKind::Call`] says of them.
    pub names: HashMap<(u64, u8), String>,
}

impl Record {
    /// What ranks have noted, on the first node or one that is alone.
    #[must_use]
    pub fn of(noted: &[Noted], clocks: [Clocks; 2]) -> Self {
        let sources: Vec<Source> = noted.iter().map(Source::of).collect();
        let mut names = Names::default();
        for event in sources.iter().flat_map(|source| &source.events) {
            if event.kind == EventKind::Call {
                names.read(event.flow, event.name);
            }
        }
        Self {
            node: 0,
            host: String::new(),
            clocks,
            points: clocks.map(|clocks| Point::same(clocks.ticks)),
            numbers: noted.iter().map(|it| it.number).collect(),
            sources,
            names: names.0,
        }
    }

    /// As it travels: numbers of eight bytes, and texts behind their lengths; an empty name is none.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.number(self.node.into());
        out.text(&self.host);
        for clocks in &self.clocks {
            let all = [clocks.ticks, clocks.steady, clocks.real, clocks.error];
            all.into_iter().for_each(|it| out.number(it));
        }
        for point in &self.points {
            let all = [point.own, point.first, point.error];
            all.into_iter().for_each(|it| out.number(it));
        }
        out.number(self.numbers.len() as u64);
        for (&number, source) in self.numbers.iter().zip(&self.sources) {
            out.number(number.into());
            out.text(source.name.as_deref().unwrap_or_default());
            out.number(source.place as u64);
            out.number(source.since);
            out.number(source.noted);
            out.number(source.events.len() as u64);
            let words = source.events.iter().flat_map(Event::words);
            words.for_each(|word| out.number(word));
        }
        out.number(self.names.len() as u64);
        for (&(address, length), name) in &self.names {
            out.number(address);
            out.number(length.into());
            out.text(name);
        }
        out.0
    }

    /// `None` for what [`Record::encode`] does not write.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let node = reader.number()?.try_into().ok()?;
        let host = reader.text()?;
        let clocks = [reader.clocks()?, reader.clocks()?];
        let points = [reader.point()?, reader.point()?];
        let (mut numbers, mut sources) = (Vec::new(), Vec::new());
        for _ in 0..reader.number()? {
            numbers.push(reader.number()?.try_into().ok()?);
            let name = Some(reader.text()?).filter(|name| !name.is_empty());
            // The timeline has a list of as many places.
            let place = usize::try_from(reader.number()?).ok().filter(|&place| place < RANKS_MAX as usize)?;
            let since = reader.number()?;
            let (noted, count) = (reader.number()?, reader.number()?);
            let mut events = Vec::new();
            for _ in 0..count {
                let mut words = [0; WORDS];
                for word in &mut words {
                    *word = reader.number()?;
                }
                events.push(Event::of(words)?);
            }
            sources.push(Source { name, place, since, noted, events });
        }
        let mut names = HashMap::new();
        for _ in 0..reader.number()? {
            let key = (reader.number()?, reader.number()?.try_into().ok()?);
            names.insert(key, reader.text()?);
        }
        let record = Self { node, host, clocks, points, numbers, sources, names };
        reader.0.is_empty().then_some(record)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?.try_into().ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn clocks(&mut self) -> Option<Clocks> {
        Some(Clocks { ticks: self.number()?, steady: self.number()?, real: self.number()?, error: self.number()? })
    }

    fn point(&mut self) -> Option<Point> {
        Some(Point { own: self.number()?, first: self.number()?, error: self.number()? })
    }
}

//! Reads a timeline that a job has written.

use pip_ground::caption::Caption;
use serde::Deserialize;
use std::collections::HashMap;

/// What stands between the facts about a node and its events.
const EVENTS: &str = "\"traceEvents\":[";

/// A piece of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Nanoseconds since the first node's start.
    pub begin: f64,
    /// The same.
    pub end: f64,
    /// Which kind of thing it is.
    pub category: String,
    /// The rank for which it was done, if that is another one.
    pub owner: Option<u32>,
}

/// A line of the picture.
#[derive(Debug)]
pub struct Track {
    /// Its name.
    pub name: String,
    /// What is on it, in order.
    pub pieces: Vec<Piece>,
    node: u32,
    number: u64,
}

/// The timelines of a job's nodes.
#[derive(Debug, Default)]
pub struct Timeline {
    /// In the order of nodes and ranks.
    pub tracks: Vec<Track>,
    /// Events that rings had no room for.
    pub lost: u64,
    /// What the job was, as the first file says it.
    pub caption: Caption,
    /// When the first node started, in nanoseconds since 1970.
    start: Option<u64>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "otherData")]
    about: About,
}

#[derive(Deserialize)]
struct About {
    start_ns: String,
    #[serde(default)]
    job: Caption,
    ranks: Vec<RankFacts>,
}

#[derive(Deserialize)]
struct RankFacts {
    lost: u64,
}

#[derive(Deserialize)]
struct Line {
    ph: String,
    pid: u32,
    tid: u64,
    name: String,
    #[serde(default)]
    cat: String,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Arguments,
}

#[derive(Default, Deserialize)]
struct Arguments {
    name: Option<String>,
    owner: Option<u32>,
}

impl Timeline {
    /// Adds those of one file.
    ///
    /// # Errors
    /// It is none.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let none = || "it is no timeline that COHORT_TRACE has written".to_owned();
        let (head, events) = text.split_once(EVENTS).ok_or_else(none)?;
        let head: Head =
            serde_json::from_str(&format!("{head}{EVENTS}]}}")).map_err(|error| format!("{}: {error}", none()))?;
        let start: u64 = head.about.start_ns.parse().map_err(|_| none())?;
        if self.start.is_none() {
            self.caption = head.about.job;
        }
        let first = *self.start.get_or_insert(start);
        // Nodes that started later have their time shifted; the first one given is the measure.
        let shift = start as f64 - first as f64;
        self.lost += head.about.ranks.iter().map(|rank| rank.lost).sum::<u64>();
        let mut places = HashMap::new();
        let lines = events.lines().map(|line| line.trim_end_matches(','));
        for line in lines.filter(|line| line.starts_with('{')) {
            let line: Line = serde_json::from_str(line).map_err(|error| format!("{error}"))?;
            self.add_line(shift, line, &mut places);
        }
        let start = |piece: &Piece| piece.begin;
        for track in &mut self.tracks {
            track.pieces.sort_by(|a, b| start(a).total_cmp(&start(b)));
        }
        self.tracks.sort_by_key(|track| (track.node, track.number));
        Ok(())
    }

    /// `places` are those of the file's tracks, by their numbers, which are unique in a job.
    fn add_line(&mut self, shift: f64, line: Line, places: &mut HashMap<u64, usize>) {
        if line.ph == "M" && line.name == "thread_name" {
            places.insert(line.tid, self.tracks.len());
            self.tracks.push(Track {
                name: line.args.name.unwrap_or_default(),
                pieces: Vec::new(),
                node: line.pid,
                number: line.tid,
            });
        }
        if line.ph != "X" {
            return;
        }
        if let Some(&place) = places.get(&line.tid) {
            let begin = line.ts * 1000.0 + shift;
            self.tracks[place].pieces.push(Piece {
                begin,
                end: begin + line.dur * 1000.0,
                category: line.cat,
                owner: line.args.owner,
            });
        }
    }

    /// When the first piece begins, and the last one ends.
    #[must_use]
    pub fn span(&self) -> (f64, f64) {
        let pieces = || self.tracks.iter().flat_map(|track| &track.pieces);
        let begin = pieces().map(|piece| piece.begin).fold(f64::MAX, f64::min);
        let end = pieces().map(|piece| piece.end).fold(0.0, f64::max);
        match begin < end {
            true => (begin, end),
            false => (0.0, 1.0),
        }
    }
}

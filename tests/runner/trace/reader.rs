//! A strict reader of the trace event format: what a viewer would guess at is an error here.

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// A piece of time.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The name of its track.
    pub track: String,
    /// The rank whose track that is.
    pub rank: u32,
    /// Its name.
    pub name: String,
    /// Its category.
    pub category: String,
    /// When it begins, and how long it takes, in nanoseconds.
    pub begin: u64,
    /// The same.
    pub duration: u64,
    /// The arrow that begins with it.
    pub leaves: Option<u64>,
    arguments: Value,
}

impl Piece {
    /// A number that it has with it.
    pub fn fact(&self, name: &str) -> Option<i64> {
        self.arguments.get(name)?.as_i64()
    }
}

/// What the file says of a rank.
#[derive(Clone, Debug, Deserialize)]
pub struct Rank {
    /// Its number.
    pub rank: u32,
    /// Its events.
    pub events: u64,
    /// Those that are not there.
    pub lost: u64,
}

/// What the file says of a node's clock.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// The node.
    pub node: u32,
    /// Its name.
    pub host: String,
    /// By how many nanoseconds it is ahead of the first node's.
    pub offset_ns: i64,
    /// By how many parts of a thousand million it is faster.
    pub drift_ppb: i64,
    /// The node's times are right to so many nanoseconds.
    pub error_ns: u64,
}

/// A file.
#[derive(Debug)]
pub struct Timeline {
    /// The node that wrote it.
    pub node: u32,
    /// The nodes whose ranks are in it.
    pub clocks: Vec<Clock>,
    /// Nodes that are not in it.
    pub missing: Vec<u32>,
    /// Its ranks.
    pub ranks: Vec<Rank>,
    /// Events that are not there.
    pub lost: u64,
    pieces: Vec<Piece>,
    ends: HashMap<u64, Piece>,
}

impl Timeline {
    /// Pieces of a category.
    pub fn pieces<'a>(&'a self, category: &'a str) -> impl Iterator<Item = &'a Piece> + Clone {
        self.pieces.iter().filter(move |it| it.category == category)
    }

    /// Calls of a function.
    pub fn calls<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Piece> {
        self.pieces("mpi").filter(move |it| it.name == name)
    }

    /// Calls that did not return.
    pub fn unfinished(&self) -> impl Iterator<Item = &Piece> {
        self.pieces("mpi").filter(|it| it.arguments.get("unfinished").is_some())
    }

    /// Where an arrow leads.
    pub fn end_of(&self, arrow: u64) -> Option<&Piece> {
        self.ends.get(&arrow)
    }

    /// Names of the tracks of a rank that have pieces.
    pub fn tracks_of(&self, rank: u32) -> Vec<String> {
        let of = self.pieces.iter().filter(|it| it.rank == rank);
        let mut names: Vec<String> = of.map(|it| it.track.clone()).collect();
        names.dedup();
        names
    }
}

/// Fields that an event may have; any other is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    ph: String,
    pid: u32,
    tid: u64,
    name: String,
    ts: Option<f64>,
    dur: Option<f64>,
    cat: Option<String>,
    bind_id: Option<String>,
    flow_out: Option<bool>,
    flow_in: Option<bool>,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(non_snake_case, reason = "the format's names")]
struct File {
    displayTimeUnit: String,
    otherData: About,
    traceEvents: Vec<Event>,
}

#[derive(Deserialize)]
struct About {
    version: String,
    node: u32,
    nodes: u32,
    start_ns: String,
    clocks: Vec<Clock>,
    missing: Vec<u32>,
    ranks: Vec<Rank>,
}

/// Reads a file.
///
/// # Errors
/// What is wrong with it.
pub fn read(path: &Path) -> Result<Timeline, String> {
    let wrong = |what: String| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let file: File = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    timeline(file).map_err(wrong)
}

fn timeline(file: File) -> Result<Timeline, String> {
    let about = file.otherData;
    let is_known = file.displayTimeUnit == "ns" && about.version.starts_with("Cohort ");
    if !is_known || about.node >= about.nodes || about.start_ns.parse::<u64>().is_err() {
        return Err("the facts about the node are wrong".into());
    }
    let mut names: HashMap<u64, String> = HashMap::new();
    let (mut pieces, mut ends) = (Vec::new(), HashMap::new());
    // Ends of the pieces that the last one of a track lies in.
    let mut around: HashMap<u64, Vec<u64>> = HashMap::new();
    for event in file.traceEvents {
        if !about.clocks.iter().any(|it| event.pid == it.node + 1) {
            return Err(format!("an event of process {}", event.pid));
        }
        if event.ph == "M" {
            let name = event.args.get("name").and_then(Value::as_str);
            match (&*event.name, name) {
                ("process_name", Some(_)) | ("thread_sort_index", None) => {}
                ("thread_name", Some(name)) => {
                    if names.insert(event.tid, name.to_owned()).is_some() {
                        return Err(format!("track {} has two names", event.tid));
                    }
                }
                other => return Err(format!("facts {other:?}")),
            }
            continue;
        }
        let (piece, comes) = piece(&event, &names)?;
        let end = piece.begin + piece.duration;
        let open = around.entry(event.tid).or_default();
        while open.last().is_some_and(|&last| last <= piece.begin) {
            open.pop();
        }
        if open.last().is_some_and(|&last| last < end) {
            return Err(format!("{piece:?} reaches out of what it began in"));
        }
        open.push(end);
        if let Some(arrow) = comes
            && ends.insert(arrow, piece.clone()).is_some()
        {
            return Err(format!("arrow {arrow} ends twice"));
        }
        pieces.push(piece);
    }
    // Between two nodes, times of both may be wrong.
    let error = about.clocks.iter().map(|it| it.error_ns).max();
    let several = about.clocks.len() > 1;
    check_arrows(&pieces, &ends, error.filter(|_| several).unwrap_or(0) * 2)?;
    check_order(&pieces)?;
    Ok(Timeline {
        node: about.node,
        clocks: about.clocks,
        missing: about.missing,
        lost: about.ranks.iter().map(|rank| rank.lost).sum(),
        ranks: about.ranks,
        pieces,
        ends,
    })
}

/// A piece, and the arrow that ends with it.
fn piece(event: &Event, names: &HashMap<u64, String>) -> Result<(Piece, Option<u64>), String> {
    let wrong = |what: &str| format!("{what}: {} of track {}", event.name, event.tid);
    let track = names.get(&event.tid).ok_or_else(|| wrong("no track"))?;
    let rank = u32::try_from(event.tid / 100).ok().and_then(|number| number.checked_sub(1));
    // That of a spawned rank is "rank 1.0".
    let number = track.trim_start_matches("rank ").split(':').next().unwrap_or_default();
    if !number.contains('.') && number.parse() != Ok(rank.unwrap_or(u32::MAX)) {
        return Err(wrong("another rank's name"));
    }
    let (Some(begin), Some(duration), "X") = (event.ts, event.dur, &*event.ph) else {
        return Err(wrong("no times"));
    };
    if begin < 0.0 || duration < 0.0 {
        return Err(wrong("negative times"));
    }
    let ns = |us: f64| (us * 1000.0).round() as u64;
    let arrow = match &event.bind_id {
        Some(id) => {
            let digits = id.strip_prefix("0x").unwrap_or_default();
            Some(u64::from_str_radix(digits, 16).map_err(|_| wrong("an arrow's number"))?)
        }
        None => None,
    };
    let (leaves, comes) = match (event.flow_out, event.flow_in) {
        (Some(true), None) => (arrow, None),
        (None, Some(true)) => (None, arrow),
        (None, None) => (None, None),
        _ => return Err(wrong("an arrow of no direction")),
    };
    if arrow.is_some() != (leaves.is_some() || comes.is_some()) {
        return Err(wrong("an arrow of no direction"));
    }
    let piece = Piece {
        track: track.clone(),
        rank: rank.ok_or_else(|| wrong("no rank"))?,
        name: event.name.clone(),
        category: event.cat.clone().ok_or_else(|| wrong("no category"))?,
        begin: ns(begin),
        duration: ns(duration),
        leaves,
        arguments: event.args.clone(),
    };
    Ok((piece, comes))
}

/// Each arrow has one beginning and one end, which is earlier by less than the clocks' error.
fn check_arrows(pieces: &[Piece], ends: &HashMap<u64, Piece>, error: u64) -> Result<(), String> {
    let mut begun = 0;
    for piece in pieces {
        let Some(arrow) = piece.leaves else {
            continue;
        };
        begun += 1;
        let end = ends.get(&arrow).ok_or(format!("arrow {arrow} does not end"))?;
        if end.begin + error < piece.begin {
            return Err(format!("an arrow goes back in time: {piece:?} to {end:?}"));
        }
    }
    match begun == ends.len() {
        true => Ok(()),
        false => Err(format!("{} arrows end and {begun} begin", ends.len())),
    }
}

/// The pieces of a track are in the order of their times.
fn check_order(pieces: &[Piece]) -> Result<(), String> {
    let is_late = |pair: &&[Piece]| pair[0].track == pair[1].track && pair[0].begin > pair[1].begin;
    match pieces.windows(2).find(is_late) {
        Some(pair) => Err(format!("out of order: {pair:?}")),
        None => Ok(()),
    }
}

//! The timeline of a job (`COHORT_TRACE`): the rings that ranks note events in, and the file that is written of them
//! when the last rank has ended, however that came.
//!
//! The rings are this process's memory, so a rank that is killed takes nothing with it. Times are counted in ticks; the
//! system's clocks are read with them when the job starts and when it ends, so a tick's length is known to a
//! millionth. The launchers of several nodes measure how their ticks differ, and the first one writes what all of
//! them have noted ([`line`]). Where a file for each node is asked for, or a node cannot reach the first one, the
//! files are as well aligned as the hosts' clocks (`CLOCK_REALTIME`), which NTP or PTP holds together.

mod json;
pub mod line;
mod names;
mod record;
mod scale;
mod timeline;

use cohort_base::clock;
use cohort_base::clock::system::{self, ClockId};
use cohort_base::settings::{TRACE, TRACE_EVENTS, TRACE_EVENTS_DEFAULT, trace_events};
use cohort_base::trace::{Ring, Slot};
use cohort_manager::Place;
use line::{Line, Reporter};
use pip_ground::voice::{advise, say};
use pip_ground::{Environment, Refusal, caption::Caption};
use record::{Noted, Record};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::ptr::{self, null_mut};
use timeline::Timeline;

/// A file that a timeline will be written to.
#[derive(Debug)]
pub struct Target {
    /// As the user has named it.
    name: String,
    path: PathBuf,
    /// `None` where the first node writes it.
    file: Option<File>,
    events: u32,
    place: Place,
}

impl Target {
    /// The file that the settings of a job name, if they name one; it is empty then.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn of(common: &Environment, place: Place) -> Result<Option<Self>, Refusal> {
        let value = |name: &str| common.get(OsStr::new(name)).and_then(|it| it.to_str());
        let Some(name) = value(TRACE).filter(|&name| name != "none") else {
            return Ok(None);
        };
        let path = path_of(name, place);
        let is_written = place.index == 0 || name.contains("%n");
        let file = is_written.then(|| create(name, &path)).transpose()?;
        let events = value(TRACE_EVENTS).and_then(trace_events);
        Ok(Some(Self { name: name.to_owned(), path, file, events: events.unwrap_or(TRACE_EVENTS_DEFAULT), place }))
    }

    /// The file that is empty until the job has ended, if this node has one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.is_some().then_some(&*self.path)
    }

    /// Whether the first node writes what all nodes have noted.
    #[must_use]
    pub fn is_common(&self) -> bool {
        self.place.count > 1 && !self.name.contains("%n")
    }

    /// For a job whose ranks have address spaces of their own.
    pub fn advise_of_isolation(&self) {
        advise(format_args!(
            "{TRACE}: {} stays empty, since the ranks do not share an address space",
            self.path.display()
        ));
    }

    /// Makes the rings of ranks with these numbers in the job, and reads the clocks.
    ///
    /// # Errors
    /// Memory is short.
    pub fn begin(self, numbers: &[u32]) -> io::Result<Recorder> {
        let rings = self.rings(numbers.len())?.iter().zip(numbers).enumerate();
        let noted = rings.map(|(place, (ring, &number))| Noted::first(ring, place, number)).collect();
        let next = numbers.iter().max().map_or(0, |last| last + 1);
        Ok(Recorder { target: self, noted, next, begin: Clocks::read() })
    }

    /// The same for ranks that are yet to be spawned, by one that notes nothing.
    #[must_use]
    pub fn begin_for_founder(self) -> Recorder {
        Recorder { target: self, noted: Vec::new(), next: 1, begin: Clocks::read() }
    }

    /// So many empty rings.
    fn rings(&self, ranks: usize) -> io::Result<&'static [Ring]> {
        let count = self.events as usize;
        let slots = map_slots(ranks * count)?;
        let rings: Vec<Ring> = slots.chunks(count).map(Ring::new).collect();
        Ok(rings.leak())
    }
}

fn create(name: &str, path: &Path) -> Result<File, Refusal> {
    File::create(path)
        .map_err(|error| Refusal::new(format!("{TRACE}={name}: {} cannot be written: {error}", path.display())))
}

/// Where the timeline of a node goes: `%n` is its number; nodes behind the first have it at the end otherwise.
fn path_of(name: &str, place: Place) -> PathBuf {
    let node = place.index;
    match (name.contains("%n"), node) {
        (true, _) => name.replace("%n", &node.to_string()).into(),
        (false, 0) => name.into(),
        (false, _) => format!("{name}.{node}").into(),
    }
}

/// So many empty slots. Those that nobody writes take no memory.
fn map_slots(count: usize) -> io::Result<&'static [Slot]> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe { libc::mmap(null_mut(), count * size_of::<Slot>(), protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeros are empty slots, the mapping begins a page, is ours and is never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), count) })
}

/// Several clocks at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clocks {
    ticks: u64,
    /// Nanoseconds that pass at the rate of seconds.
    steady: u64,
    /// Nanoseconds since 1970...
    real: u64,
    /// ... to so many of them: how long it took to read all clocks.
    error: u64,
}

impl Clocks {
    /// Of some tries the shortest.
    fn read() -> Self {
        let tried = (0..CLOCK_TRIES).map(|_| Self::try_read());
        let best = tried.min_by_key(|clocks| clocks.error);
        best.unwrap_or_else(Self::try_read)
    }

    fn try_read() -> Self {
        let ns = |clock| {
            let time = system::read(clock);
            time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
        };
        let begun = ns(ClockId::Monotonic);
        let (ticks, real) = (clock::ticks(), ns(ClockId::Realtime));
        let steady = ns(ClockId::Monotonic);
        Self { ticks, steady, real, error: steady - begun }
    }
}

/// Tries to read all clocks at one time.
const CLOCK_TRIES: u32 = 8;

/// The rings of a node's ranks while a job runs.
#[derive(Debug)]
pub struct Recorder {
    target: Target,
    /// Those of the ranks that the job began with, in their order, and those of spawned ones behind them.
    noted: Vec<Noted>,
    /// The number of the next one that is spawned: they are numbered on.
    next: u32,
    begin: Clocks,
}

impl Recorder {
    /// For [`cohort_base::boot::RankBoot::trace`] of the ranks that the job begins with.
    #[must_use]
    pub fn rings(&self) -> Vec<*const Ring> {
        self.noted.iter().map(|it| ptr::from_ref(it.ring)).collect()
    }

    /// The same of a spawned world and these ranks of it, from this place on the node on, of which another world's may
    /// have been. `number` is that of the first one in a job of several nodes, where none is used again; where it is
    /// used again, all that are spawned are numbered on.
    ///
    /// # Errors
    /// Memory is short.
    pub fn add(
        &mut self,
        first: usize,
        (world, ranks): (u32, &[u32]),
        number: Option<u32>,
    ) -> io::Result<Vec<*const Ring>> {
        let rings = self.target.rings(ranks.len())?;
        let since = clock::ticks();
        let numbered = rings.iter().zip(number.unwrap_or(self.next)..);
        for ((ring, number), (place, rank)) in numbered.zip((first..).zip(ranks)) {
            self.next = number + 1;
            self.noted.push(Noted { ring, number, name: Some(format!("{world}.{rank}")), place, since });
        }
        Ok(rings.iter().map(ptr::from_ref).collect())
    }

    /// Writes the file, or sends to the first node what has been noted; `hosts` says the nodes' names. No rank runs any
    /// more. `has_failed`: the process manager will hear of a failure. `caption`: what the job was. Whether the
    /// timeline is lost, or a part of it for want of room, which is said.
    pub fn write(
        self,
        hosts: impl Fn(u32) -> String,
        line: Option<Line>,
        (has_failed, caption): (bool, &Caption),
    ) -> bool {
        let place = self.target.place;
        let mut own = Record::of(&self.noted, [self.begin, Clocks::read()]);
        (own.node, own.host) = (place.index, hosts(place.index));
        match line {
            Some(Line::Other(mut reporter)) => match report(&mut own, &mut reporter) {
                Ok(()) => {
                    if has_failed {
                        reporter.await_file();
                    }
                    false
                }
                Err(error) => {
                    say(format_args!(
                        "{TRACE}: node {} writes a file of its own, as it does not reach node 0: {error}",
                        place.index
                    ));
                    self.target.write(vec![own], &[], (&hosts, caption))
                }
            },
            Some(Line::First(hub)) => {
                let mut all = vec![own];
                all.extend(hub.collect().iter().filter_map(|it| Record::decode(it)));
                all[1..].sort_by_key(|record| record.node);
                let is_there = |node: &u32| all.iter().any(|record| record.node == *node);
                let missing: Vec<u32> = (0..place.count).filter(|node| !is_there(node)).collect();
                self.target.write(all, &missing, (&hosts, caption))
            }
            None => self.target.write(vec![own], &[], (&hosts, caption)),
        }
    }
}

/// Sends a node's timeline to the first one.
fn report(own: &mut Record, reporter: &mut Reporter) -> io::Result<()> {
    let alone = own.points;
    own.points = reporter.points()?;
    reporter.send(&own.encode()).inspect_err(|_| own.points = alone)
}

impl Target {
    /// Whether the file is lost or not complete, which is said.
    fn write(
        self,
        records: Vec<Record>,
        missing: &[u32],
        (hosts, caption): (impl Fn(u32) -> String, &Caption),
    ) -> bool {
        let Self { name, path, file, events, place } = self;
        let file = match file.map_or_else(|| create(&name, &path), Ok) {
            Ok(file) => file,
            Err(refusal) => {
                say(format_args!("{refusal}"));
                return true;
            }
        };
        let timeline = Timeline::of(records);
        let about = json::About { node: place.index, nodes: place.count, host: &hosts(place.index), missing, caption };
        tell_of_losses(&timeline, events);
        for &node in missing {
            say(format_args!("{TRACE}: node {node} ({}) is not in the timeline, as it has sent nothing", hosts(node)));
        }
        let written = json::write(BufWriter::new(file), &timeline, &about);
        if let Err(error) = &written {
            say(format_args!("{TRACE}: {} is not complete: {error}", path.display()));
        }
        written.is_err()
    }
}

/// Says whose oldest events are not in the timeline.
fn tell_of_losses(timeline: &Timeline, kept: u32) {
    let mut short = timeline.ranks.iter().filter(|rank| rank.lost > 0);
    let Some(first) = short.next() else {
        return;
    };
    let lost: u64 = timeline.ranks.iter().map(|rank| rank.lost).sum();
    let others = match short.count() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    advise(format_args!(
        "{TRACE}: the oldest {lost} events of rank {}{others} are not in the timeline; {TRACE_EVENTS}={kept} says how \
         many are kept",
        first.name
    ));
}

#[cfg(test)]
mod tests;

//! The timeline of a job (`COHORT_TRACE`): the rings that ranks note events in, and the file that is written of them
//! when the last rank has ended, however that came.
//!
//! The rings are this process's memory, so a rank that is killed takes nothing with it. Times are counted in ticks; the
//! system's clocks are read with them when the job starts and when it ends, so a tick's length is known to a
//! millionth. Nodes on one host so have one clock. On several hosts the files are as well aligned as the hosts'
//! clocks (`CLOCK_REALTIME`), which NTP or PTP holds together.

mod json;
mod timeline;

use super::voice::{advise, say};
use super::{Refusal, environment::Environment};
use cohort_base::clock;
use cohort_base::clock::system::{self, ClockId};
use cohort_base::settings::{TRACE, TRACE_EVENTS, TRACE_EVENTS_DEFAULT, trace_events};
use cohort_base::trace::{Ring, Slot};
use cohort_manager::Place;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::ptr::null_mut;
use timeline::{Scale, Timeline};

/// A file that a timeline will be written to.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    file: File,
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
        let file = File::create(&path).map_err(|error| {
            Refusal::new(format!(
                "{TRACE}={name}: {} cannot be written: {error}",
                path.display()
            ))
        })?;
        let events = value(TRACE_EVENTS).and_then(trace_events);
        Ok(Some(Self {
            path,
            file,
            events: events.unwrap_or(TRACE_EVENTS_DEFAULT),
            place,
        }))
    }

    /// For a job whose ranks have address spaces of their own.
    pub fn advise_of_isolation(&self) {
        advise(format_args!(
            "{TRACE}: {} stays empty, since the ranks do not share an address space",
            self.path.display()
        ));
    }

    /// Makes the rings of so many ranks, and reads the clocks.
    ///
    /// # Errors
    /// Memory is short.
    pub fn begin(self, ranks: usize) -> io::Result<Recorder> {
        let count = self.events as usize;
        let slots = map_slots(ranks * count)?;
        let rings: Vec<Ring> = slots.chunks(count).map(Ring::new).collect();
        Ok(Recorder {
            target: self,
            rings: rings.leak(),
            begin: Clocks::read(),
        })
    }
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
    let start = unsafe {
        libc::mmap(
            null_mut(),
            count * size_of::<Slot>(),
            protection,
            flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeros are empty slots, the mapping begins a page, is ours and is never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), count) })
}

/// Several clocks at one time.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    ticks: u64,
    /// Nanoseconds that pass at the rate of seconds.
    steady: u64,
    /// Nanoseconds since 1970.
    real: u64,
}

impl Clocks {
    fn read() -> Self {
        let ns = |clock| {
            let time = system::read(clock);
            time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
        };
        Self {
            ticks: clock::ticks(),
            steady: ns(ClockId::Monotonic),
            real: ns(ClockId::Realtime),
        }
    }
}

/// The rings of a node's ranks while a job runs.
#[derive(Debug)]
pub struct Recorder {
    target: Target,
    rings: &'static [Ring],
    begin: Clocks,
}

impl Recorder {
    /// For [`cohort_base::boot::NodeBoot::trace`].
    #[must_use]
    pub fn rings(&self) -> *const Ring {
        self.rings.as_ptr()
    }

    /// Writes the file; `numbers` are the ranks' in the job. No rank runs any more.
    pub fn write(self, numbers: &[u32], host: &str) {
        let end = Clocks::read();
        let scale = Scale::new(
            (self.begin.ticks, end.ticks),
            end.steady - self.begin.steady,
        );
        let timeline = Timeline::of(self.rings, numbers, scale);
        let about = json::About {
            node: self.target.place.index,
            nodes: self.target.place.count,
            host,
            start: self.begin.real,
        };
        let Target {
            path, file, events, ..
        } = self.target;
        tell_of_losses(&timeline, events);
        if let Err(error) = json::write(BufWriter::new(file), &timeline, &about) {
            say(format_args!(
                "{TRACE}: {} is not complete: {error}",
                path.display()
            ));
        }
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
        first.number
    ));
}

#[cfg(test)]
mod tests;

//! What `--top` shows: the differences of two samples, sorted and filtered, as lines of a table.

use super::client::LauncherConnection;
use super::sample::{NodeSample, RankRow, Stage};
use super::wire::{Kind, Record};
use super::{client, list};
use crate::ask::{Sort, Wanted};
use pip_ground::{Refusal, print};
use std::fmt::Write as _;
use std::time::Instant;

/// Victims that a row names.
const VICTIMS_SHOWN: usize = 3;

/// A rank in an interval. Shares are of its time, rates per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Number in the job.
    pub rank: u64,
    /// Its node.
    pub node: u64,
    /// Its process there.
    pub pid: u64,
    /// What it does.
    pub state: String,
    /// Share of time in MPI.
    pub mpi: f64,
    /// Share of a CPU.
    pub cpu: f64,
    /// Messages, if they are counted.
    pub messages: Option<f64>,
    /// Their bytes.
    pub bytes: Option<f64>,
    /// What it moved for others.
    pub steals: f64,
    /// The bytes of that.
    pub stolen_bytes: f64,
    /// Times that it went to sleep.
    pub parks: f64,
    /// Times that it woke another rank.
    pub wakes: f64,
    /// Whom it helped, and how often in the interval, most often first.
    pub helped: Vec<(u64, u64)>,
    /// KiB.
    pub memory_kib: u64,
}

impl Row {
    /// The difference of two samples of a rank, `seconds` and `looks` apart.
    fn between(before: &RankRow, after: &RankRow, seconds: f64, looks: u64) -> Self {
        let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
        let seen = |before: u64, after: u64| match looks {
            0 => 0.0,
            looks => after.saturating_sub(before) as f64 / looks as f64,
        };
        let in_mpi = seen(before.in_mpi, after.in_mpi);
        let asleep = seen(before.asleep, after.asleep);
        let counted = after.calls > 0;
        let mpi = match counted {
            true => rate(before.mpi_us, after.mpi_us) / 1e6,
            false => in_mpi,
        };
        let mut helped: Vec<(u64, u64)> = after
            .helped
            .iter()
            .map(|&(rank, times)| {
                let mut earlier = before.helped.iter();
                let earlier = earlier.find(|(other, _)| *other == rank);
                (rank, times.saturating_sub(earlier.map_or(0, |it| it.1)))
            })
            .filter(|&(_, times)| times > 0)
            .collect();
        helped.sort_by_key(|&(rank, times)| (std::cmp::Reverse(times), rank));
        Self {
            rank: after.rank,
            node: 0,
            pid: after.pid,
            state: state(after, in_mpi, asleep),
            mpi: mpi.min(1.0),
            cpu: rate(before.cpu_ms, after.cpu_ms) / 1e3,
            messages: counted.then(|| rate(before.messages, after.messages)),
            bytes: counted.then(|| rate(before.bytes, after.bytes)),
            steals: rate(before.hits, after.hits),
            stolen_bytes: rate(before.stolen_bytes, after.stolen_bytes),
            parks: rate(before.parks, after.parks),
            wakes: rate(before.wakes, after.wakes),
            helped,
            memory_kib: after.memory_kib,
        }
    }

    /// The line of the table.
    #[must_use]
    pub fn line(&self) -> String {
        let optional = |value: Option<f64>| value.map_or("-".to_owned(), amount);
        let mut helped: Vec<String> =
            self.helped.iter().take(VICTIMS_SHOWN).map(|(rank, times)| format!("{rank}:{times}")).collect();
        if self.helped.len() > VICTIMS_SHOWN {
            helped.push("...".into());
        }
        format!(
            "{:>5} {:>4} {:>8} {:<22.22} {:>5} {:>5} {:>7} {:>7} {:>8} {:>7}  {}",
            self.rank,
            self.node,
            self.pid,
            list::visible(&self.state),
            share(self.mpi),
            share(self.cpu),
            optional(self.messages),
            optional(self.bytes),
            amount(self.steals),
            amount(self.memory_kib as f64 * 1024.0),
            helped.join(" ")
        )
        .trim_end()
        .to_owned()
    }

    /// All that is known of the rank, a line for each.
    #[must_use]
    pub fn details(&self) -> Vec<String> {
        let rate = |value: Option<f64>| value.map_or("not counted".to_owned(), amount);
        let helped: Vec<String> =
            self.helped.iter().map(|(rank, times)| format!("rank {rank}: {times} times")).collect();
        let pairs = [
            ("rank", self.rank.to_string()),
            ("node", self.node.to_string()),
            ("process", self.pid.to_string()),
            ("state", list::visible(&self.state)),
            ("time in MPI", share(self.mpi) + " %"),
            ("CPU", share(self.cpu) + " %"),
            ("messages/s", rate(self.messages)),
            ("bytes/s", rate(self.bytes)),
            ("steals/s", amount(self.steals)),
            ("bytes/s moved for others", amount(self.stolen_bytes)),
            ("sleeps/s", amount(self.parks)),
            ("wake-ups/s of others", amount(self.wakes)),
            ("memory", amount(self.memory_kib as f64 * 1024.0)),
            ("has helped", helped.join(", ")),
        ];
        let line = |(name, value): (&str, String)| format!("{name:<26}{value}").trim_end().into();
        pairs.into_iter().map(line).collect()
    }
}

/// What a rank does, from its last sample and what looks have seen since the one before.
fn state(now: &RankRow, in_mpi: f64, asleep: f64) -> String {
    let text = match (now.stage, now.state.as_str()) {
        (Stage::Ended, _) => "ended",
        (_, "T" | "t") => "stopped",
        (Stage::Fresh, _) => "before MPI_Init",
        (Stage::Finalized, _) => "after MPI_Finalize",
        _ if !now.call.is_empty() && asleep > 0.5 => return format!("{}, asleep", now.call),
        _ if !now.call.is_empty() => return now.call.clone(),
        _ if asleep > 0.5 => "asleep in MPI",
        _ if in_mpi > 0.5 => "in MPI",
        (_, "R") => "computes",
        (_, "D") => "waits for a device",
        _ => "asleep",
    };
    text.into()
}

/// A share in percent.
fn share(value: f64) -> String {
    format!("{:.1}", value * 100.0)
}

/// A number with a letter for its thousands.
#[must_use]
pub fn amount(value: f64) -> String {
    let letters = ["", "K", "M", "G", "T"];
    let (mut value, mut letter) = (value, 0);
    while value >= 999.5 && letter + 1 < letters.len() {
        value /= 1000.0;
        letter += 1;
    }
    match (letter, value) {
        (0, value) if value.fract() < 0.05 || value >= 99.5 => format!("{value:.0}"),
        (letter, value) if value < 99.5 => format!("{value:.1}{}", letters[letter]),
        (letter, value) => format!("{value:.0}{}", letters[letter]),
    }
}

/// The head of the table.
#[must_use]
pub fn head() -> String {
    format!(
        "{:>5} {:>4} {:>8} {:<22} {:>5} {:>5} {:>7} {:>7} {:>8} {:>7}  {}",
        "RANK", "NODE", "PID", "STATE", "%MPI", "%CPU", "MSG/S", "B/S", "STEALS/S", "MEMORY", "HELPED"
    )
}

/// A job in an interval.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Seconds between the samples.
    pub seconds: f64,
    /// Memory of the nodes' address spaces.
    pub memory_kib: u64,
    /// All ranks, by their numbers.
    pub rows: Vec<Row>,
    /// Nodes that have not answered, in words.
    pub silent: Vec<String>,
}

impl View {
    /// What happened between two samples of each node.
    #[must_use]
    pub fn between(before: &[NodeSample], after: &[NodeSample]) -> Self {
        let mut view = Self::default();
        for now in after {
            if !now.silent.is_empty() {
                let host = list::visible(&now.silent);
                view.silent.push(format!("node {} ({host})", now.node));
            }
            let earlier = before.iter().find(|earlier| earlier.node == now.node);
            let Some(earlier) = earlier.filter(|earlier| earlier.time_us < now.time_us) else {
                continue;
            };
            let seconds = (now.time_us - earlier.time_us) as f64 / 1e6;
            let looks = now.looks.saturating_sub(earlier.looks);
            view.seconds = view.seconds.max(seconds);
            view.memory_kib += now.memory_kib;
            for (before, after) in earlier.ranks.iter().zip(&now.ranks) {
                let row = Row::between(before, after, seconds, looks);
                view.rows.push(Row { node: now.node, ..row });
            }
        }
        view.rows.sort_by_key(|row| row.rank);
        view
    }

    /// The rows that have `filter` in their lines, in this order.
    #[must_use]
    pub fn rows(&self, sort: Sort, filter: &str) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.retain(|row| filter.is_empty() || row.line().contains(filter));
        rows.sort_by(|a, b| key(sort, b).total_cmp(&key(sort, a)));
        rows
    }

    /// A line about all of them.
    #[must_use]
    pub fn summary(&self) -> String {
        let count = self.rows.len().max(1) as f64;
        let sum = |part: fn(&Row) -> f64| self.rows.iter().map(part).sum::<f64>();
        let mpi = sum(|row| row.mpi) / count;
        let own = sum(|row| row.memory_kib as f64);
        let memory = if self.memory_kib > 0 { self.memory_kib as f64 } else { own };
        let silent = match self.silent.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} does not answer"),
            [one, others @ ..] => format!("; {one} and {} more do not answer", others.len()),
        };
        format!(
            "{} ranks, {} % of their time in MPI, {:.1} CPUs, {} steals/s, memory {}{silent}",
            self.rows.len(),
            share(mpi),
            sum(|row| row.cpu),
            amount(sum(|row| row.steals)),
            amount(memory * 1024.0)
        )
    }

    /// The whole as text.
    #[must_use]
    pub fn table(&self, sort: Sort) -> String {
        let mut text = format!("{}\n{}\n", self.summary(), head());
        for row in self.rows(sort, "") {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", row.line());
        }
        text
    }
}

/// A job that is watched.
#[derive(Debug)]
pub struct Watched {
    job: LauncherConnection,
    /// What the job says of itself.
    pub record: Record,
    last: Vec<NodeSample>,
}

impl Watched {
    /// Begins to watch the job with this process.
    ///
    /// # Errors
    /// There is none, or it does not answer.
    pub fn begin(pid: Option<i32>) -> Result<Self, Refusal> {
        let (job, record) = client::find(pid)?;
        let mut this = Self { job, record, last: Vec::new() };
        if this.ask()?.is_none() {
            return Err(Refusal::new("the job has ended"));
        }
        Ok(this)
    }

    /// What happened since the last call, or since the beginning; `None` when the job has ended.
    ///
    /// # Errors
    /// It does not answer.
    pub fn ask(&mut self) -> Result<Option<View>, Refusal> {
        let asked = self.job.ask(Kind::Sample);
        let text = match asked.and_then(|()| self.job.answer(Kind::Sample, Instant::now() + client::PATIENCE)) {
            Ok(text) => text,
            Err(error) if client::is_end(&error) => return Ok(None),
            Err(_) => return Err(client::silent(self.job.pid)),
        };
        let now: Vec<NodeSample> = text.split("\n\n\n").map(NodeSample::decode).collect();
        let view = View::between(&self.last, &now);
        self.last = now;
        Ok(Some(view))
    }

    /// A line that names the job.
    #[must_use]
    pub fn title(&self) -> String {
        format!("job {}: {}", self.record.get("pid"), list::visible(self.record.get("command")))
    }
}

/// Writes a table per interval, until the job or the reader ends.
///
/// # Errors
/// There is no such job, or it does not answer.
pub fn write_plain(wanted: &Wanted) -> Result<(), Refusal> {
    let mut watched = Watched::begin(wanted.pid)?;
    let mut left = wanted.times.unwrap_or(usize::MAX);
    while left > 0 {
        std::thread::sleep(wanted.delay);
        let Some(view) = watched.ask()? else {
            return Ok(());
        };
        let text = format!("{}\n{}\n", watched.title(), view.table(wanted.sort));
        if !print(&text)? {
            return Ok(());
        }
        left -= 1;
    }
    Ok(())
}

/// What a row is sorted by, the greatest first.
fn key(sort: Sort, row: &Row) -> f64 {
    let unknown = |value: Option<f64>| value.unwrap_or(-1.0);
    match sort {
        Sort::Rank => -(row.rank as f64),
        Sort::Mpi => row.mpi,
        Sort::Cpu => row.cpu,
        Sort::Messages => unknown(row.messages),
        Sort::Bytes => unknown(row.bytes),
        Sort::Steals => row.steals,
        Sort::Memory => row.memory_kib as f64,
    }
}

#[cfg(test)]
mod tests;

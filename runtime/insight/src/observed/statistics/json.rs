//! The statistics of a node's ranks as JSON, which `docs/insight.md` describes.

use crate::calls;
use crate::subject::Subject;
use crate::subject::files::Moved;
use crate::subject::statistics::{Statistics, Sums, Tally, from_outside};
use cohort_base::clock::{ticks, ticks_per_us};
use cohort_engine::{Node, Rank};
use core::fmt::{self, Write};

/// A text in quotation marks.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(f, "\\{letter}")?,
                ..' ' => write!(f, "\\u{:04x}", u32::from(letter))?,
                _ => f.write_char(letter)?,
            }
        }
        f.write_char('"')
    }
}

/// Ticks as microseconds.
fn us(ticks: u64) -> u64 {
    ticks / ticks_per_us()
}

/// Writes the statistics of all ranks of a node that have some. Their tasks have ended, or their numbers are of about
/// now.
///
/// # Errors
/// Those of `out`.
pub fn write(node: &'static Node, out: &mut dyn Write) -> fmt::Result {
    let boot = node.boot();
    write!(
        out,
        "{{\"schema\":\"cohort-stats-1\",\"node\":{},\"nodes\":{},\"cpus\":{},\"policy\":{},\
         \"world_ranks\":{},\"crowded\":{},\"ranks\":[",
        boot.node,
        boot.nodes.max(1),
        boot.cpus,
        Quoted(node.settings().progress.name()),
        node.world_size(),
        node.is_crowded(),
    )?;
    let mut separator = "";
    let (first, now) = (first(node), ticks());
    for (rank, subject) in subjects(node) {
        if let Some(statistics) = subject.statistics.get() {
            statistics.settle(now);
            writeln!(out, "{separator}")?;
            write_rank(rank, (statistics, first), out)?;
            separator = ",";
        }
    }
    out.write_str("\n]}\n")
}

/// The ranks of a node that have called MPI.
fn subjects(node: &'static Node) -> impl Iterator<Item = (&'static Rank, &'static Subject)> {
    let ranks = (0..node.size()).map(|id| node.rank(id));
    ranks.filter(|rank| !rank.local().is_null()).map(|rank| {
        // SAFETY: what `attach` has stored, which stays.
        (rank, unsafe { Subject::of(rank.local()) })
    })
}

/// When the first of a node's ranks began, in ticks.
fn first(node: &'static Node) -> u64 {
    let begun = subjects(node).filter_map(|(_, subject)| Some(subject.statistics.get()?.begun.get()));
    begun.filter(|&begun| begun > 0).min().unwrap_or(0)
}

fn write_rank(rank: &'static Rank, (statistics, first): (&Statistics, u64), out: &mut dyn Write) -> fmt::Result {
    let counts = rank.steal_counts();
    let begun = statistics.begun.get();
    let cpu = match statistics.cpu_ended.get() {
        0 => 0,
        ended => (ended - statistics.cpu_begun.get()) / 1000,
    };
    write!(
        out,
        "{{\"rank\":{},\"wall_us\":{},\"mpi_us\":{},\"waiting_us\":{},\"cpu_us\":{cpu},\"slept_us\":{},\
         \"helping_us\":{},\"messages\":{},\"bytes\":{},\"sleeps\":{},\"wakes\":{},\"finalized\":{}",
        rank.world_rank(),
        us(statistics.ended.get().saturating_sub(begun)),
        us(statistics.mpi.get()),
        us(statistics.waiting.get()),
        us(counts.slept),
        us(counts.helping),
        statistics.messages.get(),
        statistics.bytes.get(),
        counts.parks,
        counts.wakes,
        statistics.cpu_ended.get() > 0,
    )?;
    write!(
        out,
        ",\"policy\":{{\"own_turns\":{},\"own_hits\":{},\"offloaded\":{},\"met_by_others\":{},\"found_late\":{},\
         \"came_in_wait\":{},\"turned_on\":{},\"turned_off\":{},\"helper_chosen\":{}}}",
        counts.own_turns,
        counts.own_hits,
        counts.offloaded,
        counts.helped,
        counts.late,
        counts.in_time,
        counts.turned_on,
        counts.turned_off,
        counts.helper_chosen,
    )?;
    let (net, shm) = (&counts.net, &counts.shm);
    write!(
        out,
        ",\"steals\":{{\"attempts\":{},\"hits\":{},\"bytes\":{},\"of\":[",
        net.attempts + shm.attempts,
        net.hits + shm.hits,
        net.bytes + shm.bytes
    )?;
    let mut list = List::new(out);
    for victim in 0..rank.node().size() {
        let hits = rank.counters().hits_on(victim);
        if hits > 0 {
            let victim = rank.node().rank(victim).world_rank();
            list.entry(format_args!("[{victim},{hits}]"))?;
        }
    }
    out.write_str("]}")?;
    write_lists(statistics, out)?;
    write_course(statistics, first, out)?;
    write_cut(statistics, out)?;
    out.write_str("}")
}

/// When the rank was in MPI.
fn write_course(statistics: &Statistics, first: u64, out: &mut dyn Write) -> fmt::Result {
    let begun = us(statistics.begun.get().saturating_sub(first));
    write!(out, ",\"course\":{{\"begun_us\":{begun},")?;
    let Some(course) = from_outside(&statistics.course) else {
        return out.write_str("\"bin_us\":1,\"bins\":[]}");
    };
    write!(out, "\"bin_us\":{},\"bins\":[", us(course.width))?;
    let mut list = List::new(out);
    for bin in 0..course.used() {
        let (mpi, waiting) = (us(course.mpi[bin]), us(course.waiting[bin]));
        list.entry(format_args!("[{mpi},{waiting}]"))?;
    }
    out.write_str("]}")
}

/// The names of parts that the rank was killed in, so that they are empty here.
fn write_cut(statistics: &Statistics, out: &mut dyn Write) -> fmt::Result {
    let parts = [
        ("course", from_outside(&statistics.course).is_none()),
        ("communicators", from_outside(&statistics.comms).is_none()),
        ("files", from_outside(&statistics.files).is_none()),
        ("sections", from_outside(&statistics.sections).is_none()),
    ];
    out.write_str(",\"cut\":[")?;
    let mut list = List::new(out);
    for (name, _) in parts.into_iter().filter(|&(_, is_cut)| is_cut) {
        list.entry(format_args!("{}", Quoted(name)))?;
    }
    out.write_str("]")
}

/// The parts of a rank that are lists.
fn write_lists(statistics: &Statistics, out: &mut dyn Write) -> fmt::Result {
    out.write_str(",\"peers\":[")?;
    let mut list = List::new(out);
    for (peer, tally) in statistics.peers.iter().enumerate() {
        let (messages, bytes, waited) = (tally.messages.get(), tally.bytes.get(), tally.waited.get());
        if messages + waited > 0 {
            list.entry(format_args!("[{peer},{messages},{bytes},{}]", us(waited)))?;
        }
    }
    out.write_str("],\"calls\":[")?;
    let mut list = List::new(out);
    for (call, tally) in calls::all().iter().zip(&statistics.calls) {
        if tally.count.get() > 0 {
            list.entry(format_args!("[{},{}]", Quoted(call.name), Tallied(tally)))?;
        }
    }
    out.write_str("],\"communicators\":[")?;
    let mut list = List::new(out);
    for comm in from_outside(&statistics.comms).iter().flat_map(|comms| comms.iter()) {
        let tally = Tallied(&comm.tally);
        list.entry(format_args!("[{},{},{tally}]", Quoted(&comm.name), comm.size))?;
    }
    out.write_str("],\"files\":[")?;
    let mut list = List::new(out);
    for file in from_outside(&statistics.files).iter().flat_map(|files| files.iter()) {
        list.entry(format_args!(
            "[{},{},{},{},{},{},{}]",
            Quoted(&file.name),
            file.members,
            file.opens.get(),
            file.count.get(),
            us(file.time.get()),
            MovedOf(&file.read),
            MovedOf(&file.written),
        ))?;
    }
    out.write_str("],\"sections\":[")?;
    let mut list = List::new(out);
    for section in from_outside(&statistics.sections).iter().flat_map(|sections| sections.iter()) {
        let mut sums = section.sums;
        if section.open > 0 {
            // Of a program that has not ended it: until now.
            sums.add(&section.at_begin, &statistics.sums(statistics.ended.get()));
        }
        let Sums { time, mpi, waiting, messages, bytes } = sums;
        list.entry(format_args!(
            "[{},{},{},{},{},{messages},{bytes}]",
            Quoted(&section.label),
            section.count + u64::from(section.open > 0),
            us(time),
            us(mpi),
            us(waiting),
        ))?;
    }
    out.write_str("]")
}

/// Count, time, waiting and bytes.
struct Tallied<'a>(&'a Tally);

impl fmt::Display for Tallied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { count, time, waiting, bytes } = self.0;
        let (time, waiting) = (us(time.get()), us(waiting.get()));
        write!(f, "{},{time},{waiting},{}", count.get(), bytes.get())
    }
}

/// Count, time, bytes, and how many moved so much.
struct MovedOf<'a>(&'a Moved);

impl fmt::Display for MovedOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moved { count, time, bytes, sizes } = self.0;
        write!(f, "[{},{},{}", count.get(), us(time.get()), bytes.get())?;
        for (nth, size) in sizes.iter().enumerate() {
            write!(f, "{}{}", if nth == 0 { ",[" } else { "," }, size.get())?;
        }
        f.write_str("]]")
    }
}

/// Entries with commas between.
struct List<'a> {
    out: &'a mut dyn Write,
    separator: &'static str,
}

impl<'a> List<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self { out, separator: "" }
    }

    fn entry(&mut self, entry: fmt::Arguments<'_>) -> fmt::Result {
        self.out.write_str(self.separator)?;
        self.separator = ",";
        self.out.write_fmt(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn text_is_quoted() {
        assert_eq!(Quoted("a \"b\" \\ \n é").to_string(), "\"a \\\"b\\\" \\\\ \\u000a é\"");
    }
}

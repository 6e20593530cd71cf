//! The report as text: a screen, however many ranks there are.

use super::advice::advice;
use super::data::{File, Moved, NodeStatistics, Rank, SIZES, Tally};
use super::units::{bytes, counted, share, time};
use std::fmt::Write;

/// Ranks up to which each has a line.
const RANKS_SHOWN: usize = 16;

/// Of more ranks: those with the most and the least.
const EXTREMES: usize = 4;

/// Functions and communicators with the most time.
const TOP: usize = 10;

/// The whole report.
pub fn report(job: &NodeStatistics) -> String {
    let node = match job.nodes {
        0 | 1 => String::new(),
        nodes => format!("node {} of {nodes}: ", job.node),
    };
    let mut out = format!(
        "cohort: {node}{} on {} CPUs, progress {}, {}\n",
        counted(job.ranks.len() as u64, "rank"),
        job.cpus,
        job.policy,
        time(job.wall()),
    );
    if job.ranks.is_empty() {
        return out + "  no rank called MPI\n";
    }
    ranks(&mut out, job);
    helpers(&mut out, job);
    processors(&mut out, job);
    calls(&mut out, job);
    communicators(&mut out, job);
    files(&mut out, job);
    sections(&mut out, job);
    decisions(&mut out, job);
    missing(&mut out, job);
    for sentence in advice(job) {
        let _ = writeln!(out, "  -> {sentence}");
    }
    out
}

/// What is not there because ranks were killed while they counted.
fn missing(out: &mut String, job: &NodeStatistics) {
    for rank in job.ranks.iter().filter(|rank| !rank.cut.is_empty()) {
        let parts = rank.cut.join(", ");
        let _ = writeln!(out, "  rank {} was killed while it counted; left out of its part: {parts}", rank.rank);
    }
}

/// Where each rank's time went, and for whom it waited.
fn ranks(out: &mut String, job: &NodeStatistics) {
    let heads = ["time", "in MPI", "", "computing", "waiting", "sent", ""];
    let _ = writeln!(
        out,
        "{:>8} {:>9} {:>9} {:>5} {:>9} {:>9} {:>16} {:>9}  waited most for",
        "rank", heads[0], heads[1], heads[2], heads[3], heads[4], heads[5], heads[6]
    );
    if job.ranks.len() <= RANKS_SHOWN {
        for rank in &job.ranks {
            line(out, &rank.rank.to_string(), rank);
        }
    } else {
        let mut sorted: Vec<&Rank> = job.ranks.iter().collect();
        for (name, place) in [("min", 0), ("median", sorted.len() / 2), ("max", sorted.len() - 1)] {
            summary(out, name, place, job);
        }
        sorted.sort_by_key(|rank| rank.computing());
        let _ = writeln!(out, "  those that computed least and most:");
        let last = sorted.len() - EXTREMES;
        for rank in sorted[..EXTREMES].iter().chain(&sorted[last..]) {
            line(out, &rank.rank.to_string(), rank);
        }
    }
    imbalance(out, job);
}

fn line(out: &mut String, name: &str, rank: &Rank) {
    let whom = rank.most_awaited().map_or(String::new(), |peer| format!("rank {} ({})", peer.rank, time(peer.waited)));
    let _ = writeln!(
        out,
        "{name:>8} {:>9} {:>9} {:>5} {:>9} {:>9} {:>16} {:>9}  {whom}",
        time(rank.wall),
        time(rank.mpi),
        share(rank.mpi, rank.wall),
        time(rank.computing()),
        time(rank.waiting),
        counted(rank.messages, "message"),
        bytes(rank.bytes),
    );
}

/// The value at a place of each column's order.
fn summary(out: &mut String, name: &str, place: usize, job: &NodeStatistics) {
    let at = |of: fn(&Rank) -> u64| {
        let mut values: Vec<u64> = job.ranks.iter().map(of).collect();
        values.sort_unstable();
        values[place]
    };
    let (wall, mpi) = (at(|rank| rank.wall), at(|rank| rank.mpi));
    let _ = writeln!(
        out,
        "{name:>8} {:>9} {:>9} {:>5} {:>9} {:>9} {:>16} {:>9}",
        time(wall),
        time(mpi),
        share(mpi, wall),
        time(at(Rank::computing)),
        time(at(|rank| rank.waiting)),
        counted(at(|rank| rank.messages), "message"),
        bytes(at(|rank| rank.bytes)),
    );
}

/// How unequal the ranks' own work is, and for whom all waited.
fn imbalance(out: &mut String, job: &NodeStatistics) {
    if job.ranks.len() < 2 {
        return;
    }
    let most = job.ranks.iter().map(Rank::computing).max().unwrap_or(0);
    let mean = job.sum(Rank::computing) / job.ranks.len() as u64;
    let _ = write!(
        out,
        "  imbalance: the rank that computes longest takes {:.2} of the mean",
        most as f64 / mean.max(1) as f64
    );
    let awaited = job.awaited();
    let named: Vec<String> =
        awaited.iter().take(3).map(|peer| format!("rank {} ({})", peer.rank, time(peer.waited))).collect();
    let _ = match named.is_empty() {
        true => writeln!(out),
        false => writeln!(out, "; others waited most for {}", named.join(", ")),
    };
}

/// Who moved messages for whom.
fn helpers(out: &mut String, job: &NodeStatistics) {
    let mut pairs: Vec<(u64, u64, u64)> = Vec::new();
    for rank in &job.ranks {
        pairs.extend(rank.helped.iter().map(|&(victim, hits)| (hits, rank.rank, victim)));
    }
    if pairs.is_empty() {
        return;
    }
    pairs.sort_unstable_by(|a, b| b.cmp(a));
    let all: u64 = pairs.iter().map(|(hits, ..)| hits).sum();
    let shown: Vec<String> =
        pairs.iter().take(6).map(|(hits, helper, victim)| format!("{helper} for {victim}: {hits}")).collect();
    let more = if pairs.len() > shown.len() { ", ..." } else { "" };
    let _ = writeln!(
        out,
        "  moved by ranks that waited, for ranks that computed: {} (rank {}{more})",
        counted(all, "time"),
        shown.join(", "),
    );
}

/// What CPUs did in waits.
fn processors(out: &mut String, job: &NodeStatistics) {
    let _ = writeln!(
        out,
        "  in waits: {} helping, {} polling, {} asleep ({})",
        time(job.sum(|rank| rank.helping)),
        time(job.sum(Rank::polling)),
        time(job.sum(|rank| rank.slept.min(rank.waiting))),
        counted(job.sum(|rank| rank.sleeps), "sleep"),
    );
    if job.ranks.iter().all(|rank| rank.cpu > 0) {
        let _ = writeln!(out, "  CPU time of all ranks: {}", time(job.sum(|rank| rank.cpu)));
    }
}

fn calls(out: &mut String, job: &NodeStatistics) {
    let calls = job.calls.iter().map(|(name, tally)| (name.clone(), *tally));
    table(out, "call", calls.collect());
}

fn communicators(out: &mut String, job: &NodeStatistics) {
    let named = |(name, size): &(String, u64)| match (name.is_empty(), size) {
        (true, size) => format!("(no name, {size})"),
        (false, 0) => name.clone(),
        (false, size) => format!("{name} ({size})"),
    };
    let comms = job.communicators.iter().map(|(key, tally)| (named(key), *tally));
    table(out, "communicator", comms.collect());
}

/// The rows with the most time.
fn table(out: &mut String, head: &str, mut rows: Vec<(String, Tally)>) {
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.time));
    let _ = writeln!(out, "  {head:<32} {:>12} {:>10} {:>10} {:>10}", "calls", "time", "waiting", "sent");
    for (name, tally) in rows.iter().take(TOP) {
        let _ = writeln!(
            out,
            "  {name:<32} {:>12} {:>10} {:>10} {:>10}",
            tally.count,
            time(tally.time),
            time(tally.waiting),
            bytes(tally.bytes),
        );
    }
}

/// The files with the most time, and how much their calls moved.
fn files(out: &mut String, job: &NodeStatistics) {
    if job.files.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "  {:<32} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "file", "calls", "time", "reads", "read", "writes", "written"
    );
    let mut rows: Vec<(&(String, u64), &File)> = job.files.iter().collect();
    rows.sort_by_key(|(_, file)| std::cmp::Reverse(file.time));
    for ((name, members), file) in rows.into_iter().take(TOP) {
        let _ = writeln!(
            out,
            "  {:<32} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
            format!("{name} ({members})"),
            file.count,
            time(file.time),
            file.read.count,
            bytes(file.read.bytes),
            file.written.count,
            bytes(file.written.bytes),
        );
        for (what, moved) in [("reads of", &file.read), ("writes of", &file.written)] {
            if moved.count > 0 {
                let _ = writeln!(out, "      {what} {}; {}", sizes(moved), time(moved.time));
            }
        }
    }
}

/// How many calls moved how much.
fn sizes(moved: &Moved) -> String {
    let classes = SIZES.iter().zip(&moved.sizes).filter(|(_, count)| **count > 0);
    let said = classes.map(|(most, count)| match *most {
        "more" => format!("more than 1 GB: {count}"),
        most => format!("up to {most}: {count}"),
    });
    said.collect::<Vec<_>>().join(", ")
}

fn sections(out: &mut String, job: &NodeStatistics) {
    if job.sections.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "  {:<32} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "section", "times", "shortest", "longest", "in MPI", "waiting", "sent"
    );
    for section in &job.sections {
        let _ = writeln!(
            out,
            "  {:<32} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
            section.label,
            section.count,
            time(section.shortest),
            time(section.longest),
            time(section.mpi),
            time(section.waiting),
            bytes(section.bytes),
        );
    }
}

/// What the policy saw and decided, if it decides anything.
fn decisions(out: &mut String, job: &NodeStatistics) {
    let of = |name: &str| job.sum(|rank| rank.policy.get(name).copied().unwrap_or(0));
    let said = [
        (of("met_by_others"), "receives met by others"),
        (of("found_late"), "found late"),
        (of("came_in_wait"), "came during a wait"),
        (of("turned_on"), "times the fallback was turned on"),
        (of("turned_off"), "times turned off"),
        (of("own_hits"), "turns of a rank's own signal or thread that moved something"),
        (of("offloaded"), "posts left to a dedicated worker"),
    ];
    let said: Vec<String> =
        said.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !said.is_empty() {
        let _ = writeln!(out, "  policy {}: {}", job.policy, said.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a node image says of `ranks` ranks; rank 1 computes, the others wait for it.
    fn json(ranks: u64) -> String {
        let rank = |rank: u64| {
            let (mpi, peers) = match rank {
                1 => (1_000, "[0,2,600,0]".to_owned()),
                _ => (51_000 + rank, format!("[1,1,300,{}]", 50_000 + rank)),
            };
            format!(
                "{{\"rank\":{rank},\"wall_us\":100000,\"mpi_us\":{mpi},\"waiting_us\":{mpi},\"cpu_us\":70000,\
                 \"slept_us\":500,\"helping_us\":100,\"messages\":1,\"bytes\":300,\"sleeps\":3,\
                 \"policy\":{{\"turned_on\":1}},\"steals\":{{\"of\":[[1,5]]}},\"peers\":[{peers}],\
                 \"calls\":[[\"MPI_Recv\",1,900,800,0],[\"MPI_Recv_c\",2,100,50,0]],\
                 \"communicators\":[[\"rows\",4,3,1000,850,0]],\
                 \"files\":[[\"/data/out\",3,1,7,2000,[0,0,0,[]],[4,1500,4000,[1,3,0,0,0,0,0,0,0,0]]]],\
                 \"sections\":[[\"solve\",2,{},10,5,1,300]]}}",
                40_000 + rank,
            )
        };
        let ranks: Vec<String> = (0..ranks).map(rank).collect();
        format!(
            "{{\"schema\":\"cohort-stats-1\",\"node\":0,\"nodes\":1,\"cpus\":8,\"policy\":\"steal\",\"ranks\":[{}]}}",
            ranks.join(",")
        )
    }

    #[test]
    fn what_a_killed_rank_left_out_is_said() {
        let cut = json(2).replacen("\"peers\"", "\"cut\":[\"course\",\"files\"],\"peers\"", 1);
        let text = report(&NodeStatistics::read(&cut).expect("valid"));
        assert!(text.contains("rank 0 was killed while it counted; left out of its part: course, files\n"), "{text}");
        assert!(!text.contains("rank 1 was killed"), "{text}");
    }

    #[test]
    fn a_few_ranks_have_a_line_each() {
        let text = report(&NodeStatistics::read(&json(3)).expect("valid"));
        let line = |begin: &str| {
            let found = text.lines().find(|line| line.trim_start().starts_with(begin));
            found.unwrap_or_else(|| panic!("{begin}: {text}")).to_owned()
        };
        assert!(text.starts_with("cohort: 3 ranks on 8 CPUs, progress steal, 100.0 ms\n"), "{text}");
        assert!(line("0 ").ends_with("rank 1 (50.0 ms)"), "{text}");
        assert!(line("1 ").contains("99.0 ms"), "{text}");
        assert!(line("imbalance").contains("others waited most for rank 1 (100.0 ms)"), "{text}");
        assert!(line("MPI_Recv ").contains(" 9 "), "both forms are one: {text}");
        assert!(line("rows (4)").contains("3.0 ms"), "{text}");
        assert!(line("/data/out (3)").ends_with("12    12.0 KB"), "{text}");
        assert!(line("writes of").contains("up to 100 B: 3, up to 1 KB: 9; 4.5 ms"), "{text}");
        assert!(line("solve").contains("40.0 ms"), "{text}");
        assert!(line("policy steal").contains("3 times the fallback was turned on"), "{text}");
        assert!(line("-> Give rank 1 less work").contains("100.0 ms"), "{text}");
        assert!(line("moved by").contains("15 times"), "{text}");
    }

    #[test]
    fn a_thousand_ranks_are_a_screen() {
        let text = report(&NodeStatistics::read(&json(1000)).expect("valid"));
        assert!(text.lines().count() < 40, "{text}");
        assert!(text.contains("\n  median "), "{text}");
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        assert!(NodeStatistics::read("{\"schema\":\"other\"}").is_err());
        assert!(NodeStatistics::read("[").is_err());
        let none = json(0);
        assert!(report(&NodeStatistics::read(&none).expect("valid")).contains("no rank called MPI"));
    }
}

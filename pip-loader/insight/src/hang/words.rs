//! What a rank does, in the words of its program.

use super::state::{RankState, Wait};
use cohort_base::picture::{ANY, Fact, NO_CONTEXT, NOBODY, Told};
use std::fmt::Write;
use std::time::Duration;

/// Most requests of one call, and most entries of a queue, that are shown.
const SHOWN_MAX: usize = 4;

/// How much of what ranks do is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// All that their calls name.
    Whole,
    /// Only their calls, so that more ranks share a line.
    Call,
}

/// Numbers of ranks: `rank 3`, `ranks 0-2, 5`.
#[must_use]
pub fn ranks(numbers: &[u32]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut text = String::from(if numbers.len() == 1 { "rank " } else { "ranks " });
    for (nth, run) in numbers.chunk_by(|a, b| a + 1 == *b).enumerate() {
        let comma = if nth > 0 { ", " } else { "" };
        let _ = match run {
            [one] => write!(text, "{comma}{one}"),
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [] => Ok(()),
        };
    }
    text
}

/// A time as one says it.
#[must_use]
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..=9 => format!("{seconds}.{} s", time.subsec_millis() / 100),
        seconds @ 10..=119 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// For how long the ranks of a group wait.
#[must_use]
pub fn since(members: &[&RankState]) -> Option<String> {
    let times = members.iter().flat_map(|rank| &rank.waits);
    let times: Vec<Duration> = times.map(|wait| wait.since).collect();
    let (first, last) = (times.iter().min()?, times.iter().max()?);
    Some(match (time(*first), time(*last)) {
        (first, last) if first == last => format!("for {first}"),
        (first, last) => format!("for {first} to {last}"),
    })
}

/// What a rank does.
#[must_use]
pub fn doing(rank: &RankState, detail: Detail) -> String {
    if rank.has_ended {
        return "has ended".to_owned();
    }
    let mut text = match (rank.waits.as_slice(), rank.is_busy, rank.waiting) {
        (waits @ [_, ..], _, _) => {
            let waits: Vec<String> = waits.iter().map(|wait| waiting(wait, detail)).collect();
            waits.join("; another thread: ")
        }
        ([], true, 1..) if !rank.called.is_empty() => {
            format!("in {}, with its queues in use", rank.called)
        }
        _ => running(rank),
    };
    if rank.run == 'T' || rank.run == 't' {
        text.push_str(" (stopped by a signal or a debugger)");
    }
    text
}

fn running(rank: &RankState) -> String {
    let what = match rank.run {
        'R' => "computes",
        'D' => "waits for a device",
        'S' => "sleeps outside of MPI",
        'T' | 't' => "does not run",
        // By what ends the job too, as `timeout` tells all of its processes: the last call says where it was.
        'Z' | 'X' => "has just ended",
        _ => "is not in MPI",
    };
    match (rank.is_initialized, rank.is_finalized) {
        (_, true) => format!("{what}, has called MPI_Finalize"),
        (false, false) => format!("{what}, has not called MPI_Init"),
        (true, _) if rank.called.is_empty() => what.to_owned(),
        (true, _) => format!("{what}, the last call was {}", rank.called),
    }
}

/// What a thread waits for.
#[must_use]
pub fn waiting(wait: &Wait, detail: Detail) -> String {
    // The name is not sure where several threads may call; one call is known by what it waits for.
    let is_end = wait.needs.iter().any(|need| need.told == Told::End);
    let (call, is_sure) = match wait.call.as_str() {
        "" if is_end => ("MPI_Finalize", true),
        "" => ("waits in MPI", false),
        call => (call, !call.starts_with("MPI_Wait")),
    };
    if detail == Detail::Call {
        let comm = wait.needs.iter().find(|need| need.size > 0);
        return format!("{call}{}", comm.map(communicator).unwrap_or_default());
    }
    let needs = wait.needs.iter();
    let needs: Vec<&Fact> = needs.filter(|need| need.told != Told::Missing).collect();
    let missing = wait.needs.iter().filter(|need| need.told == Told::Missing);
    let missing: Vec<u32> = missing.filter_map(world).collect();
    match needs.as_slice() {
        [] => call.to_owned(),
        [one] if is_sure => format!("{call}{}", about(one, &missing)),
        [one] => format!("{call} for {}{}", request(one.told), about(one, &missing)),
        several => {
            let shown = several.iter().take(SHOWN_MAX);
            let shown = shown.map(|need| format!("{}{}", request(need.told), about(need, &[])));
            let shown: Vec<String> = shown.collect();
            let (count, all) = (several.len(), if wait.is_any { "one of " } else { "" });
            let more = match count > SHOWN_MAX {
                true => format!("; and {} more", count - SHOWN_MAX),
                false => String::new(),
            };
            format!("{call} for {all}{count} requests: {}{more}", shown.join("; "))
        }
    }
}

fn request(told: Told) -> &'static str {
    match told {
        Told::Receive | Told::Posted => "a receive",
        Told::Probe => "a message",
        Told::Send | Told::Offered => "a send",
        Told::Collective => "a collective",
        Told::Access => "a window",
        _ => "something",
    }
}

/// Whom and what a need is about, as the rest of a sentence.
fn about(need: &Fact, missing: &[u32]) -> String {
    match need.told {
        Told::Receive | Told::Posted | Told::Probe | Told::Unexpected => {
            let bytes = match need.told {
                Told::Unexpected => format!(" of {}", bytes(need.number)),
                _ => String::new(),
            };
            // A part of a collective between nodes.
            if is_inner(need) {
                let who = world(need).map(|world| format!(", waits for rank {world}"));
                return format!("{}{}", communicator(need), who.unwrap_or_default());
            }
            format!("{bytes} from {}{}{}", peer(need), tag(need), communicator(need))
        }
        Told::Send | Told::Offered => {
            let (bytes, tag) = (bytes(need.number), tag(need));
            let left = match need.count {
                0 => String::new(),
                1 => ", of which 1 partition is not ready".to_owned(),
                count => format!(", of which {count} partitions are not ready"),
            };
            format!(" of {bytes} to {}{tag}{}{left}", peer(need), communicator(need))
        }
        Told::Collective => {
            let still = match (missing, need.count) {
                ([], 0) => String::new(),
                ([], count) => format!(", {count} of {} members have not come", need.size),
                (missing, _) => format!(", waits for {}", ranks(missing)),
            };
            format!("{}{still}", communicator(need))
        }
        Told::Access if need.world == NOBODY => {
            format!(", waits for {} of all members of the window", need.name())
        }
        Told::Access => format!(", waits for {} of {} at its window", need.name(), peer(need)),
        Told::Room => format!(", so many messages to rank {} that their room is full", need.world),
        Told::Port => format!(", waits for another process at the port {}", need.name()),
        Told::End => ", waits for all ranks of the node to end MPI".to_owned(),
        _ => String::new(),
    }
}

fn tag(need: &Fact) -> String {
    match need.tag {
        ANY => ", any tag".to_owned(),
        tag => format!(", tag {tag}"),
    }
}

/// Who is meant, by the number that the program uses.
fn peer(need: &Fact) -> String {
    match (need.member, need.world) {
        (ANY, _) => "any rank".to_owned(),
        (NOBODY, NOBODY) => "somebody".to_owned(),
        (NOBODY, world) => format!("rank {world}"),
        (member, world) if world == NOBODY || member == world => member.to_string(),
        (member, world) => format!("{member} (rank {world} of the job)"),
    }
}

/// Which communicator is meant.
#[must_use]
pub fn communicator(need: &Fact) -> String {
    match (need.name(), need.size) {
        (_, 0) => String::new(),
        ("", size) => format!(", a communicator of {size}"),
        (name, size) if name.starts_with("MPI_COMM_") || name.starts_with("file \"") => format!(", {name} of {size}"),
        (name, size) => format!(", communicator \"{name}\" of {size}"),
    }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    }
}

/// What is pending at a rank besides what it waits for, one a line.
#[must_use]
pub fn queues(rank: &RankState) -> Vec<String> {
    if rank.is_busy {
        return Vec::new();
    }
    let needs: Vec<&Fact> = rank.waits.iter().flat_map(|wait| &wait.needs).collect();
    let is_waited_for = |fact: &&Fact| {
        let same = |need: &&&Fact| (need.context, need.tag, need.world) == (fact.context, fact.tag, fact.world);
        !needs.iter().any(|need| same(&need))
    };
    let number = rank.world;
    let mut lines = Vec::new();
    let mut add = |facts: Vec<&Fact>, what: &str| {
        let shown: Vec<String> = facts
            .iter()
            .take(SHOWN_MAX)
            .map(|fact| format!("{}{}", if what.is_empty() { request(fact.told) } else { "" }, about(fact, &[])))
            .collect();
        let more = facts.len().saturating_sub(SHOWN_MAX);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        match what {
            _ if shown.is_empty() => {}
            "" => lines.push(format!("pending at rank {number}: {}{more}", shown.join("; "))),
            what => lines.push(format!("rank {number} has {what}{}{more}", shown.join(";"))),
        }
    };
    add(rank.pending.iter().filter(is_waited_for).collect(), "");
    let is_of_program = |fact: &&Fact| !is_inner(fact);
    add(rank.unexpected.iter().filter(is_of_program).collect(), "a message that no receive takes:");
    lines
}

/// Whether a message is a part of a collective.
#[must_use]
pub fn is_inner(fact: &Fact) -> bool {
    fact.context & 1 == 1 && fact.context != NO_CONTEXT
}

/// The rank of `MPI_COMM_WORLD` that a fact is about.
#[must_use]
pub fn world(fact: &Fact) -> Option<u32> {
    u32::try_from(fact.world).ok()
}

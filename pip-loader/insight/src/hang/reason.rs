//! Why the ranks wait: who waits for whom, and what is wrong with that.
//!
//! The *graph* has an edge from a rank to each one whose doing it needs. A cycle explains itself; else the edges lead
//! to ranks that do something else, and what that is is the cause. Besides, calls that do not fit each other are
//! looked for: collectives in different orders, and messages that almost match.

use super::state::{RankState, Wait};
use super::words::{self, Detail};
use cohort_base::picture::{ANY, Fact, Told};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Most sentences of a kind.
const SENTENCES_MAX: usize = 4;

/// Edges that the search for a short cycle looks at.
const STEPS_MAX: usize = 1 << 20;

/// Longest cycle that is spelt out.
const CYCLE_SHOWN: usize = 6;

/// The causes that the picture shows, one a line.
#[must_use]
pub fn reasons(ranks: &[RankState]) -> Vec<String> {
    let graph = Graph::of(ranks);
    let mut lines = crossed_collectives(ranks);
    if lines.is_empty() {
        lines.extend(gone_on(ranks));
    }
    lines.extend(graph.cycle());
    lines.extend(almost_matching(ranks));
    lines.extend(graph.blamed(lines.is_empty()));
    lines.extend(graph.for_anybody());
    lines
}

struct Graph<'a> {
    ranks: HashMap<u32, &'a RankState>,
    /// Whom a rank needs, all of them; and why.
    edges: BTreeMap<u32, BTreeMap<u32, String>>,
}

impl<'a> Graph<'a> {
    fn of(all: &'a [RankState]) -> Self {
        let mut holders: HashMap<(u64, i32), BTreeSet<u32>> = HashMap::new();
        for rank in all {
            for lock in &rank.holds {
                let whose = holders.entry((lock.key, lock.world)).or_default();
                whose.insert(rank.world);
            }
        }
        let ending: BTreeSet<u32> = all.iter().filter(|rank| is_at_end(rank)).map(|rank| rank.world).collect();
        let mut edges: BTreeMap<u32, BTreeMap<u32, String>> = BTreeMap::new();
        for rank in all.iter().filter(|rank| !rank.has_ended) {
            // Threads that wait beside each other: whoever of them goes on may help the others.
            let [wait] = rank.waits.as_slice() else {
                continue;
            };
            let is_open = wait.is_any && wait.needs.len() > 1;
            let why = words::waiting(wait, Detail::Whole);
            for need in wait.needs.iter().filter(|_| !is_open) {
                let needed: BTreeSet<u32> = match need.told {
                    Told::Access => match holders.get(&(need.key, need.world)) {
                        Some(holders) if need.name() == "lock" => holders.clone(),
                        _ => words::world(need).into_iter().collect(),
                    },
                    Told::End => all.iter().map(|rank| rank.world).filter(|it| !ending.contains(it)).collect(),
                    Told::Collective => same_meeting(all, need).unwrap_or_default(),
                    _ => words::world(need).into_iter().collect(),
                };
                let of_rank = edges.entry(rank.world).or_default();
                for needed in needed.into_iter().filter(|&it| it != rank.world || need.told != Told::Collective) {
                    of_rank.insert(needed, why.clone());
                }
            }
        }
        Self { ranks: all.iter().map(|rank| (rank.world, rank)).collect(), edges }
    }

    fn targets(&self, rank: u32) -> impl Iterator<Item = u32> + '_ {
        self.edges.get(&rank).into_iter().flat_map(|edges| edges.keys().copied())
    }

    /// A shortest cycle, as a sentence.
    fn cycle(&self) -> Option<String> {
        let mut steps = STEPS_MAX;
        let starts = self.edges.keys();
        let cycles = starts.filter_map(|&rank| self.cycle_through(rank, &mut steps));
        let cycle = cycles.min_by_key(Vec::len)?;
        let mut text = String::from("nobody in this circle can go on: ");
        for (nth, &rank) in cycle.iter().enumerate().take(CYCLE_SHOWN) {
            let next = cycle[(nth + 1) % cycle.len()];
            let why = self.edges.get(&rank).and_then(|edges| edges.get(&next));
            let why = why.map_or("", String::as_str);
            let comma = if nth > 0 { "; " } else { "" };
            text += &match next == rank {
                true => format!("{comma}rank {rank} waits for itself ({why})"),
                false => format!("{comma}rank {rank} waits for rank {next} ({why})"),
            };
        }
        if cycle.len() > CYCLE_SHOWN {
            text += &format!("; and so on through {} ranks", cycle.len());
        }
        Some(text)
    }

    /// The shortest way from a rank back to it.
    fn cycle_through(&self, start: u32, steps: &mut usize) -> Option<Vec<u32>> {
        let mut before: HashMap<u32, u32> = HashMap::new();
        let mut front = vec![start];
        while !front.is_empty() {
            let mut next = Vec::new();
            for rank in front {
                for target in self.targets(rank) {
                    *steps = steps.checked_sub(1)?;
                    if target == start {
                        let mut way = vec![rank];
                        while let Some(&earlier) = way.last().filter(|&&it| it != start).and_then(|it| before.get(it)) {
                            way.push(earlier);
                        }
                        way.reverse();
                        return Some(way);
                    }
                    if target != start && !before.contains_key(&target) {
                        before.insert(target, rank);
                        next.push(target);
                    }
                }
            }
            front = next;
        }
        None
    }

    /// Ranks that others wait for and that wait for nobody themselves, with what they do instead.
    fn blamed(&self, alone: bool) -> Vec<String> {
        let mut waiting: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (&rank, edges) in &self.edges {
            for &target in edges.keys() {
                waiting.entry(target).or_default().insert(rank);
            }
        }
        let is_idle = |rank: &u32| self.edges.get(rank).is_none_or(BTreeMap::is_empty);
        let blamed: Vec<(u32, BTreeSet<u32>)> = waiting.into_iter().filter(|(rank, _)| is_idle(rank)).collect();
        // Those that do the same share a sentence.
        let mut sentences: BTreeMap<(BTreeSet<u32>, String), Vec<u32>> = BTreeMap::new();
        for (rank, waiters) in blamed {
            let state = self.ranks.get(&rank);
            if !alone && state.is_some_and(|rank| !rank.has_ended) {
                continue;
            }
            let does = match state {
                Some(state) => verb_first(&words::doing(state, Detail::Whole)),
                None => "is on a node that has not answered, or of another job".to_owned(),
            };
            sentences.entry((waiters, does)).or_default().push(rank);
        }
        let mut sentences: Vec<_> = sentences.into_iter().collect();
        sentences.sort_by_key(|((waiters, _), ranks)| (std::cmp::Reverse(waiters.len()), ranks[0]));
        let sentence = |((waiters, does), ranks): ((BTreeSet<u32>, String), Vec<u32>)| {
            let waiters: Vec<u32> = waiters.into_iter().collect();
            let verb = if waiters.len() == 1 { "waits" } else { "wait" };
            let each = if ranks.len() == 1 { "which" } else { "each of which" };
            format!("{} {verb} for {}, {each} {does}", words::ranks(&waiters), words::ranks(&ranks))
        };
        sentences.into_iter().take(SENTENCES_MAX).map(sentence).collect()
    }

    /// Ranks that wait for anybody, for a message or at a port, when nobody is left to come.
    fn for_anybody(&self) -> Vec<String> {
        let may_send = |rank: &RankState| !rank.has_ended && rank.waiting == 0;
        if self.ranks.values().any(|rank| may_send(rank)) {
            return Vec::new();
        }
        let sentence = |is_such: fn(&Wait) -> bool, what: &str| {
            let such = self.ranks.values().filter(|rank| rank.wait().is_some_and(is_such));
            let mut such: Vec<u32> = such.map(|rank| rank.world).collect();
            such.sort_unstable();
            let who = words::ranks(&such);
            (!such.is_empty()).then(|| format!("{who} {what}, but every other rank has ended or waits too"))
        };
        let wild = sentence(is_wild, "may take a message of any rank");
        let at_port = sentence(is_at_port, "may meet any rank at a port");
        [wild, at_port].into_iter().flatten().collect()
    }
}

fn is_at_end(rank: &RankState) -> bool {
    rank.is_finalized || rank.wait().is_some_and(|wait| wait.needs.iter().any(|need| need.told == Told::End))
}

/// Whether a wait is for a message of any rank.
fn is_wild(wait: &Wait) -> bool {
    wait.needs.iter().any(|need| need.member == ANY && matches!(need.told, Told::Receive | Told::Probe))
}

/// Whether a wait is for anybody at a port.
fn is_at_port(wait: &Wait) -> bool {
    wait.needs.iter().any(|need| need.told == Told::Port)
}

/// What a rank does, behind `which`.
fn verb_first(does: &str) -> String {
    match does.starts_with("MPI_") {
        true => format!("is in {does}"),
        false => does.to_owned(),
    }
}

/// The members of a collective whose members have not all come, as far as others' waits tell it.
fn same_meeting(all: &[RankState], need: &Fact) -> Option<BTreeSet<u32>> {
    // The engine has said who is missing.
    if need.count == 0 || need.size as usize != all.len() {
        return None;
    }
    let has_come = |rank: &&RankState| {
        let waits = rank.waits.iter().flat_map(|wait| &wait.needs);
        waits.into_iter().any(|it| it.told == Told::Collective && it.key == need.key)
    };
    let missing: BTreeSet<u32> = all.iter().filter(|rank| !has_come(rank)).map(|rank| rank.world).collect();
    (missing.len() == need.count as usize).then_some(missing)
}

/// Communicators whose members are in different collectives.
fn crossed_collectives(all: &[RankState]) -> Vec<String> {
    let mut calls: BTreeMap<u32, (String, BTreeMap<String, Vec<u32>>)> = BTreeMap::new();
    for rank in all.iter().filter(|rank| !rank.has_ended) {
        for wait in rank.waits.iter().filter(|wait| !wait.call.starts_with("MPI_Wait")) {
            for need in &wait.needs {
                // Members of two groups exchange messages, which have contexts of their own.
                let is_inner = need.told == Told::Collective || need.told == Told::Receive && words::is_inner(need);
                if is_inner && need.size > 1 && !wait.call.is_empty() {
                    let entry = calls.entry(need.context).or_default();
                    entry.0 = words::communicator(need);
                    let same = entry.1.entry(wait.call.clone()).or_default();
                    same.push(rank.world);
                    break;
                }
            }
        }
    }
    let crossed = calls.into_values().filter(|(_, calls)| calls.len() > 1);
    let sentence = |(comm, calls): (String, BTreeMap<String, Vec<u32>>)| {
        let mut calls: Vec<(String, Vec<u32>)> = calls.into_iter().collect();
        calls.sort_by_key(|(_, ranks)| ranks.first().copied());
        let calls: Vec<String> = calls
            .iter()
            .map(|(call, ranks)| {
                let verb = if ranks.len() == 1 { "is" } else { "are" };
                format!("{} {verb} in {call}", words::ranks(ranks))
            })
            .collect();
        let comm = comm.trim_start_matches(", ");
        format!("collectives of {comm} are not called in the same order: {}", calls.join(", "))
    };
    crossed.take(SENTENCES_MAX).map(sentence).collect()
}

/// Collectives to which all members have come, and that some have left: those were in another one.
fn gone_on(all: &[RankState]) -> Option<String> {
    let waits = all.iter().flat_map(|rank| rank.waits.iter().map(move |wait| (rank, wait)));
    let mut waits = waits.filter(|(rank, _)| !rank.has_ended);
    waits.find_map(|(_, wait)| {
        let [need] = wait.needs.as_slice() else {
            return None;
        };
        if need.told != Told::Collective || need.count > 0 || need.size as usize != all.len() {
            return None;
        }
        let is_here = |rank: &&RankState| {
            let mut needs = rank.waits.iter().flat_map(|wait| &wait.needs);
            needs.any(|it| (it.told, it.key, it.number) == (need.told, need.key, need.number))
        };
        let (here, gone): (Vec<&RankState>, Vec<&RankState>) = all.iter().partition(is_here);
        let numbers = |ranks: &[&RankState]| -> Vec<u32> { ranks.iter().map(|rank| rank.world).collect() };
        let is_whole = gone.is_empty();
        let (here, gone) = (words::ranks(&numbers(&here)), words::ranks(&numbers(&gone)));
        let comm = words::communicator(need);
        let (comm, call) = (comm.trim_start_matches(", "), &wait.call);
        (!is_whole).then(|| {
            format!(
                "collectives of {comm} are not called in the same order: {here} wait in {call}, \
                 and {gone} called another collective in its place and went on"
            )
        })
    })
}

/// Messages that are nearly what their receiver waits for.
fn almost_matching(all: &[RankState]) -> Vec<String> {
    let mut lines = Vec::new();
    for rank in all.iter().filter(|rank| !rank.has_ended) {
        let needs = rank.waits.iter().flat_map(|wait| &wait.needs);
        let needs = needs.filter(|need| matches!(need.told, Told::Receive | Told::Probe));
        for need in needs.filter(|need| !words::is_inner(need)) {
            let near = rank.unexpected.iter().filter_map(|message| difference(need, message));
            // What differs least.
            if let Some((_, what)) = near.min_by_key(|(differences, _)| *differences) {
                lines.push(format!("rank {} {what}", rank.world));
            }
        }
        if lines.len() >= SENTENCES_MAX {
            break;
        }
    }
    lines
}

/// How a message differs from what is waited for, if not in all.
fn difference(need: &Fact, message: &Fact) -> Option<(u32, String)> {
    let same_comm = need.context == message.context;
    let same_source = match need.member {
        ANY => true,
        _ if same_comm => need.member == message.member,
        _ => need.world == message.world,
    };
    let same_tag = need.tag == ANY || need.tag == message.tag;
    let source = match message.world {
        world if world >= 0 => format!("rank {world}"),
        _ => "somebody".to_owned(),
    };
    let of = words::communicator(message);
    let (wanted, got) = (need.tag, message.tag);
    match (same_comm, same_source, same_tag) {
        (true, true, false) => Some((
            1,
            format!(
                "waits for tag {wanted}, and has a message from {source} with tag {got}{of}, which no receive takes"
            ),
        )),
        (false, true, true) => Some((
            1,
            format!(
                "waits for a message on{}, and has one from {source} with tag {got} on{}, which no receive takes",
                words::communicator(need).trim_start_matches(','),
                of.trim_start_matches(',')
            ),
        )),
        (true, false, true) => Some((
            2,
            format!(
                "waits for a message from {}, and has one from {source} with tag {got}{of}, which no receive takes",
                match need.world {
                    world if world >= 0 => format!("rank {world}"),
                    _ => need.member.to_string(),
                }
            ),
        )),
        _ => None,
    }
}

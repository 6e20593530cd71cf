//! Why a job hangs: what each rank of this node does, and who waits for whom.
//!
//! [`state`] asks the node image and the kernel, [`words`] says what a rank does, [`reason`] looks for a cause, and
//! [`place`] finds where in its program a rank is. `docs/insight.md` shows what comes of it.

pub mod carry;
mod deadlock;
mod place;
mod reason;
mod state;
mod words;

pub use deadlock::proof;
pub use deadlock::{Watch, is_stuck};
pub use place::let_go;
pub use state::{Asked, RankState, Wait, run_state};
pub use words::{is_inner, ranks, world};

use super::backtrace::{CodePlace, python};
use place::Places;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Most groups of ranks that are shown.
const GROUPS_MAX: usize = 24;

/// Groups from which on what ranks do is said without whom they do it with.
const GROUPS_MANY: usize = 12;

/// Ranks of a group whose pending requests and messages are shown.
const SHOWN_MAX: usize = 4;

/// How long the search for places in programs may take.
const PLACES_TIME: Duration = Duration::from_millis(400);

/// Finds out where in their programs ranks of this node are, one of each group that a picture shows.
pub fn locate(ranks: &mut [RankState]) {
    let mut places = Places::new(PLACES_TIME);
    let mut found = Vec::new();
    for (_, members) in &grouped(ranks).0 {
        let mut members = members.iter();
        found.extend(members.find_map(|rank| Some((rank.world, places.of(rank)?))));
    }
    let interpreters = found.iter().filter_map(|(_, place): &(u32, CodePlace)| place.interpreter);
    let frames = python::frames(&interpreters.collect::<Vec<_>>());
    let mut frames = frames.into_iter();
    for (world, place) in found {
        let python = place.interpreter.and_then(|_| frames.next());
        let place = place.describe(&python.unwrap_or_default());
        let mut ranks = ranks.iter_mut();
        if let Some(rank) = ranks.find(|rank| rank.world == world && !place.is_empty()) {
            rank.place = Some(place);
        }
    }
    for rank in ranks.iter_mut().filter(|rank| rank.is_at_end()) {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", rank.pid));
        if name.is_ok_and(|name| name.starts_with("python")) {
            rank.place = Some(PYTHON_END.to_owned());
        }
    }
}

/// Where a Python program is whose end calls `MPI_Finalize`.
const PYTHON_END: &str = "the end of its Python program: if that was an exception that nobody caught, the others wait \
                          in vain, and python -m mpi4py PROGRAM would have ended the job";

/// The picture of ranks, of one node or of several.
#[must_use]
pub fn picture(ranks: &[RankState]) -> String {
    let mut text = String::new();
    let (groups, hidden) = grouped(ranks);
    for (what, members) in &groups {
        let numbers: Vec<u32> = members.iter().map(|rank| rank.world).collect();
        let _ = write!(text, "\n  {}: {what}", words::ranks(&numbers));
        if let Some(since) = words::since(members) {
            let _ = write!(text, ", {since}");
        }
        if let Some(place) = members.iter().find_map(|rank| rank.place.as_deref()) {
            let _ = write!(text, "\n      in {place}");
        }
        for rank in members.iter().take(SHOWN_MAX) {
            for line in words::queues(rank) {
                let _ = write!(text, "\n      {line}");
            }
        }
    }
    if hidden > 0 {
        let _ = write!(text, "\n  and {hidden} ranks in other states");
    }
    for line in reason::reasons(ranks) {
        let _ = write!(text, "\n  {line}");
    }
    text
}

type Groups<'a> = Vec<(String, Vec<&'a RankState>)>;

/// Ranks by what they do, in the order of the first of each group, and how many are in groups that are not shown.
fn grouped(ranks: &[RankState]) -> (Groups<'_>, usize) {
    let exact = group_by(ranks, |rank| words::doing(rank, words::Detail::Whole));
    let mut groups = match exact.len() > GROUPS_MANY {
        true => group_by(ranks, |rank| words::doing(rank, words::Detail::Call)),
        false => exact,
    };
    let hidden = groups.iter().skip(GROUPS_MAX);
    let hidden = hidden.map(|(_, members)| members.len()).sum();
    groups.truncate(GROUPS_MAX);
    (groups, hidden)
}

fn group_by(ranks: &[RankState], key: impl Fn(&RankState) -> String) -> Groups<'_> {
    let mut groups: BTreeMap<String, Vec<&RankState>> = BTreeMap::new();
    for rank in ranks {
        groups.entry(key(rank)).or_default().push(rank);
    }
    let mut groups: Groups<'_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, members)| members.first().map(|rank| rank.world));
    groups
}

#[cfg(test)]
mod tests;

//! Barriers of ranks with address spaces of their own, on several nodes: `MPI_Init`.
//!
//! Each node's ranks have its launcher for a process manager, and wait in it until those of all nodes have come. A node
//! whose ranks have all ended never comes again. It says so to the first one, with the number of barriers that its
//! ranks have been to; a node that waits in a barrier for a while says in which. If that is beyond the number, the wait
//! would be for ever: the first node says for whom, and ends the job. Both are told once for each number and stay true,
//! so it does not matter when they come.

use super::source::{Sleep, Source};
use super::{GRACE, Job};
use pip_ground::say;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;

/// How the words of this begin.
const MARK: [u32; 1] = [8];

/// What a node says of barriers, and of ranks that never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// All ranks of a node have ended, which have been to so many.
    Left { node: u32, barriers: u32 },
    /// The ranks of a node wait in the last of so many.
    Waits { barriers: u32 },
    /// All ranks of a node have ended, these without `MPI_Init` ([`absent`](super::absent)).
    Never(Row),
    /// Somebody waits for that one.
    Needs { node: u32, rank: u32 },
}

/// Ranks of a node that end without `MPI_Init`, and whose numbers follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) node: u32,
    pub(super) first: u32,
    pub(super) count: u32,
    /// They have used sessions.
    pub(super) had_sessions: bool,
}

impl Row {
    /// Those of a node with these numbers, which ascend, and whether each has used sessions.
    pub(super) fn all(node: u32, ranks: impl IntoIterator<Item = (u32, bool)>) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for (first, had_sessions) in ranks {
            let follows = |row: &&mut Self| row.first + row.count == first && row.had_sessions == had_sessions;
            match rows.last_mut().filter(follows) {
                Some(last) => last.count += 1,
                None => rows.push(Self { node, first, count: 1, had_sessions }),
            }
        }
        rows
    }

    pub(super) fn has(self, rank: u32) -> bool {
        rank.checked_sub(self.first).is_some_and(|place| place < self.count)
    }

    pub(super) fn ranks(self) -> Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }
}

impl Word {
    pub(super) fn encode(self) -> Vec<u8> {
        let words = match self {
            Self::Left { node, barriers } => [0, node, barriers, 0],
            Self::Waits { barriers } => [1, 0, barriers, 0],
            Self::Never(Row { node, first, count, had_sessions }) => {
                [if had_sessions { 4 } else { 2 }, node, first, count]
            }
            Self::Needs { node, rank } => [3, node, rank, 0],
        };
        let words = MARK.into_iter().chain(words);
        words.flat_map(u32::to_le_bytes).collect()
    }

    /// `None` if what a launcher says is about something else.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MARK[0].to_le_bytes())?;
        let words: Vec<_> = rest.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        match words[..] {
            [0, node, barriers, _] => Some(Self::Left { node, barriers }),
            [1, _, barriers, _] => Some(Self::Waits { barriers }),
            [2 | 4, node, first, count] => Some(Self::Never(Row { node, first, count, had_sessions: words[0] == 4 })),
            [3, node, rank, _] => Some(Self::Needs { node, rank }),
            _ => None,
        }
    }
}

/// What was heard: of barriers by the first node.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The node that has left after the fewest barriers, and how many.
    left: Option<(u32, u32)>,
    /// The most that ranks wait in the last of.
    waits: u32,
    /// Ranks that never come.
    pub(super) never: BTreeSet<Row>,
    /// The first of them that somebody waits for, and its node.
    pub(super) needed: Option<(u32, u32)>,
}

impl Heard {
    pub(super) fn take(&mut self, word: Word) {
        match word {
            Word::Left { node, barriers } if self.left.is_none_or(|(_, least)| barriers < least) => {
                self.left = Some((node, barriers));
            }
            Word::Left { .. } => {}
            Word::Waits { barriers } => self.waits = self.waits.max(barriers),
            Word::Never(row) => _ = self.never.insert(row),
            Word::Needs { node, rank } => _ = self.needed.get_or_insert((node, rank)),
        }
    }

    /// The node that never comes to where others wait.
    fn missing(&self) -> Option<u32> {
        let left = self.left.filter(|(_, barriers)| *barriers < self.waits);
        left.map(|(node, _)| node)
    }
}

/// The ranks of this node, as far as other nodes wait for them or they for those.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// The barrier in which they wait for other nodes, and since when.
    waits: Option<(u32, Instant)>,
    /// The last one of which that was said.
    said: u32,
    /// It was said that all have ended.
    has_left: bool,
}

impl Barriers {
    /// When to say that ranks of this node wait.
    fn until(&self) -> Option<Instant> {
        let waits = self.waits.filter(|(barriers, _)| *barriers != self.said);
        waits.map(|(_, since)| since + GRACE)
    }

    /// What is to be told now.
    fn tell(&mut self, job: &Job<'_>) -> Option<Word> {
        let (barriers, is_waiting) = job.spawner.served.server.as_ref()?.fences();
        let node = job.membership.place().index;
        if job.alive.is_empty() && !is_waiting {
            return (!std::mem::replace(&mut self.has_left, true)).then_some(Word::Left { node, barriers });
        }
        if self.waits.is_none_or(|(own, _)| own != barriers) || !is_waiting {
            self.waits = is_waiting.then(|| (barriers, Instant::now()));
        }
        let is_long = self.until().is_some_and(|until| Instant::now() >= until);
        is_long.then(|| {
            self.said = barriers;
            Word::Waits { barriers }
        })
    }
}

impl Source for Barriers {
    fn awaits<'a>(&'a self, _job: &'a Job<'_>, sleep: &mut Sleep<'a>) {
        sleep.until(self.until());
    }

    fn serve(&mut self, job: &mut Job<'_>) {
        let place = job.membership.place();
        if place.count < 2 || job.ends.shutdown.is_some() {
            return;
        }
        if let Some(word) = self.tell(job) {
            match place.index {
                0 => job.heard.barriers.take(word),
                _ => job.membership.monitor_mut().tell_up(word.encode()),
            }
        }
        if let Some(node) = job.heard.barriers.missing() {
            let who = job.membership.first_of(node);
            say(format_args!("{who} ended without calling MPI_Init, in which others wait for it"));
            job.begin_shutdown(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_left_before_others_wait_is_missing() {
        let mut heard = Heard::default();
        for (word, missing) in [
            (Word::Left { node: 3, barriers: 2 }, None),
            (Word::Waits { barriers: 2 }, None),
            (Word::Left { node: 2, barriers: 1 }, Some(2)),
            (Word::Left { node: 1, barriers: 2 }, Some(2)),
            (Word::Waits { barriers: 3 }, Some(2)),
            (Word::Never(Row { node: 1, first: 5, count: 2, had_sessions: true }), Some(2)),
            (Word::Needs { node: 1, rank: 5 }, Some(2)),
        ] {
            heard.take(Word::decode(&word.encode()).expect("one of these"));
            assert_eq!(heard.missing(), missing, "{word:?}");
        }
        assert_eq!(
            (heard.never.first(), heard.needed),
            (Some(&Row { node: 1, first: 5, count: 2, had_sessions: true }), Some((1, 5)))
        );
        assert_eq!(Word::decode(&[8, 0, 0, 0, 1]), None);
        assert_eq!(Word::decode(b"\x07\0\0\0check"), None);
    }

    #[test]
    fn numbers_that_follow_each_other_are_a_row() {
        let row = |first, count| Row { node: 3, first, count, had_sessions: first > 9 };
        let ranks = [2, 3, 4, 7, 9, 10, 11].map(|rank| (rank, rank > 9));
        assert_eq!(Row::all(3, ranks), [row(2, 3), row(7, 1), row(9, 1), row(10, 2)]);
        assert!(Row::all(3, []).is_empty());
        let [has, has_not] = [[2, 4], [1, 5]].map(|ranks| ranks.map(|rank| row(2, 3).has(rank)));
        assert_eq!((has, has_not, row(2, 3).ranks()), ([true; 2], [false; 2], 2..5));
    }
}

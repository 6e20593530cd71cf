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
    /// A rank has ended without `MPI_Init`, all of its node have, and it had sessions or had not
    /// ([`absent`](super::absent)).
    Never { node: u32, rank: u32, had_sessions: bool },
    /// Somebody waits for that one.
    Needs { node: u32, rank: u32 },
}

impl Word {
    pub(super) fn encode(self) -> Vec<u8> {
        let (kind, node, number) = match self {
            Self::Left { node, barriers } => (0, node, barriers),
            Self::Waits { barriers } => (1, 0, barriers),
            Self::Never { node, rank, had_sessions: false } => (2, node, rank),
            Self::Never { node, rank, had_sessions: true } => (4, node, rank),
            Self::Needs { node, rank } => (3, node, rank),
        };
        let words = MARK.into_iter().chain([kind, node, number]);
        words.flat_map(u32::to_le_bytes).collect()
    }

    /// `None` if what a launcher says is about something else.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MARK[0].to_le_bytes())?;
        let words: Vec<_> = rest.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        match words[..] {
            [0, node, barriers] => Some(Self::Left { node, barriers }),
            [1, _, barriers] => Some(Self::Waits { barriers }),
            [2 | 4, node, rank] => Some(Self::Never { node, rank, had_sessions: words[0] == 4 }),
            [3, node, rank] => Some(Self::Needs { node, rank }),
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
    /// Nodes and ranks that never come, and whether they had sessions.
    pub(super) never: BTreeSet<(u32, u32, bool)>,
    /// The first of them that somebody waits for.
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
            Word::Never { node, rank, had_sessions } => _ = self.never.insert((node, rank, had_sessions)),
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
            (Word::Never { node: 1, rank: 5, had_sessions: true }, Some(2)),
            (Word::Needs { node: 1, rank: 5 }, Some(2)),
        ] {
            heard.take(Word::decode(&word.encode()).expect("one of these"));
            assert_eq!(heard.missing(), missing, "{word:?}");
        }
        assert_eq!((heard.never.first(), heard.needed), (Some(&(1, 5, true)), Some((1, 5))));
        assert_eq!(Word::decode(&[8, 0, 0, 0, 1]), None);
        assert_eq!(Word::decode(b"\x07\0\0\0check"), None);
    }
}

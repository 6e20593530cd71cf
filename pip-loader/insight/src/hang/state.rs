//! What is known of a rank.

use cohort_base::boot::Lifecycle;
use cohort_base::picture::{Fact, Told};
use cohort_manager::asked::Said;
use pip_load::boot::Node;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One thread's wait.
#[derive(Clone, Debug, Default)]
pub struct Wait {
    /// The MPI function; empty if that is not sure.
    pub call: String,
    /// How long it has slept.
    pub since: Duration,
    /// The thread.
    pub thread: i32,
    /// Whether one of the needs is enough.
    pub is_any: bool,
    /// What it waits for.
    pub needs: Vec<Fact>,
}

/// What a rank does.
#[derive(Clone, Debug, Default)]
pub struct RankState {
    /// Its rank in `MPI_COMM_WORLD`.
    pub world: u32,
    /// Its process.
    pub pid: i32,
    /// It has ended.
    pub has_ended: bool,
    /// It uses MPI: it has begun, and not ended that.
    pub is_initialized: bool,
    /// It has ended its use of MPI.
    pub is_finalized: bool,
    /// The kernel's letter for what its task does, or a blank.
    pub run: char,
    /// Somebody uses its queues, so that they cannot be looked at.
    pub is_busy: bool,
    /// How many of its threads wait.
    pub waiting: u32,
    /// The MPI function that it called last.
    pub called: String,
    /// What its threads wait for.
    pub waits: Vec<Wait>,
    /// Its requests that are pending.
    pub pending: Vec<Fact>,
    /// Messages that no receive has taken.
    pub unexpected: Vec<Fact>,
    /// Locks that it holds.
    pub holds: Vec<Fact>,
    /// Packets to other nodes that it has sent, and those that it has received.
    pub packets: [u64; 2],
    /// Something of it is on its way between nodes.
    pub is_under_way: bool,
    /// Where in its program it is, if somebody has looked.
    pub place: Option<String>,
}

/// A rank that is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Its index on the node.
    pub local: usize,
    /// Its rank in `MPI_COMM_WORLD`.
    pub world: u32,
    /// Its process.
    pub pid: i32,
    /// Whether its task has ended.
    pub has_ended: bool,
}

impl RankState {
    /// Looks at a rank.
    #[must_use]
    pub fn of(node: &Node, asked: Asked) -> Self {
        let stage = node.ranks()[asked.local].lifecycle.load(std::sync::atomic::Ordering::Acquire);
        let mut state = Self {
            world: asked.world,
            pid: asked.pid,
            has_ended: asked.has_ended,
            is_initialized: stage == Lifecycle::Initialized as u32,
            is_finalized: stage == Lifecycle::Finalized as u32,
            run: run_state(asked.pid).unwrap_or(' '),
            ..Self::default()
        };
        node.look(asked.local as u32, &mut |fact| state.take(fact));
        state
    }

    /// What a rank with an address space of its own said of itself; `None`: it uses MPI, and has not answered.
    #[must_use]
    pub fn told(asked: Asked, said: Option<&Said>) -> Self {
        let is_at = |stage: Lifecycle| said.is_some_and(|said| said.stage == stage as u32);
        let mut state = Self {
            world: asked.world,
            pid: asked.pid,
            has_ended: asked.has_ended,
            is_initialized: said.is_none() || is_at(Lifecycle::Initialized),
            is_finalized: is_at(Lifecycle::Finalized),
            run: run_state(asked.pid).unwrap_or(' '),
            is_busy: said.is_none(),
            ..Self::default()
        };
        for fact in said.iter().flat_map(|said| &said.facts) {
            let is_address = fact.told != Told::Traffic && fact.key != 0;
            // Elsewhere it may be another thing's.
            let apart = if is_address { u64::from(asked.world) << 40 } else { 0 };
            state.take(Fact { key: fact.key ^ apart, ..*fact });
        }
        state
    }

    /// Adds what was told.
    pub fn take(&mut self, fact: Fact) {
        match fact.told {
            Told::Rank => {
                self.called = fact.name().to_owned();
                self.waiting = fact.count;
            }
            Told::Busy => self.is_busy = true,
            Told::Wait => self.waits.push(Wait {
                call: fact.name().to_owned(),
                since: Duration::from_micros(fact.number),
                thread: fact.member,
                is_any: fact.count != 0,
                needs: Vec::new(),
            }),
            Told::Posted | Told::Offered => self.pending.push(fact),
            Told::Unexpected => self.unexpected.push(fact),
            Told::Holds => self.holds.push(fact),
            Told::Traffic => {
                self.packets = [fact.number, fact.key];
                self.is_under_way = fact.count > 0;
            }
            _ => {
                if let Some(wait) = self.waits.last_mut() {
                    wait.needs.push(fact);
                }
            }
        }
    }

    /// Whether it is in `MPI_Finalize`, in which it waits for others.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        let mut needs = self.waits.iter().flat_map(|wait| &wait.needs);
        !self.has_ended && needs.any(|need| need.told == Told::End)
    }

    /// What it waits for, if one of its threads does.
    #[must_use]
    pub fn wait(&self) -> Option<&Wait> {
        self.waits.first()
    }
}

/// What the kernel says that a process does: its first thread or, once that has left, another one.
#[must_use]
pub fn run_state(pid: i32) -> Option<char> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let first = thread_state(&folder)?;
    if first != 'Z' {
        return Some(first);
    }
    let threads = std::fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    let states = threads.filter_map(|thread| thread_state(&thread.path()));
    // Who runs is what counts.
    let state = states.filter(|state| !matches!(state, 'Z' | 'X')).min_by_key(|state| *state != 'R');
    Some(state.unwrap_or(first))
}

/// What the thread with this folder does.
fn thread_state(folder: &Path) -> Option<char> {
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    rest.trim_start().chars().next()
}

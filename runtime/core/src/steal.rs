//! What a thief does for another rank.

use crate::ranks::Node;
use crate::ranks::Rank;
use crate::ranks::hooks;
use crate::turn::{self, Look, Turn};
use cohort_base::LocalRank;
use cohort_base::clock::ticks;
use cohort_base::trace::{self, Event, EventKind, Ring};
use cohort_steal::TaskKind;
use cohort_steal::policy::{Outcome, Victims};

/// Pieces of work that a thief does before it looks at its own work again.
const PIECES_PER_STEAL: u32 = 4;

/// The ranks of a node as victims of one thief, the rank `id`.
#[derive(Debug)]
pub struct Thief {
    node: &'static Node,
    id: LocalRank,
    is_worker: bool,
    passes_receivers: bool,
}

impl Thief {
    /// A task of this rank as a thief.
    #[must_use]
    pub fn of(rank: &Rank) -> Self {
        Self { node: rank.node(), id: rank.id(), is_worker: false, passes_receivers: false }
    }

    /// The same, which passes over ranks that expect receives only, if so.
    #[must_use]
    pub fn passing_receivers(self, passes_receivers: bool) -> Self {
        Self { passes_receivers, ..self }
    }

    /// A dedicated worker, of which this rank is the host.
    #[must_use]
    pub fn of_worker(host: &Rank) -> Self {
        Self { is_worker: true, ..Self::of(host) }
    }

    fn steal(&self, victim: &Rank, kind: TaskKind) -> Outcome {
        match kind {
            TaskKind::Shm => steal_from(victim, self.id),
            TaskKind::Net => steal_network(victim, self.id),
        }
    }

    /// The same, noted if it moves something.
    #[cold]
    fn steal_traced(&self, victim: &Rank, kind: TaskKind, trace: &Ring) -> Outcome {
        let begin = ticks();
        let outcome = self.steal(victim, kind);
        if let Outcome::Progressed { bytes } = outcome {
            let thread = match self.is_worker {
                true => trace::WORKER,
                false => trace::thread(),
            };
            trace.note(&Event {
                bytes,
                flow: u64::from(kind == TaskKind::Net),
                ..Event::since(EventKind::Steal, victim.id(), thread, begin)
            });
        }
        outcome
    }
}

impl Victims for Thief {
    fn count(&self) -> u32 {
        self.node.size()
    }

    #[inline]
    fn is_available(&self, rank: LocalRank, kind: TaskKind) -> bool {
        let expected = self.node.rank(rank).expected();
        match self.passes_receivers {
            false => expected.is_raised(kind),
            true => expected.is_raised_beyond_receives(kind),
        }
    }

    fn try_progress(&self, rank: LocalRank, kind: TaskKind) -> Outcome {
        let victim = self.node.rank(rank);
        match self.node.rank(self.id).trace() {
            None => self.steal(victim, kind),
            Some(trace) => self.steal_traced(victim, kind, trace),
        }
    }
}

/// One look at a victim's network, and at what was waiting for its messages.
pub fn steal_network(victim: &Rank, thief: LocalRank) -> Outcome {
    if !victim.node().has_network() {
        return Outcome::Idle;
    }
    let Some(mut claim) = victim.try_steal(thief) else {
        return Outcome::Busy;
    };
    let turn = turn::turn(&mut claim, Look::Network);
    if turn.work.is_none() && !turn.moved && !turn.flows {
        // Worth another try soon, though no event will tell.
        return match hooks::is_stalled(&mut claim) {
            true => Outcome::Busy,
            false => Outcome::Idle,
        };
    }
    drop(claim);
    help(turn)
}

/// One bounded piece of a victim's progress within the node.
fn steal_from(victim: &Rank, thief: LocalRank) -> Outcome {
    let Some(mut claim) = victim.try_steal(thief) else {
        return Outcome::Busy;
    };
    let turn = turn::turn(&mut claim, Look::WithinNode);
    drop(claim);
    let moved = turn.moved;
    match help(turn) {
        Outcome::Progressed { bytes: 0 } if !moved => Outcome::Idle,
        outcome => outcome,
    }
}

/// Does some of the work that a turn found.
fn help(turn: Turn) -> Outcome {
    let helped = turn.work.map_or(0, |work| work.run(PIECES_PER_STEAL));
    Outcome::Progressed { bytes: turn.bytes + helped }
}

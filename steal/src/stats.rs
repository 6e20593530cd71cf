//! Steal counters: what a rank did for others.
//!
//! A worker counts on its own lines only, with Relaxed additions that order nothing: the report
//! is written when the ranks have ended, and whoever reads earlier gets a
//! recent value of each counter, not one consistent cut.

use crate::TaskKind;
use crate::outcome::{Decision, MatchTiming, Outcome};
use cohort_base::LocalRank;
use cohort_base::sync::atomic::{AtomicU64, Ordering};

/// Counters of one kind of task.
#[derive(Debug, Default)]
struct KindCounters {
    attempts: AtomicU64,
    hits: AtomicU64,
    empty: AtomicU64,
    busy: AtomicU64,
    bytes: AtomicU64,
}

/// The counters of one worker.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Counters<'a> {
    kinds: [KindCounters; TaskKind::COUNT],
    parks: AtomicU64,
    wakes: AtomicU64,
    own_turns: AtomicU64,
    own_hits: AtomicU64,
    offloaded: AtomicU64,
    helped: AtomicU64,
    late: AtomicU64,
    in_time: AtomicU64,
    turned_on: AtomicU64,
    turned_off: AtomicU64,
    helper_chosen: AtomicU64,
    slept: AtomicU64,
    helping: AtomicU64,
    victims: &'a [AtomicU64],
}

/// What [`Counters`] held of one kind of task. `attempts == hits + empty + busy` at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSnapshot {
    /// Tries on a victim that announced itself.
    pub attempts: u64,
    /// Tries that moved something.
    pub hits: u64,
    /// Tries that found nothing to do.
    pub empty: u64,
    /// Tries that found the claim taken.
    pub busy: u64,
    /// Bytes of messages moved for others.
    pub bytes: u64,
}

/// What [`Counters`] held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Network tasks.
    pub net: KindSnapshot,
    /// Tasks within the node.
    pub shm: KindSnapshot,
    /// How often this rank went to sleep.
    pub parks: u64,
    /// How often this rank woke another one.
    pub wakes: u64,
    /// Turns that a signal or a thread of this rank took while the rank computed.
    pub own_turns: u64,
    /// Those of them that moved something.
    pub own_hits: u64,
    /// Sends and receives that this rank left to a dedicated worker to post.
    pub offloaded: u64,
    /// `auto`: receives left behind whose messages were met while the rank computed.
    pub helped: u64,
    /// `auto`: those whose messages the rank found when it came to wait.
    pub late: u64,
    /// `auto`: those whose messages came while the rank waited.
    pub in_time: u64,
    /// `auto`: how often the fallback was turned on.
    pub turned_on: u64,
    /// `auto`: how often it was turned off.
    pub turned_off: u64,
    /// `auto`: how often the fallback was a helper, because no signal could reach the program.
    pub helper_chosen: u64,
    /// How long this rank slept in waits, in ticks of `cohort_base::clock`.
    pub slept: u64,
    /// How long it took to move something for others while it waited, in ticks; only with `COHORT_STATS=1` and its
    /// like.
    pub helping: u64,
}

impl<'a> Counters<'a> {
    /// Zeros. `victims` counts the hits by victim, one element per rank of the node; victims
    /// without an element are not told apart.
    #[must_use]
    pub fn new(victims: &'a [AtomicU64]) -> Self {
        Self { victims, ..Self::default() }
    }

    /// Counts one try.
    pub fn count_attempt(&self, victim: LocalRank, kind: TaskKind, outcome: Outcome) {
        let counters = &self.kinds[kind.index()];
        add(&counters.attempts, 1);
        match outcome {
            Outcome::Busy => add(&counters.busy, 1),
            Outcome::Idle => add(&counters.empty, 1),
            Outcome::Progressed { bytes } => {
                add(&counters.hits, 1);
                add(&counters.bytes, bytes);
                if let Some(hits) = self.victims.get(victim as usize) {
                    add(hits, 1);
                }
            }
        }
    }

    /// Counts one sleep.
    pub fn count_park(&self) {
        add(&self.parks, 1);
    }

    /// Counts the ticks of one sleep.
    pub fn count_slept(&self, ticks: u64) {
        add(&self.slept, ticks);
    }

    /// Counts the ticks of one step that moved something for another rank.
    pub fn count_helping(&self, ticks: u64) {
        add(&self.helping, ticks);
    }

    /// Counts one wake-up of another rank.
    pub fn count_wake(&self) {
        add(&self.wakes, 1);
    }

    /// Counts one turn of a signal or thread of this rank.
    pub fn count_own_turn(&self, hit: bool) {
        add(&self.own_turns, 1);
        add(&self.own_hits, u64::from(hit));
    }

    /// Counts one post that was left to a dedicated worker.
    pub fn count_offloaded(&self) {
        add(&self.offloaded, 1);
    }

    /// Counts one receive that was left behind (`auto`).
    pub fn count_match(&self, timing: MatchTiming) {
        match timing {
            MatchTiming::Helped => add(&self.helped, 1),
            MatchTiming::Late => add(&self.late, 1),
            MatchTiming::InTime => add(&self.in_time, 1),
        }
    }

    /// Counts one decision (`auto`).
    pub fn count_decision(&self, decision: Decision) {
        match decision {
            Decision::Keep => {}
            Decision::TurnOn => add(&self.turned_on, 1),
            Decision::TurnOff => add(&self.turned_off, 1),
        }
    }

    /// Counts one choice of a helper as the fallback (`auto`).
    pub fn count_helper_chosen(&self) {
        add(&self.helper_chosen, 1);
    }

    /// Hits on one victim.
    #[must_use]
    pub fn hits_on(&self, victim: LocalRank) -> u64 {
        self.victims.get(victim as usize).map_or(0, get)
    }

    /// All counters now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let [net, shm] = [&self.kinds[0], &self.kinds[1]].map(|counters| KindSnapshot {
            attempts: get(&counters.attempts),
            hits: get(&counters.hits),
            empty: get(&counters.empty),
            busy: get(&counters.busy),
            bytes: get(&counters.bytes),
        });
        Snapshot {
            net,
            shm,
            parks: get(&self.parks),
            wakes: get(&self.wakes),
            own_turns: get(&self.own_turns),
            own_hits: get(&self.own_hits),
            offloaded: get(&self.offloaded),
            helped: get(&self.helped),
            late: get(&self.late),
            in_time: get(&self.in_time),
            turned_on: get(&self.turned_on),
            turned_off: get(&self.turned_off),
            helper_chosen: get(&self.helper_chosen),
            slept: get(&self.slept),
            helping: get(&self.helping),
        }
    }
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

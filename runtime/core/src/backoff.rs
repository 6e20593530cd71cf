//! How long a rank goes on taking turns before it sleeps, and when it gives its CPU away meanwhile.

use crate::cpu::is_taken;
use crate::ranks::Node;
use crate::ranks::Rank;
use crate::threads::Threads;
use crate::yield_policy::YieldPolicy;
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::settings::WaitMode;
use cohort_steal::policy::moment::{self, OWN_TURNS, SCARCE_TURNS};

/// Turns in microseconds without any movement before a rank parks, if it has a CPU of its own.
const SPIN_US: u64 = 100;

/// The same in nanoseconds when ranks outnumber CPUs: a few turns.
const CROWDED_NS: u64 = 500;

/// How long a rank gives its CPU away again and again before it parks, when ranks outnumber CPUs or threads of a rank
/// wait beside each other. Those it waits for are likely to be ready to run, and running them costs less than a sleep
/// and a wake. If nobody is, its CPU has nothing else to do: a CPU that sleeps takes tens of microseconds to come back,
/// above all in a virtual machine. With three yields in place of this, mpi4py's collectives of five ranks on two CPUs
/// took 1.16 times as long, and left an eighth of the CPUs unused.
const GIVES_WAY_US: u64 = 200;

/// CPU time that such a rank takes at most before it parks, in turns and in yields that gave its CPU to nobody: about
/// what a sleep and a wake cost. A yield gives the CPU to others of the own session only, if the kernel shares CPUs
/// between sessions, as Linux does. So where the nodes of a job share a machine, a rank that waits by yields takes as
/// much of a CPU as a rank of another node that sends to it there: scatters of 4 KB among four nodes on two CPUs then
/// took two to three times as long, while those who wait for an answer have it before.
const FRUITLESS_US: u64 = 15;

/// Time after which a rank that has a CPU of its own gives it away, again and again: the kernel may
/// have put those it waits for on the same CPU, or somebody else on theirs.
const GENEROUS_US: u64 = 10;

/// Turns between two looks at the clock.
const TURNS_PER_LOOK: u32 = SCARCE_TURNS;

/// [`CROWDED_NS`] in ticks.
fn crowded_ticks() -> u64 {
    ticks_of_us(CROWDED_NS) / 1000
}

/// A rank that waits and has a CPU of its own gives it away for a moment. If others take it again and again, the rank
/// moves to another one ([`Cpu`](crate::cpu::Cpu)). By its own thread.
pub(crate) fn give_way(rank: &Rank) {
    let took = rank.node().yield_policy().give_way();
    // One of several threads of a rank has nothing to tell of the others.
    if !rank.threads_multiple()
        && rank.node().size() > 1
        && let Some(here) = rank.cpu().gave_way(took)
    {
        let node = rank.node();
        let others = (0..node.size()).filter(|&other| other != rank.id());
        rank.cpu().leave(here, others.filter_map(|other| node.rank(other).cpu().number()));
    }
}

/// A rank has given its CPU away in a wait, where ranks outnumber CPUs: for the first time there, or not. It may gather
/// with others of its node ([`Cpu`](crate::cpu::Cpu)). By its own thread.
#[inline]
pub(crate) fn gather(rank: &Rank, is_first: bool) {
    if rank.cpu().has_home() && !rank.threads_multiple() {
        rank.cpu().gather(is_first);
    }
}

/// How long a rank goes on taking turns without movement.
#[derive(Debug)]
pub struct Backoff<'rank> {
    limit: Option<u64>,
    /// Those who wait beside each other, if they may yield.
    threads: Option<&'rank Threads>,
    since: u64,
    /// When the rank had its CPU back last, in ticks.
    resumed: u64,
    /// Its turns, and its yields that gave the CPU to nobody, in ticks.
    fruitless: u64,
    turns: u32,
    /// Times that a rank with a CPU of its own gave it away.
    yields: u32,
    may_yield: bool,
    is_scarce: bool,
}

impl<'rank> Backoff<'rank> {
    /// That of a rank's thread, which may be one of several.
    #[inline]
    pub(crate) fn of_thread(rank: &'rank Rank) -> Self {
        let is_auto = rank.node().settings().wait == WaitMode::Auto;
        let threads = (is_auto && rank.threads_multiple()).then(|| rank.threads());
        Self { threads, ..Self::of(rank.node()) }
    }

    /// That of a thread of the runtime.
    #[inline]
    #[must_use]
    pub fn of(node: &Node) -> Self {
        let limit = match node.settings().wait {
            WaitMode::Spin => None,
            WaitMode::Park => Some(0),
            WaitMode::Auto if node.is_crowded() => Some(crowded_ticks()),
            WaitMode::Auto => Some(ticks_of_us(SPIN_US)),
        };
        Self {
            limit,
            threads: None,
            since: 0,
            resumed: 0,
            fruitless: 0,
            turns: 0,
            yields: 0,
            may_yield: node.settings().wait == WaitMode::Auto && node.is_crowded(),
            is_scarce: moment::is_scarce(node.is_crowded(), node.has_network()),
        }
    }

    /// Something moved.
    #[inline]
    pub fn renew(&mut self) {
        self.turns = 0;
        self.yields = 0;
    }

    /// Something moved that may be others': it is too early to rest, but they may need help.
    #[inline]
    pub(crate) fn stay(&mut self) {
        self.turns = OWN_TURNS.max(self.turns);
        self.since = ticks();
        self.begin_resting();
        self.yields = 0;
    }

    /// The rank has its CPU, and nothing was in vain yet.
    #[inline]
    fn begin_resting(&mut self) {
        self.resumed = self.since;
        self.fruitless = 0;
    }

    /// Whether the rank has waited so long that it looks at what others have to do. That takes cache
    /// lines away from them, above all from those who are about to answer.
    #[inline]
    pub(crate) fn is_time_to_help(&self) -> bool {
        self.may_yield && !self.is_scarce || moment::is_due(self.turns, self.is_scarce)
    }

    /// Instead of parking, gives the CPU away once more. `false`: it is time to park.
    pub(crate) fn gives_way(&mut self, yield_policy: &YieldPolicy) -> bool {
        if !(self.may_yield || self.is_shared()) {
            return false;
        }
        let now = ticks();
        self.fruitless = self.fruitless.saturating_add(now.wrapping_sub(self.resumed));
        let is_late = now.wrapping_sub(self.since) > ticks_of_us(GIVES_WAY_US);
        if is_late || self.fruitless > ticks_of_us(FRUITLESS_US) {
            return false;
        }
        let took = yield_policy.give_way();
        self.resumed = now.wrapping_add(took.unwrap_or(0));
        self.fruitless += took.filter(|&took| !is_taken(took)).unwrap_or(0);
        if let (Some(threads), Some(took)) = (self.threads, took) {
            threads.note_yield(is_taken(took));
        }
        took.is_some()
    }

    /// Whether it is time for a rank with a CPU of its own to give it away.
    #[inline]
    pub(crate) fn is_generous(&mut self) -> bool {
        if self.may_yield || !self.turns.is_multiple_of(TURNS_PER_LOOK) || self.limit.is_none() {
            return false;
        }
        let now = ticks();
        if now.wrapping_sub(self.since) < ticks_of_us(GENEROUS_US) * u64::from(self.yields + 1) {
            return false;
        }
        self.yields += 1;
        true
    }

    /// Between two turns without movement: gives the CPU away for a moment, if it is time to. Says whether it did.
    #[inline]
    pub fn is_polite(&mut self, node: &Node) -> bool {
        let is_generous = self.is_generous();
        if is_generous {
            node.yield_policy().give_way();
        }
        is_generous
    }

    /// Whether several threads of the rank wait, which then wait as where ranks outnumber CPUs.
    #[inline]
    fn is_shared(&self) -> bool {
        self.threads.is_some_and(Threads::share_a_wait)
    }

    /// Whether this turn looks at the clock: each one where ranks that outnumber CPUs look at a network, which takes
    /// longer than the clock.
    #[inline]
    fn is_time_to_look(&self) -> bool {
        self.may_yield && !self.is_scarce || self.turns.is_multiple_of(TURNS_PER_LOOK)
    }

    /// Nothing moved in one more turn: is it time to park?
    #[inline]
    pub fn is_over(&mut self) -> bool {
        if self.turns == 0 {
            self.since = ticks();
            self.begin_resting();
        }
        // Counted also by those who never park: it tells when to steal. Who begins anew after all
        // numbers loses a moment.
        self.turns = self.turns.wrapping_add(1);
        let limit = match self.limit {
            None => return false,
            // The others are ready to run: one look, and it is their turn again.
            Some(_) if self.threads.is_some_and(Threads::share_a_cpu) => return true,
            Some(limit) if self.is_shared() => limit.min(crowded_ticks()),
            Some(limit) => limit,
        };
        limit == 0 || self.is_time_to_look() && ticks().wrapping_sub(self.since) >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of a rank with a CPU of its own, which waits for a minute before it parks.
    fn patient() -> Backoff<'static> {
        Backoff {
            limit: Some(ticks_of_us(60_000_000)),
            threads: None,
            since: 0,
            resumed: 0,
            fruitless: 0,
            turns: 0,
            yields: 0,
            may_yield: false,
            is_scarce: false,
        }
    }

    #[test]
    fn a_rank_with_a_cpu_gives_it_away_at_intervals() {
        let mut backoff =
            Backoff { since: ticks().wrapping_sub(2 * ticks_of_us(GENEROUS_US)), turns: TURNS_PER_LOOK, ..patient() };
        assert!(backoff.is_generous());
        backoff.yields = 1 << 20;
        assert!(!backoff.is_generous(), "its next turn is seconds away");
        backoff.limit = None;
        backoff.yields = 0;
        assert!(!backoff.is_generous(), "who spins keeps the CPU");
    }

    /// One that has waited for longer than its limit, and is not at a turn that looks at the clock anyway.
    fn late(is_scarce: bool) -> Backoff<'static> {
        Backoff {
            limit: Some(1),
            since: ticks().wrapping_sub(ticks_of_us(GENEROUS_US)),
            turns: TURNS_PER_LOOK,
            may_yield: true,
            is_scarce,
            ..patient()
        }
    }

    #[test]
    fn where_ranks_outnumber_cpus_each_turn_at_a_network_looks_at_the_clock() {
        assert!(late(false).is_over());
        assert!(!late(true).is_over(), "without a network turns are shorter than a look at the clock");
    }

    #[test]
    fn who_sees_data_flow_steals_and_does_not_rest() {
        let mut backoff = patient();
        backoff.stay();
        assert!(backoff.is_time_to_help());
        for _ in 0..4 * TURNS_PER_LOOK {
            assert!(!backoff.is_over());
        }
    }

    #[test]
    fn threads_that_take_each_others_cpus_look_once_at_a_time() {
        let threads = Threads::default();
        threads.set_multiple();
        let mut backoff = Backoff { threads: Some(&threads), ..patient() };
        threads.note_yield(true);
        threads.begin_wait();
        assert!(!backoff.is_over(), "nobody waits beside it");
        threads.begin_wait();
        assert!(backoff.is_over() && backoff.is_over());
        threads.note_yield(false);
        assert!(!backoff.is_over(), "there are CPUs for all");
    }

    #[test]
    fn a_rank_that_never_parks_steals_after_its_own_turns() {
        let mut backoff = Backoff { limit: None, ..patient() };
        for _ in 0..OWN_TURNS {
            assert!(!backoff.is_time_to_help() && !backoff.is_over());
        }
        assert!(backoff.is_time_to_help());
        backoff.renew();
        assert!(!backoff.is_time_to_help());
    }

    #[test]
    fn a_rank_whose_yields_give_the_cpu_to_nobody_parks() {
        let policy = YieldPolicy::default();
        let waits = || {
            let mut backoff = Backoff { may_yield: true, ..patient() };
            let _ = backoff.is_over();
            backoff
        };
        // A slow machine may take the CPU for too long once.
        assert!((0..100).any(|_| waits().gives_way(&policy)));
        let mut backoff = waits();
        // As after a turn that took so long; others did not run.
        backoff.resumed = backoff.since.wrapping_sub(2 * ticks_of_us(FRUITLESS_US));
        assert!(!backoff.gives_way(&policy) && !backoff.gives_way(&policy));
        backoff.stay();
        assert_eq!(backoff.fruitless, 0, "something flows");
    }
}

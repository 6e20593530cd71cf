//! How a rank waits.
//!
//! A waiting rank holds its claim, so that nobody steals from it (rule 1), and takes turns:
//! its own messages first, then, when they have rested for a moment, a step of stealing. When nothing moved for a
//! while it parks, without its claim; thieves may then work for it, and whoever completes
//! something of it, or sends to it, wakes it.
//!
//! How long it takes turns before it parks depends on the node: long when every rank has a
//! CPU; when ranks outnumber CPUs, long as long as nobody else wants the rank's CPU, and very short when
//! somebody does; for ever with `COHORT_WAIT=spin`.
//!
//! # Why nothing is lost
//! The rank announces its sleep (and, if it may steal, enters the idle set), passes its heavy
//! barrier, and looks at everything once more: the condition, its own messages, and all victims.
//! Whoever publishes something passes the light barrier before it asks whether the rank sleeps.
//! Only a victim whose claim was taken at the last look may hide work; then the sleep is short.

use crate::arch::{TICKS_PER_US, ticks};
use crate::claim::Claim;
use crate::courtesy::Courtesy;
use crate::lifecycle;
use crate::net;
use crate::node::Node;
use crate::progress::{self, Thief};
use crate::rank::Rank;
use crate::threads::Threads;
use cohort_base::settings::WaitMode;
use cohort_base::sync::atomic::Ordering;
use cohort_base::sync::pause;
use cohort_steal::park::Awake;
use cohort_steal::policy::{Outcome, Worker};
use core::time::Duration;

/// Turns in microseconds without any movement before a rank parks, if it has a CPU of its own.
const SPIN_US: u64 = 100;

/// The same when ranks outnumber CPUs, in ticks: a few turns.
const CROWDED_TICKS: u64 = 1500;

/// Times that a rank gives its CPU to somebody before it parks, when ranks outnumber CPUs: those it waits for
/// are likely to be ready to run, and running them costs less than a sleep and a wake.
const YIELDS: u32 = 3;

/// The same for one of several threads of a rank, which wait in turns and for messages of each other's.
const YIELDS_OF_THREADS: u32 = 64;

/// A `sched_yield` that takes longer than this has let somebody run: a quick one takes half a microsecond.
const YIELD_US: u64 = 2;

/// How long a rank goes on giving way to nobody, when ranks outnumber CPUs: its CPU has nothing else to do then.
/// Sleeping would cost whoever brings work for it more than that work is often worth.
const ALONE_US: u64 = 200;

/// Time after which a rank that has a CPU of its own gives it away, again and again: the kernel may have put those it waits for on the
/// same CPU, or somebody else on theirs.
const GENEROUS_US: u64 = 10;

/// Turns between two looks at the clock.
const TURNS_PER_LOOK: u32 = 16;

/// Longest sleep while a victim's claim hides whether it has work.
pub(crate) const UNSURE_SLEEP: Duration = Duration::from_millis(1);

/// Turns without any movement, of a rank with a CPU of its own, before it steals: about half a microsecond.
const OWN_TURNS: u32 = 24;

/// Nonblocking calls that find nothing and follow each other faster than this are a loop.
const LOOP_US: u64 = 5;

/// How long such a loop sleeps in each of its calls while nobody yields ([`Courtesy`]).
const NAP: Duration = Duration::from_micros(100);

/// Pieces of work that a nonblocking call does.
const CHUNKS_PER_PROGRESS: u32 = 8;

/// What a rank waits for, for statistics and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// Completion of requests.
    Request,
    /// A message to probe.
    Probe,
    /// A collective operation.
    Collective,
}

/// Waits until `done`. Meanwhile the rank progresses its own messages and, as the policy says,
/// those of ranks that compute; then it parks.
///
/// `done` runs often, also under the rank's claim: it must be cheap and must not
/// call [`Rank::enter`]. What it looks at must be published by somebody who then calls
/// [`wake`], or by a message or completion of this rank. The caller does not hold the claim.
#[inline]
pub fn until(rank: &Rank, kind: WaitKind, mut done: impl FnMut() -> bool) {
    if !done() {
        until_with(rank, kind, |_| done());
    }
}

/// [`until`] whose condition looks at the rank through its claim.
pub fn until_with(rank: &Rank, kind: WaitKind, done: impl FnMut(&mut Claim<'_>) -> bool) {
    drop(until_claimed(rank.enter(), kind, done));
}

/// [`until_with`] for a caller that holds the claim, and gets it back.
pub(crate) fn until_claimed<'rank>(
    claim: Claim<'rank>,
    _kind: WaitKind,
    mut done: impl FnMut(&mut Claim<'_>) -> bool,
) -> Claim<'rank> {
    let rank = claim.rank();
    rank.parasite().suspend();
    let waiting = rank.node().waiting();
    // Relaxed: a hint for those who would help computing ranks.
    let is_counted = rank.means().rests();
    if is_counted {
        waiting.fetch_add(1, Ordering::Relaxed);
    }
    // What an adapting policy learns: whether the first look already finds what was awaited.
    let entered = rank.means().adapts().then(|| rank.observer().enter());
    let mut looks = 0;
    let observed = |claim: &mut Claim<'_>| {
        looks += 1;
        if looks == 2 && entered.is_some() {
            rank.observer().wait();
        }
        done(claim)
    };
    rank.threads().begin_wait();
    let mut claim = take_turns(claim, observed);
    rank.threads().end_wait();
    if let Some(since) = entered {
        rank.observer().leave(since);
    }
    if is_counted {
        waiting.fetch_sub(1, Ordering::Relaxed);
    }
    rank.parasite().resume(&mut claim);
    claim
}

/// [`until_claimed`] without a thought of what the policy does for ranks that compute.
fn take_turns<'rank>(
    claim: Claim<'rank>,
    mut done: impl FnMut(&mut Claim<'_>) -> bool,
) -> Claim<'rank> {
    let rank = claim.rank();
    let mut claim = Some(claim);
    let mut patience = Patience::of_thread(rank);
    let mut has_parked = false;
    loop {
        let mut held = claim.take().unwrap_or_else(|| rank.enter());
        if done(&mut held) {
            if has_parked {
                net::hand_over(rank.node());
            }
            return held;
        }
        let turn = progress::turn_of_waiter(&mut held);
        if let Some(opened) = turn.opened {
            drop(held);
            opened.work();
            patience.renew();
            continue;
        }
        let work = turn.work.or_else(|| progress::own_work(&mut held, true));
        if let Some(work) = work {
            drop(held);
            // When all pieces are taken, the next turn waits for those who do them.
            work.run(u32::MAX);
            patience.renew();
            continue;
        }
        if turn.moved {
            patience.renew();
            claim = Some(held);
            continue;
        }
        let worker = rank.worker(&mut held);
        if !patience.is_fresh() && steal(rank, worker) {
            patience.renew();
        } else if patience.is_over() || lifecycle::must_leave(rank) {
            drop(held);
            lifecycle::leave_if_told(rank);
            if patience.gives_way(rank.node().courtesy()) {
                continue;
            }
            has_parked = true;
            if park(rank, worker, &mut done) {
                patience.renew();
            }
            continue;
        } else if patience.is_generous() {
            drop(held);
            rank.node().courtesy().give_way();
            continue;
        } else {
            pause();
        }
        // Another thread of the rank may want its turn.
        claim = (!rank.threads_multiple()).then_some(held);
    }
}

/// One step of stealing; `true` when something moved.
#[inline]
fn steal(rank: &Rank, worker: &Worker<'_>) -> bool {
    rank.means().steals() && {
        let victims = Thief::of(rank);
        matches!(
            rank.stealing().step(worker, &victims),
            Outcome::Progressed { .. }
        )
    }
}

/// How long a rank goes on taking turns without movement.
pub(crate) struct Patience<'rank> {
    limit: Option<u64>,
    /// Those who wait beside each other, if they may yield.
    threads: Option<&'rank Threads>,
    since: u64,
    turns: u32,
    /// Times that somebody else ran when the rank gave way.
    yields: u32,
    may_yield: bool,
}

impl<'rank> Patience<'rank> {
    /// That of a rank's thread, which may be one of several.
    #[inline]
    fn of_thread(rank: &'rank Rank) -> Self {
        let is_auto = rank.node().settings().wait == WaitMode::Auto;
        let threads = (is_auto && rank.threads_multiple()).then(|| rank.threads());
        Self {
            threads,
            ..Self::of(rank.node())
        }
    }

    #[inline]
    pub(crate) fn of(node: &Node) -> Self {
        let limit = match node.settings().wait {
            WaitMode::Spin => None,
            WaitMode::Park => Some(0),
            WaitMode::Auto if node.is_crowded() => Some(CROWDED_TICKS),
            WaitMode::Auto => Some(SPIN_US * TICKS_PER_US),
        };
        Self {
            limit,
            threads: None,
            since: 0,
            turns: 0,
            yields: 0,
            may_yield: node.settings().wait == WaitMode::Auto && node.is_crowded(),
        }
    }

    /// Something moved.
    #[inline]
    pub(crate) fn renew(&mut self) {
        self.turns = 0;
        self.yields = 0;
    }

    /// Whether the rank has waited so briefly that it looks for its own messages only. Looking at what others have to do takes
    /// cache lines away from them, above all from those who are about to answer.
    #[inline]
    fn is_fresh(&self) -> bool {
        !self.may_yield && self.turns < OWN_TURNS
    }

    /// Instead of parking, gives the CPU away once more. `false`: it is time to park.
    fn gives_way(&mut self, courtesy: &Courtesy) -> bool {
        let yields = if self.is_shared() {
            YIELDS_OF_THREADS
        } else {
            YIELDS
        };
        if !(self.may_yield || self.is_shared()) || self.yields >= yields {
            return false;
        }
        if ticks().wrapping_sub(self.since) > ALONE_US * TICKS_PER_US {
            return false;
        }
        let Some(took) = courtesy.give_way() else {
            return false;
        };
        if took > YIELD_US * TICKS_PER_US {
            self.yields += 1;
        } else {
            self.yields = 0;
        }
        true
    }

    /// Whether it is time for a rank with a CPU of its own to give it away.
    #[inline]
    fn is_generous(&mut self) -> bool {
        if self.may_yield || !self.turns.is_multiple_of(TURNS_PER_LOOK) || self.limit.is_none() {
            return false;
        }
        let now = ticks();
        if now.wrapping_sub(self.since) < GENEROUS_US * TICKS_PER_US * u64::from(self.yields + 1) {
            return false;
        }
        self.yields += 1;
        true
    }

    /// Whether several threads of the rank wait, which then wait as where ranks outnumber CPUs.
    #[inline]
    fn is_shared(&self) -> bool {
        self.threads.is_some_and(Threads::share_a_wait)
    }

    /// Nothing moved in one more turn: is it time to park?
    #[inline]
    pub(crate) fn is_over(&mut self) -> bool {
        if self.turns == 0 {
            self.since = ticks();
        }
        // Counted also by those who never park: it tells when to steal. Who begins anew after all numbers loses a moment.
        self.turns = self.turns.wrapping_add(1);
        let limit = match self.limit {
            None => return false,
            Some(limit) if self.is_shared() => limit.min(CROWDED_TICKS),
            Some(limit) => limit,
        };
        limit == 0
            || self.turns.is_multiple_of(TURNS_PER_LOOK)
                && ticks().wrapping_sub(self.since) >= limit
    }
}

/// Parks until something happens; `true` when something was found or did happen. At the end of the wait
/// [`net::hand_over`] is to be called.
#[cold]
fn park(rank: &Rank, worker: &Worker<'_>, done: &mut impl FnMut(&mut Claim<'_>) -> bool) -> bool {
    let node = rank.node();
    // Another thread of the rank may change what the rank does for others meanwhile.
    let steals = rank.means().steals();
    if steals {
        node.idle().insert(rank.id());
    }
    let ticket = rank.park().prepare(node.barriers());
    let limit = match last_look(rank, worker, steals, done) {
        LastLook::Found => {
            rank.park().cancel(ticket);
            leave_idle(rank, worker, steals);
            return true;
        }
        LastLook::Nothing => None,
        LastLook::Unsure => Some(UNSURE_SLEEP),
    };
    rank.counters().count_park();
    let awake = net::sleep(rank, ticket, limit);
    leave_idle(rank, worker, steals) || awake == Awake::Woken
}

/// Leaves the idle set, if the rank entered it. `true`: a sender had picked the rank to work for another one, and it
/// has made its round of stealing.
fn leave_idle(rank: &Rank, worker: &Worker<'_>, entered: bool) -> bool {
    let picked = entered && !rank.node().idle().remove(rank.id());
    if picked {
        // Whatever the outcome, the errand is done: nobody else was sent for it.
        let _ = rank.stealing().last_look(worker, &Thief::of(rank));
    }
    picked
}

/// What a rank found after it had announced its sleep.
enum LastLook {
    Found,
    Nothing,
    Unsure,
}

fn last_look(
    rank: &Rank,
    worker: &Worker<'_>,
    steals: bool,
    done: &mut impl FnMut(&mut Claim<'_>) -> bool,
) -> LastLook {
    let mut claim = rank.enter();
    if done(&mut claim) {
        return LastLook::Found;
    }
    let turn = progress::turn(&mut claim);
    if let Some(opened) = turn.opened {
        drop(claim);
        opened.work();
        return LastLook::Found;
    }
    let work = turn.work.or_else(|| progress::own_work(&mut claim, true));
    if turn.moved || work.is_some() {
        // The next turn of the wait finds the work again.
        return LastLook::Found;
    }
    let is_stalled = claim.state().net.is_stalled();
    drop(claim);
    let others = match steals {
        true => rank.stealing().last_look(worker, &Thief::of(rank)),
        false => Outcome::Idle,
    };
    match others {
        Outcome::Idle if !is_stalled => LastLook::Nothing,
        Outcome::Idle | Outcome::Busy => LastLook::Unsure,
        Outcome::Progressed { .. } => LastLook::Found,
    }
}

/// One turn of progress that never waits (for `MPI_Test`, `MPI_Iprobe`). The caller does not
/// hold the rank's claim.
pub fn progress(rank: &Rank) {
    let mut claim = rank.enter();
    let turn = progress::turn(&mut claim);
    let work = turn.work.or_else(|| progress::own_work(&mut claim, true));
    drop(claim);
    if let Some(opened) = turn.opened {
        opened.work();
    } else if let Some(work) = work {
        work.run(CHUNKS_PER_PROGRESS);
    } else if !turn.moved {
        fruitless(rank);
    }
}

/// A nonblocking call found nothing. In a loop of such calls the program waits, so where ranks
/// or their threads outnumber CPUs it gives its CPU to those it waits for.
fn fruitless(rank: &Rank) {
    lifecycle::leave_if_told(rank);
    let node = rank.node();
    if node.settings().wait == WaitMode::Spin || !(node.is_crowded() || rank.threads_multiple()) {
        return;
    }
    let last = rank.last_fruitless();
    let is_loop = ticks().wrapping_sub(last.load(Ordering::Relaxed)) < LOOP_US * TICKS_PER_US;
    if is_loop && node.courtesy().give_way().is_none() {
        // What comes meanwhile ends the nap; what came just before it, and what no message tells, waits for its end.
        let ticket = rank.park().prepare(node.barriers());
        rank.park().sleep(ticket, Some(NAP));
        net::hand_over(node);
    }
    last.store(ticks(), Ordering::Relaxed);
}

/// Wakes `rank` if it sleeps in [`until`]; the caller has published (release) what its `done` looks at.
#[inline]
pub fn wake(rank: &Rank) {
    rank.wake();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_with_a_cpu_gives_it_away_at_intervals() {
        let mut patience = Patience {
            limit: Some(u64::MAX),
            threads: None,
            since: ticks().wrapping_sub(2 * GENEROUS_US * TICKS_PER_US),
            turns: TURNS_PER_LOOK,
            yields: 0,
            may_yield: false,
        };
        assert!(patience.is_generous());
        patience.yields = 1 << 20;
        assert!(!patience.is_generous(), "its next turn is seconds away");
        patience.limit = None;
        patience.yields = 0;
        assert!(!patience.is_generous(), "who spins keeps the CPU");
    }

    #[test]
    fn a_rank_that_never_parks_steals_after_its_own_turns() {
        let mut patience = Patience {
            limit: None,
            threads: None,
            since: 0,
            turns: 0,
            yields: 0,
            may_yield: false,
        };
        for _ in 0..OWN_TURNS {
            assert!(patience.is_fresh() && !patience.is_over());
        }
        assert!(!patience.is_fresh());
        patience.renew();
        assert!(patience.is_fresh());
    }
}

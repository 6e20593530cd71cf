//! A rank's own progress thread: one that polls (`COHORT_PROGRESS=thread`), polls while long receives
//! wait (`thread:rndv`), or sleeps until a helper has something for it (`helper`).
//!
//! Like a thief it takes the claim for one turn at a time. Where somebody else has it, nobody knows whether something
//! is left when it is given back: then the thread sleeps for a moment only, and looks again. The one that polls parks
//! like a waiting rank when nothing moves, in the rank's own slot, where every message to the rank wakes it. The others
//! sleep in a slot of their own, which only [`wake_sleeper`] and a receive that is left behind wake.

use crate::parts::OfRank as _;
use crate::round::Round;
use cohort_base::clock::ticks;
use cohort_base::settings::ThreadPin;
use cohort_base::sync::atomic::Ordering;
use cohort_base::sync::pause;
use cohort_base::trace::{self, Event, EventKind, NOBODY};
use cohort_core::Backoff;
use cohort_core::rank::Rank;
use cohort_core::turn;
use cohort_core::wait;
use cohort_core::wait::UNSURE_SLEEP;
use cohort_steal::park::Awake;
use cohort_steal::policy::RankThread;
use core::ffi::c_void;

/// Starts the thread that the policy gives the rank, if any.
pub(crate) fn start(rank: &'static Rank) {
    if rank.capabilities().thread() != RankThread::None {
        // SAFETY: `run` takes a rank, and looks at `must_stop` in every turn.
        unsafe { rank.thread().start(run, rank, || {}) };
    }
}

/// Stops the thread, if there is one, and waits for its end.
pub(crate) fn stop(rank: &Rank) {
    rank.thread().stop(|| {
        rank.wake();
        rank.sleeper().wake(rank.node().barriers());
    });
}

/// Wakes the sleeping thread of a rank; says whether it did sleep.
pub(crate) fn wake_sleeper(rank: &Rank) -> bool {
    rank.sleeper().wake(rank.node().barriers())
}

/// The thread.
///
/// # Safety
/// `rank` is a rank.
unsafe extern "C" fn run(rank: *const c_void) {
    // SAFETY: `start` passed a rank, which lives for ever.
    let rank = unsafe { &*rank.cast::<Rank>() };
    if rank.node().settings().thread_pin == ThreadPin::Spare {
        go_to_spare_cpus(rank);
    }
    match rank.capabilities().thread() {
        RankThread::None => {}
        RankThread::Polls => poll_while(rank, || true),
        RankThread::PollsForRendezvous => {
            let is_needed = || rank.watched().load(Ordering::Relaxed) > 0;
            let work = |_| {
                poll_while(rank, is_needed);
                Round::Nothing
            };
            sleep_until_woken(rank, is_needed, work);
        }
        RankThread::Sleeps => sleep_until_woken(rank, || false, |is_again| answer(rank, is_again)),
    }
}

/// Takes turns while `is_needed`, and parks in the rank's slot when nothing moves.
fn poll_while(rank: &Rank, is_needed: impl Fn() -> bool) {
    let mut backoff = Backoff::of(rank.node());
    let mut has_parked = false;
    while !rank.thread().must_stop() && is_needed() {
        if poll(rank) == Round::Moved {
            backoff.renew();
        } else if backoff.is_over() {
            has_parked = true;
            park(rank, &is_needed);
            backoff.renew();
        } else if !backoff.is_polite(rank.node()) {
            pause();
        }
    }
    if has_parked {
        wait::hand_over(rank.node());
    }
}

/// Sleeps in the thread's own slot, and works whenever it is woken or needed, and again soon after work that was
/// [unsure](Round::Unsure): the work is told that it is that.
fn sleep_until_woken(rank: &Rank, is_needed: impl Fn() -> bool, work: impl Fn(bool) -> Round) {
    let mut found = Round::Nothing;
    while !rank.thread().must_stop() {
        let limit = (found == Round::Unsure).then_some(UNSURE_SLEEP);
        let ticket = rank.sleeper().prepare(rank.node().barriers());
        if rank.thread().must_stop() || is_needed() {
            rank.sleeper().cancel(ticket);
            found = work(false);
            continue;
        }
        let is_woken = rank.sleeper().sleep(ticket, limit) == Awake::Woken;
        if (is_woken || limit.is_some()) && !rank.thread().must_stop() {
            found = work(!is_woken);
        }
    }
}

/// A helper has found a match: moves whatever can be moved. If it `is_again` looked, because the claim was somebody
/// else's, that may have been done since.
fn answer(rank: &Rank, is_again: bool) -> Round {
    let since = ticks();
    let first = poll(rank);
    if first == Round::Moved || first == Round::Nothing && !is_again {
        rank.counters().count_own_turn(first == Round::Moved);
    }
    let mut found = first;
    while found == Round::Moved && !rank.thread().must_stop() {
        found = poll(rank);
    }
    if rank.capabilities().adapts() {
        rank.observer().count_turn(since);
    }
    found
}

/// One turn for the rank, unless somebody else has its claim.
fn poll(rank: &Rank) -> Round {
    let since = if rank.trace().is_some() { ticks() } else { 0 };
    let Some(mut claim) = rank.try_steal(rank.id()) else {
        return Round::Unsure;
    };
    let turn = turn::own_turn(&mut claim);
    let work = turn.work.or_else(|| turn::own_work(&mut claim, None));
    drop(claim);
    let helped = work.map_or(0, |work| work.run(u32::MAX));
    let moved = turn.moved || turn.flows || helped > 0;
    if let Some(trace) = rank.trace()
        && moved
    {
        trace.note(&Event {
            bytes: turn.bytes + helped,
            ..Event::since(EventKind::Turn, NOBODY, trace::PROGRESS, since)
        });
    }
    if moved { Round::Moved } else { Round::Nothing }
}

/// Sleeps until something happens to the rank.
fn park(rank: &Rank, is_needed: &impl Fn() -> bool) {
    let ticket = rank.park().prepare(rank.node().barriers());
    let is_over = || rank.thread().must_stop() || !is_needed();
    let found = if is_over() { Round::Moved } else { poll(rank) };
    if found == Round::Moved {
        rank.park().cancel(ticket);
    } else {
        // While the owner is in a call it holds the claim and handles everything itself; when it
        // leaves, a message that it left behind may wait for us, so that the sleep is short.
        let is_unsure = found == Round::Unsure || rank.is_claimed();
        wait::sleep(rank, ticket, is_unsure.then_some(UNSURE_SLEEP));
    }
}

/// Moves the thread to the CPUs that no rank is bound to, if there are any.
fn go_to_spare_cpus(rank: &Rank) {
    let node = rank.node();
    let mut cpus = rustix::thread::CpuSet::new();
    for place in node.places() {
        if !node.has_rank_on(place) {
            cpus.set(place.cpu as usize);
        }
    }
    if cpus.count() > 0 && cpus.count() as usize != node.places().len() {
        // A refusal leaves the thread where it is.
        let _ = rustix::thread::sched_setaffinity(None, &cpus);
    }
}

#[cfg(test)]
mod tests;

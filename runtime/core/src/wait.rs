//! How a rank waits.
//!
//! A waiting rank holds its claim, so that nobody steals from it (rule 1), and takes turns:
//! its own messages first, then, when they have rested for a moment, a step of stealing. When nothing moved for a
//! while it parks, without its claim; thieves may then work for it, and whoever completes
//! something of it, or sends to it, wakes it.
//!
//! How long it takes turns before it parks depends on the node: long when every rank has a
//! CPU; when ranks outnumber CPUs, a moment, after which it offers its CPU to others for a while; for ever with
//! `COHORT_WAIT=spin`.
//!
//! # Why nothing is lost
//! The rank announces its sleep (and, if it may steal, enters the idle set), passes its heavy
//! barrier, and looks at everything once more: the condition, its own messages, and all victims.
//! Whoever publishes something passes the light barrier before it asks whether the rank sleeps.
//! Only a victim whose claim was taken at the last look may hide work; then the sleep is short.
//! Who passes over some victims ([`moment`]) may miss what it could do for others, who do it themselves later.

use crate::abort;
use crate::backoff::{Backoff, gather, give_way};
use crate::ranks::Claim;
use crate::ranks::Node;
use crate::ranks::Owner;
use crate::ranks::Rank;
use crate::ranks::hooks;
use crate::ranks::waits::{Awaited, WaitPlace, Waits};
use crate::sleep::Sleep;
use crate::steal::Thief;
use crate::turn;
use crate::work::{Turn, Work};
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::picture::{Fact, Told};
use cohort_base::settings::{Stats, WaitMode};
use cohort_base::sync::atomic::Ordering;
use cohort_base::sync::pause;
use cohort_base::trace::{self, Event, EventKind, NOBODY};
use cohort_steal::park::{Awake, Ticket};
use cohort_steal::policy::{Outcome, Worker, moment};
use core::time::Duration;

pub use crate::sleep::UNSURE_SLEEP;

/// Nonblocking calls that find nothing and follow each other faster than this are a loop.
const LOOP_US: u64 = 5;

/// How long such a loop sleeps in each of its calls while nobody yields ([`YieldPolicy`]).
pub(crate) const NAP: Duration = Duration::from_micros(100);

/// Pieces of work that a nonblocking call does.
const PIECES_PER_PROGRESS: u32 = 8;

/// What a rank waits for, where nobody needs to know more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// Completion of requests.
    Request,
    /// A message to probe.
    Probe,
    /// A collective operation.
    Collective,
}

/// A wait of which nobody knows more than that it waits.
impl Awaited for WaitKind {
    fn tell(&self, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(Fact::new(Told::Outside));
    }
}

/// Waits until `done`. Meanwhile the rank progresses its own messages and, as the policy says,
/// those of ranks that compute; then it parks.
///
/// `done` runs often, also under the rank's claim: it must be cheap and must not
/// call [`Rank::enter`]. What it looks at must be published by somebody who then calls
/// [`wake`], or by a message or completion of this rank. The caller does not hold the claim.
#[inline]
pub fn until(owner: Owner<'_>, what: impl Awaited, mut done: impl FnMut() -> bool) {
    if !done() {
        until_with(owner, what, |_| done());
    }
}

/// [`until`] whose condition looks at the rank through its claim.
pub fn until_with(owner: Owner<'_>, what: impl Awaited, done: impl FnMut(&mut Claim<'_>) -> bool) {
    drop(until_claimed(owner, owner.rank().enter(), what, done));
}

/// [`until_with`] for a caller that holds the claim of its rank, and gets it back.
pub fn until_claimed<'rank>(
    owner: Owner<'rank>,
    claim: Claim<'rank>,
    what: impl Awaited,
    mut done: impl FnMut(&mut Claim<'_>) -> bool,
) -> Claim<'rank> {
    let rank = claim.rank();
    let capabilities = rank.capabilities();
    let acts = capabilities.may_interrupt();
    if acts {
        hooks::wait_begins(rank);
    }
    let waiting = rank.node().waiting();
    // Relaxed: a hint for those who would help computing ranks.
    let is_counted = capabilities.rests();
    if is_counted {
        waiting.fetch_add(1, Ordering::Relaxed);
    }
    // What an adapting policy learns: whether the first look already finds what was awaited.
    let since = if acts { ticks() } else { 0 };
    let mut looks = 0;
    let observed = |claim: &mut Claim<'_>| {
        looks += 1;
        if looks == 2 && acts {
            hooks::wait_goes_on(rank);
        }
        done(claim)
    };
    rank.threads().begin_wait();
    let mut claim = take_turns(owner, claim, &what, observed);
    rank.threads().end_wait();
    if is_counted {
        waiting.fetch_sub(1, Ordering::Relaxed);
    }
    if acts || rank.capabilities().may_interrupt() {
        hooks::wait_ends(&mut claim, since);
    }
    claim
}

/// [`until_claimed`] without a thought of what the policy does for ranks that compute.
fn take_turns<'rank>(
    owner: Owner<'rank>,
    claim: Claim<'rank>,
    what: &impl Awaited,
    mut done: impl FnMut(&mut Claim<'_>) -> bool,
) -> Claim<'rank> {
    let rank = claim.rank();
    let mut waiter = Waiter {
        owner,
        rank,
        backoff: Backoff::of_thread(rank),
        has_parked: false,
        has_yielded: false,
        noted: None,
        is_asked: false,
    };
    let mut claim = Some(claim);
    loop {
        let mut held = claim.take().unwrap_or_else(|| rank.enter());
        if done(&mut held) {
            waiter.end(&mut held);
            return held;
        }
        claim = match waiter.take_turn(held) {
            Turned::Moved(claim) => claim,
            Turned::Rests(held) => waiter.rest(held, what, &mut done),
        };
    }
}

/// One wait of a thread of a rank.
struct Waiter<'rank> {
    owner: Owner<'rank>,
    rank: &'rank Rank,
    backoff: Backoff<'rank>,
    has_parked: bool,
    /// It has given its CPU away in this wait.
    has_yielded: bool,
    /// Where others see what it waits for.
    noted: Option<WaitPlace>,
    /// Somebody has asked for help, and there was something to do since.
    is_asked: bool,
}

/// What became of a turn, and of the claim.
enum Turned<'rank> {
    /// Something of the rank's own has moved.
    Moved(Option<Claim<'rank>>),
    /// Nothing has.
    Rests(Claim<'rank>),
}

impl<'rank> Waiter<'rank> {
    /// A turn for the rank itself.
    #[inline(always)]
    fn take_turn(&mut self, mut held: Claim<'rank>) -> Turned<'rank> {
        let turn = turn::turn_of_waiter(&mut held);
        let work = turn.work.or_else(|| own_work(self.owner, &mut held));
        if let Some(work) = work {
            drop(held);
            // When all pieces are taken, the next turn waits for those who do them.
            run(self.rank, &work, u32::MAX);
            self.backoff.renew();
            return Turned::Moved(None);
        }
        if turn.moved {
            self.backoff.renew();
            return Turned::Moved(Some(held));
        }
        if turn.flows {
            self.backoff.stay();
        }
        Turned::Rests(held)
    }

    /// Helps others, sleeps, gives way or pauses: what the rank does while nothing of its own moves. Returns the claim
    /// if it is still held.
    #[inline(always)]
    fn rest(
        &mut self,
        mut held: Claim<'rank>,
        what: &impl Awaited,
        done: &mut impl FnMut(&mut Claim<'_>) -> bool,
    ) -> Option<Claim<'rank>> {
        let rank = self.rank;
        let worker = rank.worker(&mut held);
        if self.backoff.is_time_to_help() && steal(rank, worker, &thief(&mut held, self.is_asked)) {
            self.backoff.renew();
        } else if self.backoff.is_over() || abort::must_leave(rank) {
            drop(held);
            self.sleep(worker, what, done);
            return None;
        } else if self.backoff.is_generous() {
            drop(held);
            give_way(rank);
            return None;
        } else if rank.waits().is_asked() {
            show(held, &mut self.noted, what);
            return None;
        } else {
            pause();
        }
        // Another thread of the rank may want its turn.
        (!rank.threads_multiple()).then_some(held)
    }

    /// Gives way or parks.
    #[inline(always)]
    fn sleep(&mut self, worker: &Worker<'_>, what: &impl Awaited, done: &mut impl FnMut(&mut Claim<'_>) -> bool) {
        abort::leave_if_told(self.rank);
        if self.backoff.gives_way(self.rank.node().yield_policy()) {
            gather(self.rank, !core::mem::replace(&mut self.has_yielded, true));
            return;
        }
        self.has_parked = true;
        if park(self.owner, worker, &mut self.is_asked, &mut self.noted, what, done) {
            self.backoff.renew();
        }
    }

    /// The end of the wait.
    #[inline(always)]
    fn end(&self, held: &mut Claim<'_>) {
        if self.has_parked {
            hand_over(self.rank.node());
        }
        if let Some(place) = &self.noted {
            Waits::end(held, place);
        }
    }
}

/// The work that the rank looks for itself; what may call the program, unless a thread of the runtime's own waits.
#[inline(always)]
fn own_work(owner: Owner<'_>, held: &mut Claim<'_>) -> Option<Work> {
    let program = held.is_by_owner().then_some(owner);
    turn::own_work(held, program)
}

/// Does pieces of work outside of the claim, on a task of the rank.
fn run(rank: &Rank, work: &Work, pieces: u32) {
    let since = if rank.trace().is_some() { ticks() } else { 0 };
    let bytes = work.run(pieces);
    if let Some(trace) = rank.trace()
        && bytes > 0
    {
        trace.note(&Event { bytes, ..Event::since(EventKind::Copy, NOBODY, trace::thread(), since) });
    }
}

/// Lets somebody look at the rank who asks for its claim.
#[cold]
fn show(mut claim: Claim<'_>, noted: &mut Option<WaitPlace>, what: &impl Awaited) {
    noted.get_or_insert_with(|| Waits::begin(&mut claim, what));
    let node = claim.rank().node();
    drop(claim);
    node.yield_policy().give_way();
}

/// Sleeps after the announcement that the ticket stands for, until the rank is woken, what subsystems wait for has
/// come, or the limit is over; where the network is watched if nobody else does that. Whoever leaves a wait in which
/// it has slept so calls [`hand_over`].
pub fn sleep(rank: &Rank, ticket: Ticket, limit: Option<Duration>) -> Awake {
    let mut sleep = Sleep::new(limit);
    hooks::sleep_begins(rank, &mut sleep);
    let ticket = match rank.node().has_network() {
        true => match hooks::sleep(rank, ticket, &sleep) {
            Ok(awake) => return awake,
            Err(ticket) => ticket,
        },
        false => ticket,
    };
    rank.park().sleep(ticket, sleep.limit_without_descriptors())
}

/// By a thread that has come to the end of a wait in which it announced a sleep.
pub fn hand_over(node: &'static Node) {
    if node.has_network() {
        hooks::hand_over(node);
    }
}

/// A rank that waits, as a thief; `is_asked`: somebody has woken it for that.
#[inline]
fn thief(claim: &mut Claim<'_>, is_asked: bool) -> Thief {
    let rank = claim.rank();
    let is_scarce = moment::is_scarce(rank.node().is_crowded(), rank.node().has_network());
    let receives = moment::is_worthwhile(is_scarce, || is_asked || hooks::awaits_help(claim));
    Thief::of(rank).passing_receivers(!receives)
}

/// One step of stealing; `true` when something moved.
#[inline]
fn steal(rank: &Rank, worker: &Worker<'_>, victims: &Thief) -> bool {
    rank.capabilities().steals() && {
        let is_timed = rank.node().settings().stats == Stats::Calls;
        let since = if is_timed { ticks() } else { 0 };
        let outcome = rank.stealing().step(worker, victims);
        let has_moved = matches!(outcome, Outcome::Progressed { .. });
        if is_timed && has_moved {
            rank.counters().count_helping(ticks().wrapping_sub(since));
        }
        has_moved
    }
}

/// Parks until something happens; `true` when something was found or did happen. At the end of the wait
/// [`hand_over`] is to be called.
#[cold]
fn park(
    owner: Owner<'_>,
    worker: &Worker<'_>,
    is_asked: &mut bool,
    noted: &mut Option<WaitPlace>,
    what: &impl Awaited,
    done: &mut impl FnMut(&mut Claim<'_>) -> bool,
) -> bool {
    let rank = owner.rank();
    let node = rank.node();
    // Another thread of the rank may change what the rank does for others meanwhile.
    let steals = rank.capabilities().steals();
    if steals {
        rank.sleepers().enter(&node.idle(), rank.id());
    }
    let ticket = rank.park().prepare(node.barriers());
    let mut note = |claim: &mut Claim<'_>| {
        noted.get_or_insert_with(|| Waits::begin(claim, what));
    };
    let limit = match last_look(owner, worker, steals.then_some(&mut *is_asked), &mut note, done) {
        LastLook::Found => {
            rank.park().cancel(ticket);
            *is_asked |= leave_idle(rank, worker, steals);
            return true;
        }
        LastLook::Nothing { is_program } => {
            if is_program {
                rank.give_back_memory();
            }
            None
        }
        LastLook::Unsure => Some(UNSURE_SLEEP),
    };
    rank.counters().count_park();
    let since = ticks();
    let place = noted.as_ref().filter(|_| limit.is_none());
    place.inspect(|place| rank.waits().sleep(place, true));
    let awake = sleep(rank, ticket, limit);
    place.inspect(|place| rank.waits().sleep(place, false));
    rank.counters().count_slept(ticks().wrapping_sub(since));
    if let Some(trace) = rank.trace() {
        trace.note(&Event {
            flow: u64::from(awake == Awake::Woken),
            ..Event::since(EventKind::Sleep, NOBODY, trace::thread(), since)
        });
    }
    let is_picked = leave_idle(rank, worker, steals);
    *is_asked |= is_picked;
    is_picked || awake == Awake::Woken
}

/// Leaves the idle set, if the thread entered it. `true`: a sender had picked the rank to work for another one, or may
/// have missed it, and the thread has made its round of stealing.
fn leave_idle(rank: &Rank, worker: &Worker<'_>, entered: bool) -> bool {
    let node = rank.node();
    let picked = entered && rank.sleepers().leave(&node.idle(), rank.id(), node.barriers());
    if picked {
        // Whatever the outcome, the errand is done: nobody else was sent for it.
        let _ = rank.stealing().last_look(worker, &Thief::of(rank));
    }
    picked
}

/// What a rank found after it had announced its sleep.
enum LastLook {
    Found,
    /// `is_program`: it looked from a call of the program's.
    Nothing {
        is_program: bool,
    },
    Unsure,
}

/// With `is_asked`, which tells from then on whether there may be more to do for others, it looks at them too.
fn last_look(
    owner: Owner<'_>,
    worker: &Worker<'_>,
    is_asked: Option<&mut bool>,
    note: &mut impl FnMut(&mut Claim<'_>),
    done: &mut impl FnMut(&mut Claim<'_>) -> bool,
) -> LastLook {
    let rank = owner.rank();
    let mut claim = rank.enter();
    if done(&mut claim) {
        return LastLook::Found;
    }
    let turn = turn::last_turn(&mut claim);
    let work = turn.work.or_else(|| own_work(owner, &mut claim));
    if let Some(work) = work {
        drop(claim);
        run(rank, &work, u32::MAX);
        return LastLook::Found;
    }
    if turn.moved || turn.flows {
        return LastLook::Found;
    }
    let is_stalled = hooks::is_stalled(&mut claim);
    let thief = thief(&mut claim, is_asked.as_deref().is_some_and(|it| *it));
    note(&mut claim);
    let is_program = claim.is_by_owner();
    drop(claim);
    let mut others = Outcome::Idle;
    if let Some(is_asked) = is_asked {
        others = rank.stealing().last_look(worker, &thief);
        *is_asked &= others != Outcome::Idle;
    }
    match others {
        Outcome::Idle if !is_stalled => LastLook::Nothing { is_program },
        Outcome::Idle | Outcome::Busy => LastLook::Unsure,
        Outcome::Progressed { .. } => LastLook::Found,
    }
}

/// One turn of progress that never waits (for `MPI_Test`, `MPI_Iprobe`); says whether anything may have come of it. The
/// caller does not hold the rank's claim.
pub fn progress(owner: Owner<'_>) -> bool {
    let is_fruitful = turn_of(owner);
    if !is_fruitful {
        fruitless(owner.rank());
    }
    is_fruitful
}

/// [`progress`] without what a loop of such calls does when it finds nothing.
// A part of each probe and test; the compiler leaves it out of line when its callers change.
#[inline(always)]
pub(crate) fn turn_of(owner: Owner<'_>) -> bool {
    let rank = owner.rank();
    let mut claim = rank.enter();
    if hooks::is_idle(&mut claim) {
        return false;
    }
    let mut turn = Turn::default();
    hooks::test(&mut claim, owner, &mut turn);
    drop(claim);
    if let Some(work) = turn.work {
        run(rank, &work, PIECES_PER_PROGRESS);
        return true;
    }
    turn.moved || turn.flows
}

/// Whether a rank whose call found nothing gives its CPU to others at times. Ends the rank if the job has ended.
pub(crate) fn gives_way(rank: &Rank) -> bool {
    abort::leave_if_told(rank);
    let node = rank.node();
    node.settings().wait != WaitMode::Spin && (node.is_crowded() || rank.threads_multiple())
}

/// Sleeps for so long while nobody yields. What comes meanwhile ends the nap; what came just before it, and what no
/// message tells, waits for its end.
pub(crate) fn nap(rank: &Rank, limit: Duration) {
    let node = rank.node();
    let ticket = rank.park().prepare(node.barriers());
    rank.park().sleep(ticket, Some(limit));
    hand_over(node);
}

/// A nonblocking call found nothing. In a loop of such calls the program waits, so where ranks
/// or their threads outnumber CPUs it gives its CPU to those it waits for.
fn fruitless(rank: &Rank) {
    if !gives_way(rank) {
        return;
    }
    let last = rank.last_fruitless();
    let is_loop = ticks().wrapping_sub(last.load(Ordering::Relaxed)) < ticks_of_us(LOOP_US);
    if is_loop && rank.node().yield_policy().give_way().is_none() {
        nap(rank, NAP);
    }
    last.store(ticks(), Ordering::Relaxed);
}

/// Wakes `rank` if it sleeps in [`until`]; the caller has published (release) what its `done` looks at.
#[inline]
pub fn wake(rank: &Rank) {
    rank.wake();
}

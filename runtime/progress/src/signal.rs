//! Interrupting a computing thread (`COHORT_PROGRESS=signal`, PEF).
//!
//! When a program leaves a long receive behind whose message has not come, a signal interrupts the calling
//! thread later on, and takes one turn of the rank's progress under a claim that it only tries for. No signal comes in
//! blocking calls, nor for receives that found their message. Two can send it (`COHORT_SIGNAL_FROM`):
//!
//! * *The sender*, when it has offered its message ([`Interrupter::interrupt`]). The rank announces
//!   the receive, fences, and looks at the rings once more; the sender publishes, fences, and looks
//!   whether receives are left behind. One of them sees the other, so no timer is needed. A rank
//!   that was back soon lately, because it posts one receive after the other, is given a moment to
//!   come back by itself ([`cohort_steal::policy::GracePeriod`]), so that signals are not futile.
//! * *A timer* of the thread, as in the paper: armed with the receive, and again after each turn,
//!   later each time ([`cohort_steal::policy::TurnSchedule`]). It is also what is used for messages
//!   of other nodes, and when a turn found the rank claimed.
//!
//! # One sequence per rank
//! `active` names the timer of the running sequence; 0 is none. A wait ends the sequence, since a
//! rank that waits progresses itself, and begins it anew when it leaves while long receives still wait.
//! A signal that comes although `active` is 0 does nothing, and never arms the timer.
//!
//! # What the handler may meet
//! * *The interrupted thread is in the engine.* Then its rank is claimed, and the handler only
//!   sets the next turn. It never waits, so it cannot wait for the thread below it.
//! * *It has its turn at a member of a window.* Then the handler comes again ([`Rank::without_handler`]).
//! * *It is in a call of the network for another rank.* Then it may have locks, and the handler comes again, too.
//! * *The application's own handlers.* All signals are blocked while ours runs, so that none of them can
//!   leave it by `longjmp` with the claim held. Ours may interrupt theirs.
//! * *A sleep or a poll.* The kernel ends it with our signal; [`resume`] goes on with it.
//! * *A small alternative stack.* Ours runs on the stack of the moment; a thread that is on its
//!   alternative stack is left alone until the next turn.
//! * *Forks and executed programs* have no timers of their parent, and ranks no thread of them.

mod resume;

use crate::interrupter::{Interrupter, needs_timer};
use crate::parts::OfRank as _;
use crate::timer::{self, Information};
use cohort_arch::frame::Frame;
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::settings::SignalSource;
use cohort_base::signals::Signals;
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_base::sync::pause;
use cohort_base::trace::{self, Event, EventKind, NOBODY};
use cohort_core::Work;
use cohort_core::claim::Claim;
use cohort_core::rank::Rank;
use cohort_core::turn;
use cohort_p2p::poll;

/// Chunks of a long message that one turn copies when the sender computes too.
const CHUNKS_PER_TURN: u32 = 16;

/// How long a sender waits for the holder of a receiver's claim, which may be copying a message,
/// before it calls for help.
pub(crate) const CALL_US_MAX: u64 = 20;

/// A sender that posts is through within so many microseconds.
const POST_US: u64 = 1;

impl Interrupter {
    /// Takes a signal of its own and installs the handler. By a task of the rank. Without
    /// a free signal the rank progresses in its own calls only.
    pub(crate) fn install(&self) {
        if self.signal.load(Ordering::Relaxed) == 0 {
            let signal = timer::install_handler(handle).unwrap_or(0);
            self.signal.store(signal, Ordering::Relaxed);
            let process = rustix::process::getpid().as_raw_nonzero().get() as u32;
            self.process.store(process, Ordering::Relaxed);
        }
        self.asked.store(false, Ordering::Relaxed);
        self.enabled.store(true, Ordering::Relaxed);
    }

    /// Whether the signal can interrupt the calling thread: there is one, the handler is still ours, and the thread
    /// does not block it.
    pub(crate) fn reaches_this_thread(&self) -> bool {
        let signal = self.signal.load(Ordering::Relaxed);
        signal != 0 && timer::is_handled(signal, handle) && !Signals::blocked().has(signal)
    }

    /// A sender has offered this rank a message: interrupts the thread that left a receive behind,
    /// if there is one and it does not come back by itself. `rts` is the message's number, if
    /// `by` has sent one. Says whether it did.
    pub(crate) fn interrupt(&self, rank: &Rank, by: &Rank, rts: Option<u32>) -> bool {
        let is_wanted = rank.node().settings().signal.source == SignalSource::Sender
            && rank.watched().load(Ordering::Relaxed) != 0
            && !rank.node().rests();
        let active = self.active.load(Ordering::Relaxed);
        if !is_wanted || active == 0 || self.asked.load(Ordering::Relaxed) {
            return false;
        }
        if rts.is_some_and(|rts| self.comes_back(rank, by, rts)) {
            return false;
        }
        if self.asked.swap(true, Ordering::Relaxed) {
            return false;
        }
        let process = self.process.load(Ordering::Relaxed);
        let signal = self.signal.load(Ordering::Relaxed);
        let thread = self.timers.thread(active - 1);
        let is_sent = timer::send(rank.forever(), process, thread, signal);
        if !is_sent {
            // The thread is gone, so nobody will answer.
            self.asked.store(false, Ordering::Relaxed);
        }
        is_sent
    }

    /// Whether the rank takes an RTS of `by`, or begins to wait, within the grace.
    ///
    /// The RTS is published, and a fence lies between, so a wait that begins from now on finds it, as does
    /// the look at the rings after a wait.
    fn comes_back(&self, rank: &Rank, by: &Rank, rts: u32) -> bool {
        if rank.id() == by.id() || rank.node().is_crowded() {
            return false;
        }
        let since = ticks();
        loop {
            if rank.has_taken(by, rts) || self.active.load(Ordering::Relaxed) == 0 {
                return true;
            }
            let limit = match rank.is_claimed() {
                true => ticks_of_us(CALL_US_MAX),
                false => self.grace_period.now(),
            };
            if ticks().wrapping_sub(since) >= limit {
                return false;
            }
            pause();
        }
    }

    /// A wait of the claimed rank has ended: begins a sequence if receives that the policy watches still wait.
    #[inline]
    pub(crate) fn resume(&self, claim: &mut Claim<'_>) {
        let rank = claim.rank();
        if self.enabled.load(Ordering::Relaxed) && rank.watched().load(Ordering::Relaxed) != 0 {
            self.watch_on(claim);
        }
    }

    #[cold]
    fn watch_on(&self, claim: &mut Claim<'_>) {
        self.begin(claim.rank().forever());
        // Pairs with the fence in `Rank::find_help`: a message that came meanwhile sent no signal.
        fence(Ordering::SeqCst);
        poll::pull(claim, None, |_| false);
    }

    /// One turn, in the handler. Returns the nanoseconds until the next; `None`: the sequence is over.
    fn turn(&self, rank: &Rank) -> Option<u64> {
        // Whoever offers a message from now on sends a signal of its own.
        self.asked.store(false, Ordering::SeqCst);
        if self.active.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let pace = &rank.node().settings().signal;
        let since = ticks();
        let found = step(rank);
        if rank.capabilities().adapts() {
            rank.observer().count_turn(since);
        }
        let next = match found {
            StepOutcome::Busy => self.pace.next(pace),
            StepOutcome::Nothing if needs_timer(rank) => self.pace.next(pace),
            StepOutcome::Something if needs_timer(rank) => Some(self.pace.soon(pace)),
            StepOutcome::More => Some(self.pace.soon(pace)),
            // Senders interrupt for what is left.
            StepOutcome::Nothing | StepOutcome::Something => return None,
            StepOutcome::End => None,
        };
        if next.is_none() {
            self.active.store(0, Ordering::Relaxed);
        }
        next
    }
}

/// What one turn found.
enum StepOutcome {
    /// Another task progresses the rank.
    Busy,
    Nothing,
    Something,
    /// Something, and the turn ended before all that is here was done.
    More,
    /// Nothing is left to wait for.
    End,
}

/// One bounded step of the rank's progress.
fn step(rank: &Rank) -> StepOutcome {
    if rank.node().rests() {
        // A rank that waits has begun to steal, and does this turn's work. To come again later
        // takes a timer, which costs more than most messages.
        return StepOutcome::Nothing;
    }
    // The interrupted thread may be in a call for another rank, and have locks of the network.
    let network = rank.node().network();
    if network.is_some_and(|network| network.is_in_call(rank.id())) {
        return StepOutcome::Busy;
    }
    // It may have its turn at a window's member.
    if rank.keeps_handler_out() {
        return StepOutcome::Busy;
    }
    let since = if rank.trace().is_some() { ticks() } else { 0 };
    let Some(mut claim) = rank.try_steal(rank.id()) else {
        return StepOutcome::Busy;
    };
    let turn = turn::own_turn(&mut claim);
    let watched = rank.watched().load(Ordering::Relaxed);
    drop(claim);
    // The sender was woken when the copy began; if it waits, it copies while we compute.
    let copied = match &turn.work {
        Some(work) if !waits(work) => work.run(CHUNKS_PER_TURN),
        _ => 0,
    };
    let moved = turn.moved || turn.flows || copied > 0;
    rank.counters().count_own_turn(moved);
    if let Some(trace) = rank.trace()
        && moved
    {
        trace.note(&Event {
            bytes: turn.bytes + copied,
            ..Event::since(EventKind::Turn, NOBODY, trace::thread(), since)
        });
    }
    match (moved, watched == 0) {
        // Also if a sender copies that may leave before it is through.
        _ if turn.work.is_some_and(|work| work.is_left()) => StepOutcome::More,
        (_, true) => StepOutcome::End,
        (true, false) => StepOutcome::Something,
        (false, false) => StepOutcome::Nothing,
    }
}

/// Whether the sender of a message waits for it, and so copies. One that is just posting leaves its
/// call within moments.
fn waits(work: &Work) -> bool {
    let since = ticks();
    while work.is_of_a_waiting_sender() {
        if ticks().wrapping_sub(since) > ticks_of_us(POST_US) {
            return true;
        }
        pause();
    }
    false
}

/// The signal's handler: turns for the rank that the timer names.
///
/// # Safety
/// The kernel calls it, for a timer of [`timer::Timers`].
unsafe extern "C" fn handle(_: i32, information: *const Information, context: *mut Frame) {
    // SAFETY: the kernel's records are valid in a handler, and our timers carry ranks.
    unsafe {
        let Some(rank) = (*information).rank() else {
            return;
        };
        let interrupter = rank.interrupter();
        if (*context).is_on_alternative_stack() {
            return interrupter.postpone(rank);
        }
        let next = interrupter.turn(rank);
        let next = match resume::sleeps_on(context) {
            true => next,
            false => resume::finish(context, next, || interrupter.turn(rank)),
        };
        if let Some(wait) = next {
            interrupter.arm(wait);
        }
    }
}

#[cfg(test)]
mod tests;

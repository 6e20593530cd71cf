//! Helpers (`COHORT_PROGRESS=helper`): who matches messages with the wishes of computing ranks, and wakes
//! their progress threads (SmartInterrupts, section 4.1).
//!
//! # Who does what
//! * Each rank has a progress thread, which sleeps (`poller.rs`).
//! * A program leaves a long receive behind whose message has not come: the rank writes a *request for an interrupt*
//!   (IRD) on its [`Board`], and takes it off when the receive is matched.
//! * A sender that offers a long message to a rank with such requests leaves a *notice* (ICD) on its board.
//! * A helper compares both, and wakes the thread for a pair. It moves no message itself.
//! * Collectives among nodes leave no notices: for a rank with some the helper takes turns itself, like a thief.
//!
//! # When a pair is a match
//! The receive still waits, the envelope fits, and the message is still in its ring. The last is known by numbers: the
//! n-th offer of a sender to this rank is gone when the rank has accepted n of that sender. So a notice that
//! the rank has dealt with wakes nobody. While the rank is claimed somebody progresses it:
//! the helper skips it (optimisation 1) and wakes nobody (optimisation 2), but keeps the notice.
//!
//! # Why no match is missed
//! The rank publishes its request, fences, and looks at the rings once more. The sender publishes its
//! message, fences, and looks whether there are requests. One of them sees the other. A notice that finds the board
//! full is dropped: then the message waits for the rank's next call, as without a helper.

use crate::crew::{self, Round};
use crate::parts::OfRank as _;
use crate::poller;
use cohort_base::LocalRank;
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use cohort_core::rank::Rank;
use cohort_core::steal::Thief;
use cohort_p2p::P2p;
use cohort_p2p::matching::Want;
use cohort_steal::TaskKind;
use cohort_steal::policy::{Crew, Outcome, Victims};
use cohort_steal::queue::Queue;
use core::cell::UnsafeCell;

/// Receives of one rank that are watched at the same time.
const REQUESTS: usize = 64;

/// Notices to one rank that no helper has seen.
const NOTICES: usize = 128;

/// Notices of one rank that a helper keeps, because the rank was claimed.
const KEPT: usize = 128;

/// The message that a sender offers.
#[derive(Clone, Copy, Debug)]
struct Notice {
    envelope: Envelope,
    sender: LocalRank,
    /// How many offers the sender has made to this rank, with this one.
    number: u32,
    /// Whether the rank's thread was woken for it.
    answered: bool,
}

/// A receive that wants an interrupt. Written under the rank's claim, read by its helper.
#[derive(Debug, Default)]
struct Wish {
    /// Even: none; odd: one. Changes twice per use.
    turn: AtomicU32,
    context: AtomicU32,
    source_and_tag: AtomicU64,
    wildcards: AtomicU32,
}

impl Wish {
    fn read(&self) -> Option<Want> {
        let turn = self.turn.load(Ordering::Acquire);
        let context = self.context.load(Ordering::Relaxed);
        let source_and_tag = self.source_and_tag.load(Ordering::Relaxed);
        let wildcards = self.wildcards.load(Ordering::Relaxed);
        // Whoever reads a newer field sees, after this fence, the turn that was written before it.
        fence(Ordering::Acquire);
        let is_one = !turn.is_multiple_of(2) && self.turn.load(Ordering::Relaxed) == turn;
        is_one.then(|| Want::unpack(context, source_and_tag, wildcards))
    }

    fn write(&self, want: &Want) {
        let (context, source_and_tag, wildcards) = want.pack();
        let turn = self.turn.load(Ordering::Relaxed);
        fence(Ordering::Release);
        self.context.store(context, Ordering::Relaxed);
        self.source_and_tag.store(source_and_tag, Ordering::Relaxed);
        self.wildcards.store(wildcards, Ordering::Relaxed);
        self.turn.store(turn + 1, Ordering::Release);
    }

    fn clear(&self) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(1), Ordering::Release);
    }
}

/// What one rank and its senders tell the helper. All-zero memory is an empty one.
#[derive(Debug)]
pub(crate) struct Board {
    wishes: [Wish; REQUESTS],
    /// Wishes on the board.
    count: AtomicU32,
    notices: Queue<Notice, NOTICES>,
    /// The helper's own.
    kept: UnsafeCell<Kept>,
}

#[derive(Debug)]
struct Kept {
    notices: [Option<Notice>; KEPT],
    count: usize,
}

// SAFETY: `kept` is used by the rank's helper only; successive helpers are ordered by the end of
// the one before.
unsafe impl Sync for Board {}

impl Board {
    pub(crate) fn new() -> Self {
        Self {
            wishes: core::array::from_fn(|_| Wish::default()),
            count: AtomicU32::new(0),
            notices: Queue::new(),
            kept: UnsafeCell::new(Kept {
                notices: [None; KEPT],
                count: 0,
            }),
        }
    }

    /// Writes a request for an interrupt; returns its place, or `None` when the board is full. Under the claim.
    pub(crate) fn wish(&self, want: &Want) -> Option<u8> {
        let is_free = |wish: &Wish| wish.turn.load(Ordering::Relaxed).is_multiple_of(2);
        let place = self.wishes.iter().position(is_free)?;
        self.wishes[place].write(want);
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(place as u8)
    }

    /// Takes a request off. Under the claim.
    pub(crate) fn withdraw(&self, place: u8) {
        self.wishes[usize::from(place)].clear();
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a receive waits that a message with this envelope fits.
    fn is_wished_for(&self, envelope: &Envelope) -> bool {
        self.wishes
            .iter()
            .filter_map(Wish::read)
            .any(|want| want.takes(envelope))
    }
}

/// Tells the helper of `receiver` that `sender` has published an offer, its `number`-th to this rank.
pub(crate) fn announce(receiver: &Rank, sender: &Rank, envelope: Envelope, number: u32) {
    let Some(board) = receiver.board() else {
        return;
    };
    // Pairs with the fence in `watch`: one of us sees the other.
    fence(Ordering::SeqCst);
    if board.count.load(Ordering::Relaxed) == 0 {
        return;
    }
    let notice = Notice {
        envelope,
        sender: sender.id(),
        number,
        answered: false,
    };
    if board.notices.push(notice)
        && let Some(helper) = receiver.worker_of(Crew::Helpers)
    {
        helper.wake();
    }
}

/// A helper's look at one rank.
pub(crate) fn serve(rank: &Rank, host: &Rank) -> Round {
    let Some(board) = rank.board() else {
        return Round::Nothing;
    };
    let is_left_behind = board.count.load(Ordering::Relaxed) > 0 || rank.bell().is_hung();
    if !is_left_behind && board.notices.is_empty() {
        return Round::Nothing;
    }
    // SAFETY: we are the rank's only helper.
    let kept = unsafe { &mut *board.kept.get() };
    while kept.count < KEPT {
        // SAFETY: as above.
        let Some(notice) = (unsafe { board.notices.front() }) else {
            break;
        };
        kept.notices[kept.count] = Some(notice);
        kept.count += 1;
        // SAFETY: as above.
        unsafe { board.notices.pop() };
    }
    if rank.is_claimed() || rank.node().rests() {
        return if kept.count > 0 {
            Round::Unsure
        } else {
            Round::Nothing
        };
    }
    // What the holders of the claim did until now is visible from here on.
    fence(Ordering::Acquire);
    let network = match rank.bell().is_hung() {
        true => crew::progress(rank, host),
        false => serve_network(rank, host),
    };
    if compare(rank, board, kept) && !rank.is_claimed() && poller::wake_sleeper(rank) {
        kept.mark_answered(board);
    }
    match network {
        Round::Nothing if kept.count > 0 => Round::Unsure,
        found => found,
    }
}

/// Compares the kept notices with the board: drops those that are dealt with; `true` when one of the others
/// is wished for and was not answered.
fn compare(rank: &Rank, board: &Board, kept: &mut Kept) -> bool {
    let mut left = 0;
    let mut matched = false;
    for place in 0..kept.count {
        let Some(notice) = kept.notices[place].take() else {
            continue;
        };
        let accepted = rank.shared::<P2p>().accepted_from(notice.sender);
        // Numbers wrap; half of their range is far more than can be under way.
        if accepted.wrapping_sub(notice.number) as i32 >= 0 {
            continue;
        }
        matched |= !notice.answered && board.is_wished_for(&notice.envelope);
        kept.notices[left] = Some(notice);
        left += 1;
    }
    kept.count = left;
    matched
}

impl Kept {
    /// The thread was woken for all notices that are wished for: each wakes it once.
    fn mark_answered(&mut self, board: &Board) {
        for notice in self.notices[..self.count].iter_mut().flatten() {
            notice.answered |= board.is_wished_for(&notice.envelope);
        }
    }
}

/// Messages of other nodes announce themselves only in the network, so the helper takes them from there itself.
fn serve_network(rank: &Rank, host: &Rank) -> Round {
    let victims = Thief::of(host);
    if !victims.is_available(rank.id(), TaskKind::Net) {
        return Round::Nothing;
    }
    match victims.try_progress(rank.id(), TaskKind::Net) {
        Outcome::Progressed { .. } => Round::Moved,
        Outcome::Busy => Round::Unsure,
        Outcome::Idle => Round::Nothing,
    }
}

/// The claimed rank leaves a receive behind: asks for an interrupt. Returns the request's place.
pub(crate) fn watch(claim: &mut Claim<'_>, want: &Want) -> Option<u8> {
    let place = claim.rank().board()?.wish(want)?;
    // Pairs with the fence in `announce`. The caller looks at the rings once more.
    fence(Ordering::SeqCst);
    Some(place)
}

#[cfg(test)]
mod tests;

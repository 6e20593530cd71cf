//! What a rank and its senders tell the rank's helper: requests for interrupts, and notices of
//! messages. What is done with them is in `helper.rs`.

use cohort_base::LocalRank;
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use cohort_core::message::Envelope;
use cohort_p2p::matching::Want;
use cohort_steal::queue::MpscQueue;
use core::cell::UnsafeCell;

/// Receives of one rank that are watched at the same time.
const REQUESTS: usize = 64;

/// Notices to one rank that no helper has seen.
const NOTICES: usize = 128;

/// Notices of one rank that a helper keeps, because the rank was claimed.
pub(crate) const POSTPONED: usize = 128;

/// The message that a sender offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    pub(crate) envelope: Envelope,
    pub(crate) sender: LocalRank,
    /// How many RTS messages the sender has made to this rank, with this one.
    pub(crate) number: u32,
    /// Whether the rank's thread was woken for it.
    pub(crate) answered: bool,
}

/// A receive that wants an interrupt. Written under the rank's claim, read by its helper.
#[derive(Debug, Default)]
struct InterruptRequest {
    /// Even: none; odd: one. Changes twice per use.
    turn: AtomicU32,
    context: AtomicU32,
    source_and_tag: AtomicU64,
    wildcards: AtomicU32,
}

impl InterruptRequest {
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
pub(crate) struct HelperMailbox {
    requests: [InterruptRequest; REQUESTS],
    /// Wishes on the mailbox.
    pub(crate) count: AtomicU32,
    pub(crate) notices: MpscQueue<Notice, NOTICES>,
    /// The helper's own.
    pub(crate) postponed: UnsafeCell<Postponed>,
}

/// Notices that the helper has taken, because the rank was claimed.
#[derive(Debug)]
pub(crate) struct Postponed {
    pub(crate) notices: [Option<Notice>; POSTPONED],
    pub(crate) count: usize,
}

// SAFETY: `kept` is used by the rank's helper only; successive helpers are ordered by the end of
// the one before.
unsafe impl Sync for HelperMailbox {}

impl HelperMailbox {
    pub(crate) fn new() -> Self {
        Self {
            requests: core::array::from_fn(|_| InterruptRequest::default()),
            count: AtomicU32::new(0),
            notices: MpscQueue::new(),
            postponed: UnsafeCell::new(Postponed { notices: [None; POSTPONED], count: 0 }),
        }
    }

    /// Writes a request for an interrupt; returns its place, or `None` when the mailbox is full. Under the claim.
    pub(crate) fn level_wanted(&self, want: &Want) -> Option<u8> {
        let is_free = |level_wanted: &InterruptRequest| level_wanted.turn.load(Ordering::Relaxed).is_multiple_of(2);
        let place = self.requests.iter().position(is_free)?;
        self.requests[place].write(want);
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(place as u8)
    }

    /// Takes a request off. Under the claim.
    pub(crate) fn withdraw(&self, place: u8) {
        self.requests[usize::from(place)].clear();
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a receive waits that a message with this envelope fits.
    pub(crate) fn is_requested(&self, envelope: &Envelope) -> bool {
        self.requests.iter().filter_map(InterruptRequest::read).any(|want| want.takes(envelope))
    }
}

impl Postponed {
    /// The thread was woken for all notices that are asked for: each wakes it once.
    pub(crate) fn mark_answered(&mut self, mailbox: &HelperMailbox) {
        for notice in self.notices[..self.count].iter_mut().flatten() {
            notice.answered |= mailbox.is_requested(&notice.envelope);
        }
    }
}

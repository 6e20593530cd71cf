//! The right to act for a rank, and the state that it opens.
//!
//! A [`Claim`] is the only way to a rank's [`State`]: its queues, its requests, the consuming ends of its
//! inbound rings and the producing ends of its outbound ones, and its heap. Owners get one
//! by [`Rank::enter`], thieves by [`Rank::try_steal`]; nobody waits while holding a stolen one.

use crate::coll::wide::{self, IN_SCRIPTS, Running};
use crate::list::List;
use crate::matching::{Posted, Unexpected};
use crate::net::{Link, NetState};
use crate::offload;
use crate::outbox::Outbox;
use crate::partitioned::{AwayReceiver, IN_AWAITING, IN_AWAY, Receiver};
use crate::protocol::job::{IN_JOBS, Job};
use crate::rank::Rank;
use crate::request::{IN_OWNED, Request};
use crate::rma::{IN_WAITING, IN_WINDOWS, Window};
use crate::watch;
use cohort_alloc::Heap;
use cohort_base::LocalRank;
use cohort_steal::TaskKind;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// Alignment of [`Claim::alloc`].
const ALIGN: usize = 16;

/// What belongs to the holder of a rank's claim.
pub(crate) struct State {
    pub(crate) posted: Posted,
    pub(crate) unexpected: Unexpected,
    /// Long messages for this rank that are being copied.
    pub(crate) jobs: List<Job, IN_JOBS>,
    /// Rendezvous sends that are not complete.
    pub(crate) offers: List<Request, IN_OWNED>,
    /// Nonblocking collectives with steps left.
    pub(crate) schedules: List<Request, IN_OWNED>,
    /// Nonblocking collectives among nodes; and those that are over, which the owner frees.
    pub(crate) scripts: List<Running, IN_SCRIPTS>,
    pub(crate) ended_scripts: List<Running, IN_SCRIPTS>,
    /// Windows, and those of them with something to look for.
    pub(crate) windows: List<Window, IN_WINDOWS>,
    pub(crate) waiting_windows: List<Window, IN_WAITING>,
    /// Requests that were released before they were complete.
    pub(crate) released: List<Request, IN_OWNED>,
    /// Started partitioned receives whose senders are not known.
    pub(crate) awaiting: List<Receiver, IN_AWAITING>,
    /// The same for senders on other nodes.
    pub(crate) away: List<AwayReceiver, IN_AWAY>,
    /// The first receiver with messages that wait for room, plus one; 0 if there is none.
    pub(crate) receivers_waited_for: u32,
    /// Where the next poll of all rings begins.
    pub(crate) first_ring: u32,
    /// What is under way with remote peers.
    pub(crate) net: NetState,
    /// Why this rank expects progress, by kind: posted receives (counted once), receivers waited for,
    /// jobs, schedules, scripts that others go on with, windows that wait, and partitioned receives that await their senders; on the network, sends, receives and packets that are not done.
    reasons: [u32; TaskKind::COUNT],
    /// `node.size()` outboxes.
    outboxes: *mut Outbox,
}

impl State {
    /// The state of a new rank.
    pub(crate) const fn new(outboxes: *mut Outbox, links: *mut *mut Link) -> Self {
        Self {
            posted: Posted::EMPTY,
            unexpected: Unexpected::EMPTY,
            jobs: List::EMPTY,
            offers: List::EMPTY,
            schedules: List::EMPTY,
            scripts: List::EMPTY,
            ended_scripts: List::EMPTY,
            windows: List::EMPTY,
            waiting_windows: List::EMPTY,
            released: List::EMPTY,
            awaiting: List::EMPTY,
            away: List::EMPTY,
            receivers_waited_for: 0,
            first_ring: 0,
            net: NetState::new(links),
            reasons: [0; TaskKind::COUNT],
            outboxes,
        }
    }

    /// Whether no message of this rank's waits for its progress, apart from those in its rings.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.reasons[TaskKind::Shm.index()] == 0 && self.offers.first().is_null()
    }
}

/// A held claim, which ends with this value. See the module page.
#[derive(Debug)]
pub struct Claim<'rank> {
    rank: &'rank Rank,
    /// The rank whose task holds it.
    caller: LocalRank,
    by_owner: bool,
    /// A claim stays with the task that took it.
    not_send: PhantomData<*mut ()>,
}

impl<'rank> Claim<'rank> {
    /// The value that stands for a claim that was just taken by the owner, or by a task of `caller` that only tried for it. Posts
    /// that the rank left to a dedicated worker are done first: all of them for the owner, whose calls come later.
    #[inline]
    pub(crate) fn of_taken(rank: &'rank Rank, caller: LocalRank, by_owner: bool) -> Self {
        let mut claim = Self {
            rank,
            caller,
            by_owner,
            not_send: PhantomData,
        };
        if rank.has_posts() {
            match by_owner {
                true => offload::drain(&mut claim),
                false => offload::drain_some(&mut claim),
            }
        }
        claim
    }

    /// The claimed rank.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> &'rank Rank {
        self.rank
    }

    /// The rank whose task holds the claim.
    #[inline]
    pub(crate) fn caller(&self) -> LocalRank {
        self.caller
    }

    /// Whether the claimed rank holds it in a call of its own: not as a thief, nor in a progress thread or a signal's handler.
    #[inline]
    pub(crate) fn is_by_owner(&self) -> bool {
        self.by_owner
    }

    /// `size` bytes (16-aligned) of the rank's heap, or `None` when it cannot grow. Freed by
    /// [`Heap::free`] from any task.
    #[inline]
    pub fn alloc(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.alloc_aligned(size, ALIGN)
    }

    /// [`Claim::alloc`] with another alignment, a power of two up to a page.
    #[inline]
    pub fn alloc_aligned(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        // SAFETY: we hold the claim.
        unsafe { self.rank.heap().alloc(size, align) }
    }

    /// Frees a block of the claimed rank's heap.
    ///
    /// # Safety
    /// The block came from this rank's heap and nobody uses it any more.
    #[inline]
    pub(crate) unsafe fn free_local(&mut self, block: NonNull<u8>) {
        // SAFETY: the caller's promise, and we hold the claim.
        unsafe { self.rank.heap().free_local(block) }
    }

    pub(crate) fn heap(&self) -> &'rank Heap {
        self.rank.heap()
    }

    #[inline]
    pub(crate) fn state(&mut self) -> &mut State {
        // SAFETY: the claim excludes every other task, and `&mut self` every other borrow.
        unsafe { &mut *self.rank.state() }
    }

    #[inline]
    pub(crate) fn outbox(&mut self, to: LocalRank) -> *mut Outbox {
        assert!(to < self.rank.node().size(), "no such rank");
        // SAFETY: there is one outbox per rank of the node.
        unsafe { self.state().outboxes.add(to as usize) }
    }

    /// One more reason for thieves to look at this rank.
    #[inline]
    pub(crate) fn expect_more(&mut self, kind: TaskKind) {
        let rank = self.rank;
        let reasons = &mut self.state().reasons[kind.index()];
        *reasons += 1;
        if *reasons == 1 {
            rank.expected().raise(kind);
        }
    }

    /// One reason less.
    #[inline]
    pub(crate) fn expect_less(&mut self, kind: TaskKind) {
        let rank = self.rank;
        let reasons = &mut self.state().reasons[kind.index()];
        *reasons -= 1;
        if *reasons == 0 {
            rank.expected().lower(kind);
        }
    }

    /// Whether there is a reason to expect progress of this kind.
    #[inline]
    pub(crate) fn expects(&mut self, kind: TaskKind) -> bool {
        self.state().reasons[kind.index()] != 0
    }

    /// Appends a receive to the posted queue.
    ///
    /// # Safety
    /// As for [`Posted::insert`].
    #[inline]
    pub(crate) unsafe fn post_receive(&mut self, request: *mut Request) {
        if self.state().posted.is_empty() {
            self.expect_more(TaskKind::Shm);
        }
        // SAFETY: the caller's promise.
        if unsafe { (*request).want.may_be_remote() } {
            self.expect_more(TaskKind::Net);
        }
        let heap = self.heap();
        // SAFETY: the caller's promise.
        unsafe { self.state().posted.insert(request, heap) };
    }

    /// Takes a receive out of the posted queue.
    ///
    /// # Safety
    /// It is in there.
    #[inline]
    pub(crate) unsafe fn unpost_receive(&mut self, request: *mut Request) {
        // SAFETY: the caller's promise.
        unsafe {
            self.state().posted.remove(request);
            watch::end(self, request);
        }
        if self.state().posted.is_empty() {
            self.expect_less(TaskKind::Shm);
        }
        // SAFETY: the caller's promise.
        if unsafe { (*request).want.may_be_remote() } {
            self.expect_less(TaskKind::Net);
        }
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.state().scripts.first().is_null() {
            self.rank.release_claim();
        } else {
            wide::leave(self);
        }
    }
}

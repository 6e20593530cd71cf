//! Work on pending pools, for whoever looks at a rank of theirs.

use super::part::{Listed, Membership, Part, Pending};
use super::step;
use crate::Coll;
use crate::fold::Runner;
use crate::meeting::{End, release};
use cohort_base::picture::{Fact, Told};
use cohort_base::sync::atomic::Ordering;
use cohort_core::claim::Claim;
use cohort_core::list::Links;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_core::request::{Request, RequestKind, RequestRef};
use cohort_core::subsystem::Subsystem;
use cohort_core::{Owner, Piece};
use cohort_steal::TaskKind;
use core::cell::Cell;
use core::ptr::NonNull;

/// The claimed rank's pending pools.
#[inline]
fn pending<'a>(claim: &'a mut Claim<'_>) -> &'a mut Pending {
    &mut claim.of::<Coll>().pools
}

/// Whether the claimed rank has pending pools.
#[inline]
pub(crate) fn is_pending(claim: &mut Claim<'_>) -> bool {
    !pending(claim).is_empty()
}

/// Who is to look at a request's pool, besides those who look at its rank anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Nobody: there is another member that thieves look at.
    Nobody,
    /// Thieves.
    Thieves,
}

/// Adds a request to the claimed rank's pending pools. Thieves that are awake hear of it at the end of the claim at
/// the latest.
pub(crate) fn enlist(claim: &mut Claim<'_>, request: RecordRef<Listed>, calls: Calls) {
    request.is_listed.set(true);
    request.is_expected.set(calls == Calls::Thieves);
    pending(claim).push(request);
    match calls {
        Calls::Nobody => claim.expect_unseen(TaskKind::Shm),
        Calls::Thieves => claim.expect_more_later(TaskKind::Shm),
    }
}

/// Takes a request out of the claimed rank's pending pools, if it is there.
pub(crate) fn delist(claim: &mut Claim<'_>, request: RecordRef<Listed>) {
    if request.is_listed.replace(false) {
        pending(claim).remove(request);
        match request.is_expected.get() {
            true => claim.expect_less(TaskKind::Shm),
            false => claim.expect_less_unseen(TaskKind::Shm),
        }
    }
}

/// Completes the requests of all members.
///
/// # Safety
/// All steps are finished, and only the caller knows it; it has a reference.
pub(crate) unsafe fn complete(parts: &[Part]) {
    for part in parts {
        // SAFETY: the caller's promise; a request and what the part refers to are not touched
        // after the request is complete.
        unsafe {
            part.operand.free();
            if part.request.is_null() {
                continue;
            }
            let disagreement = part.disagreement.load(Ordering::Relaxed);
            let error = match part.truncated.load(Ordering::Relaxed) {
                _ if disagreement != 0 => Status::NOT_SAME,
                true => Status::TRUNCATE,
                false => Status::SUCCESS,
            };
            let status = Status { error, bytes: i64::from(disagreement), ..Status::EMPTY };
            Request::complete_quietly(part.request.cast(), status);
        }
    }
    // One barrier for all. A member without a request may wait all the same.
    parts.iter().take(1).for_each(|part| part.rank.node().barriers().light());
    for part in parts {
        if !part.rank.wake_after_barrier() && !part.request.is_null() {
            part.rank.announce();
        }
    }
}

/// A reference to a pool, for work on it.
#[derive(Debug)]
pub(crate) struct PoolRef {
    membership: Membership,
    runner: Runner,
}

impl PoolRef {
    /// A reference more.
    pub(crate) fn new(membership: Membership, runner: Runner) -> Self {
        membership.pool.retain();
        Self { membership, runner }
    }

    /// Takes up to `limit` steps, and completes the operation after the last. Returns the bytes
    /// moved. Outside of any claim; for any task, unless the operation is a user's.
    pub(crate) fn work(&self, limit: u32) -> u64 {
        let Membership { pool, member } = self.membership;
        let end = match u64::from(member) * 2 < pool.members() {
            true => End::Front,
            false => End::Back,
        };
        let mut bytes = 0;
        for _ in 0..limit {
            let Some((step, plan)) = pool.take(end) else {
                break;
            };
            // SAFETY: we have the step.
            bytes += unsafe { step::run(pool.all(), plan, step, member, self.runner) };
            if pool.finish() {
                // SAFETY: we were told so.
                unsafe { complete(pool.all()) };
            }
        }
        bytes
    }
}

impl Drop for PoolRef {
    fn drop(&mut self) {
        // SAFETY: our reference.
        unsafe { release(self.membership.pool) };
    }
}

impl Membership {
    /// Gives the request's reference back.
    ///
    /// # Safety
    /// The request is about to be freed.
    pub(crate) unsafe fn end(self) {
        // SAFETY: the caller's promise.
        unsafe { release(self.pool) };
    }
}

/// A pending pool of the claimed rank that anybody may work on. Forgets exhausted ones on the way.
pub(crate) fn next(claim: &mut Claim<'_>) -> Option<PoolRef> {
    find(claim, Runner::Anybody)
}

/// A pending pool of the claimed rank, for its owner, who may also call a user's operation.
pub(crate) fn next_for_owner(_owner: Owner<'_>, claim: &mut Claim<'_>) -> Option<PoolRef> {
    find(claim, Runner::Owner)
}

fn find(claim: &mut Claim<'_>, runner: Runner) -> Option<PoolRef> {
    let mut following = pending(claim).first();
    while let Some(request) = following {
        // It is taken before this one leaves.
        following = pending(claim).next(request);
        let Some(membership) = request.membership.get() else {
            continue;
        };
        // Requests in the list have a reference to their pool.
        let pool = membership.pool;
        if pool.is_exhausted() {
            delist(claim, request);
            // Then the owner, when it ends the request, finds nothing to do. Whoever has completed it needs no
            // reference of it, nor does the owner's call that has posted it, without the claim.
            if request.request.is_complete() {
                request.membership.set(None);
                // SAFETY: the request's reference, which it has no more.
                unsafe { membership.end() };
            }
        } else if let Some(plan) = pool.pending()
            && (runner == Runner::Owner || !plan.calls_user)
        {
            return Some(PoolRef::new(membership, runner));
        }
    }
    None
}

impl Piece for PoolRef {
    fn run(&self, pieces: u32) -> u64 {
        self.work(pieces)
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// What the requests of nonblocking collectives are.
#[derive(Debug)]
struct Pooled;

/// The record that a request of this kind begins.
fn record_of(request: NonNull<Request>) -> RecordRef<Listed> {
    // SAFETY: only [`Pooled`] asks, whose requests begin such a record.
    unsafe { RecordRef::new(request.cast()) }
}

impl RequestKind for Pooled {
    fn subsystem(&self) -> Option<usize> {
        Some(Coll::SLOT)
    }

    unsafe fn leave(&self, request: NonNull<Request>, claim: &mut Claim<'_>) {
        delist(claim, record_of(request));
    }

    unsafe fn tell(&self, request: NonNull<Request>, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        let Some(membership) = record_of(request).membership.get() else {
            return tell(Fact::new(Told::Outside));
        };
        let pool = membership.pool;
        let (size, arrived) = (pool.members() as u32, pool.arrived());
        if arrived == size {
            // Its steps are done by those who are awake.
            return tell(Fact::new(Told::Outside));
        }
        tell(Fact { key: pool.as_ptr().addr() as u64, size, count: size - arrived, ..Fact::new(Told::Collective) });
    }

    unsafe fn end(&self, request: NonNull<Request>, _claim: &mut Claim<'_>) -> bool {
        if let Some(membership) = record_of(request).membership.get() {
            // SAFETY: the request is about to be freed.
            unsafe { membership.end() };
        }
        true
    }
}

impl Listed {
    /// A pending one; `None` when memory is short. Whoever completes it and its owner share its first line alone.
    pub(crate) fn make(claim: &mut Claim<'_>, is_plain: bool) -> Option<RecordRef<Self>> {
        let block = claim.alloc_aligned(size_of::<Self>(), LINE)?.cast::<Self>();
        let fresh = Self {
            request: Request::new(claim.rank(), &Pooled).plain(is_plain),
            is_listed: Cell::new(false),
            is_expected: Cell::new(false),
            membership: Cell::new(None),
            links: Links::none(),
        };
        // SAFETY: a fresh block of the right size and alignment. The request's end frees it.
        unsafe {
            block.write(fresh);
            Some(RecordRef::new(block))
        }
    }

    /// A spent one is pending again, in no list and of no pool.
    ///
    /// # Safety
    /// It is the claimed rank's, and spent.
    pub(crate) unsafe fn renew(claim: &mut Claim<'_>, this: RecordRef<Self>) {
        delist(claim, this);
        if let Some(membership) = this.membership.take() {
            // SAFETY: the caller's promise: it is complete, so nobody but holders of the claim uses it.
            unsafe { membership.end() };
        }
        this.request.renew();
    }

    /// What the layers above hold of it.
    ///
    /// # Safety
    /// It is not released, and of all that are made of it one at the most is released.
    pub(crate) unsafe fn handle(this: RecordRef<Self>) -> RequestRef {
        // SAFETY: the caller gives the same promise.
        unsafe { RequestRef::new(this.as_non_null().cast()) }
    }
}

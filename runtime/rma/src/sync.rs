//! The synchronisation calls of a window: each opens epochs or closes them, and none waits but those that say so.

use crate::epoch::{Epoch, EpochKind, Target, leak};
use crate::error::RmaError;
use crate::fast_path::order_operations;
use crate::picture::AwaitedEpochs;
use crate::request::FlushRequest;
use crate::stamps::{CALLS_PER_TURN, Held};
use crate::sweep::Sweep;
use crate::window::{Closing, Window, WindowState};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use cohort_base::sync::atomic::Ordering;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::owner::Owner;
use cohort_core::record::RecordRef;
use cohort_core::request::{Request, RequestRef};
use cohort_core::wait::{until, until_with};
use core::ptr::NonNull;

impl Window {
    /// The sweep of a call of the owner's. Locks that it holds without an epoch get one.
    #[inline]
    pub(super) fn call<'a, 'rank>(&'a self, owner: Owner<'_>, claim: &'a mut Claim<'rank>) -> Sweep<'a, 'rank> {
        let mut sweep = self.sweep(claim);
        if let Some(held) = self.take_held() {
            sweep.of_held(owner, held);
        }
        sweep
    }

    /// Waits until all closed epochs are complete.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an epoch is open; the fence epoch may be if it was not used.
    pub fn idle(&self, owner: Owner<'_>) -> Result<(), RmaError> {
        let mut claim = self.rank().enter();
        {
            let sweep = self.call(owner, &mut claim);
            let state = sweep.state;
            if state.access.is_some() || state.locked > 0 {
                return Err(RmaError::Misplaced("an access epoch is open"));
            }
            if state.exposure.is_some() {
                return Err(RmaError::Misplaced("an exposure epoch is open"));
            }
            if state.uses_fence() {
                return Err(RmaError::Misplaced("a fence epoch with operations is open"));
            }
            if let Some(fence) = state.fence.take() {
                // Nothing was done in it, so nobody hears of its end.
                fence.closed.set(state.tick());
                self.short.forget();
            }
        }
        drop(claim);
        until_with(owner, self.awaited(None), |claim| {
            let mut sweep = self.sweep(claim);
            sweep.run();
            sweep.state.queue.is_empty()
        });
        Ok(())
    }

    /// Opens an access epoch towards these members (`MPI_Win_start`). Does not wait.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an access epoch is open.
    pub fn start(&self, owner: Owner<'_>, members: &[u32]) -> Result<(), RmaError> {
        self.unless_broken()?;
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        sweep.state.no_access()?;
        sweep.state.access = Some(sweep.open(owner, EpochKind::Access, members));
        sweep.settle(owner);
        Ok(())
    }

    /// Closes the access epoch (`MPI_Win_complete`).
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if there is none.
    pub fn complete(&self, owner: Owner<'_>) -> Result<Closing, RmaError> {
        self.end(owner, |state| {
            let epoch = state.access.filter(|epoch| epoch.kind == EpochKind::Access);
            let epoch = epoch.ok_or(RmaError::Misplaced("no access epoch is open"))?;
            state.access = None;
            Ok(epoch)
        })
    }

    /// Opens an exposure epoch for these members (`MPI_Win_post`). Does not wait.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an exposure epoch is open.
    pub fn post(&self, owner: Owner<'_>, members: &[u32]) -> Result<(), RmaError> {
        self.unless_broken()?;
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        if sweep.state.exposure.is_some() {
            return Err(RmaError::Misplaced("an exposure epoch is open already"));
        }
        if sweep.state.uses_fence() {
            return Err(FENCE_IS_USED);
        }
        sweep.state.exposure = Some(sweep.open(owner, EpochKind::Exposure, members));
        sweep.settle(owner);
        Ok(())
    }

    /// Closes the exposure epoch (`MPI_Win_wait`).
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if there is none.
    pub fn wait(&self, owner: Owner<'_>) -> Result<Closing, RmaError> {
        self.end(owner, |state| {
            let epoch = state.exposure.take();
            epoch.ok_or(NO_EXPOSURE)
        })
    }

    /// Closes the exposure epoch if that would complete at once (`MPI_Win_test`).
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if there is none.
    pub fn test(&self, owner: Owner<'_>) -> Result<bool, RmaError> {
        cohort_core::wait::progress(owner);
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        let epoch = sweep.state.exposure.ok_or(NO_EXPOSURE)?;
        sweep.run();
        if !sweep.is_exposed_to_nobody(&epoch) {
            return Ok(false);
        }
        drop(claim);
        self.finish(owner, self.wait(owner)?)?;
        Ok(true)
    }

    /// Opens an epoch with a lock at one member (`MPI_Win_lock`). Does not wait; says whether
    /// [`Window::await_access`] would not either. With `nocheck` no lock is taken: the program says that none
    /// conflicts.
    ///
    /// # Errors
    /// [`RmaError::MisplacedAt`] if the member is locked, [`RmaError::Misplaced`] if another kind
    /// of access epoch is open.
    pub fn lock(&self, owner: Owner<'_>, member: u32, exclusive: bool, nocheck: bool) -> Result<bool, RmaError> {
        if !nocheck {
            if self.lock_at_once(member, exclusive) {
                return Ok(true);
            }
            self.unless_broken()?;
        } else if self.trouble() == Some(RmaError::Revoked) {
            return Err(RmaError::Revoked);
        }
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        if sweep.state.locks[member as usize].is_some() {
            return Err(RmaError::MisplacedAt { what: "it is locked by this process already", target: member });
        }
        if sweep.state.access.is_some() {
            return Err(ACCESS_IS_OPEN);
        }
        if sweep.state.uses_fence() {
            return Err(FENCE_IS_USED);
        }
        let epoch = sweep.open(owner, EpochKind::Lock { exclusive }, &[member]);
        epoch.nocheck.set(nocheck);
        sweep.state.locks[member as usize] = Some(epoch);
        sweep.state.locked += 1;
        sweep.settle(owner);
        let is_held = epoch.targets[0].is_granted.get();
        Ok(is_held || self.is_remote(member))
    }

    /// Closes the epoch with a lock at one member (`MPI_Win_unlock`).
    ///
    /// # Errors
    /// [`RmaError::MisplacedAt`] if there is none.
    pub fn unlock(&self, owner: Owner<'_>, member: u32) -> Result<Closing, RmaError> {
        if self.drop_one(member) {
            return Ok(Closing(None));
        }
        self.end(owner, |state| {
            let epoch = state.locks[member as usize]
                .take()
                .ok_or(RmaError::MisplacedAt { what: "it is not locked by this process", target: member })?;
            state.locked -= 1;
            Ok(epoch)
        })
    }

    /// Opens an epoch with shared locks at all members (`MPI_Win_lock_all`). Does not wait; the result and `nocheck` as
    /// in [`Window::lock`].
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an access epoch is open.
    pub fn lock_all(&self, owner: Owner<'_>, nocheck: bool) -> Result<bool, RmaError> {
        if !nocheck {
            if self.lock_all_now() {
                return Ok(true);
            }
            self.unless_broken()?;
        } else if self.trouble() == Some(RmaError::Revoked) {
            return Err(RmaError::Revoked);
        }
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        sweep.state.no_access()?;
        let everyone: Vec<u32> = (0..self.shared().members().len() as u32).collect();
        let epoch = sweep.open(owner, EpochKind::LockAll, &everyone);
        epoch.nocheck.set(nocheck);
        sweep.state.access = Some(epoch);
        sweep.settle(owner);
        Ok(false)
    }

    /// Closes the epoch with shared locks at all members (`MPI_Win_unlock_all`).
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if there is none.
    pub fn unlock_all(&self, owner: Owner<'_>) -> Result<Closing, RmaError> {
        if self.drop_all() {
            return Ok(Closing(None));
        }
        self.end(owner, |state| {
            let epoch = state.access.filter(|epoch| epoch.kind == EpochKind::LockAll);
            let epoch = epoch.ok_or(RmaError::Misplaced("MPI_Win_lock_all was not called"))?;
            state.access = None;
            Ok(epoch)
        })
    }

    /// Waits until the targets of open epochs on this node give access, so that the caller may load and store there.
    /// `member`: only that one.
    ///
    /// # Errors
    /// [`RmaError::Failed`], [`RmaError::Revoked`].
    pub fn await_access(&self, owner: Owner<'_>, member: Option<u32>) -> Result<(), RmaError> {
        let mut has_access = false;
        until_with(owner, self.awaited(Some(member)), |claim| {
            let mut sweep = self.sweep(claim);
            sweep.run();
            has_access = sweep.has_access(member);
            has_access || self.trouble().is_some()
        });
        if has_access { Ok(()) } else { self.unless_broken() }
    }

    /// Refuses what would wait for a member that has failed, or for what that one held, and what would wait for others
    /// of a window that was revoked.
    fn unless_broken(&self) -> Result<(), RmaError> {
        self.trouble().map_or(Ok(()), Err)
    }

    /// `MPI_Win_fence`: closes the fence epoch, and opens the next one unless `last`. Does not wait; the closing does,
    /// unless MPI says that the call completes nothing.
    ///
    /// # Errors
    /// [`RmaError::Misplaced`] if an epoch of another kind is open.
    pub fn fence(&self, owner: Owner<'_>, last: bool) -> Result<Closing, RmaError> {
        self.unless_broken()?;
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        sweep.state.no_other_than_fence()?;
        sweep.state.fences += 1;
        let number = sweep.state.fences;
        let before = match sweep.state.fence.take() {
            Some(before) => before,
            // Nothing to close, but the others wait for the arrival.
            None => sweep.open_fence(owner, number - 1),
        };
        before.closing_fence.set(number);
        sweep.close(before);
        if !last {
            sweep.state.fence = Some(sweep.open_fence(owner, number));
        }
        sweep.closing_of(owner, before)
    }

    fn awaited(&self, access: Option<Option<u32>>) -> AwaitedEpochs<'_> {
        AwaitedEpochs { window: self, access }
    }

    fn end(
        &self,
        owner: Owner<'_>,
        take: impl FnOnce(&mut WindowState) -> Result<RecordRef<Epoch>, RmaError>,
    ) -> Result<Closing, RmaError> {
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        let epoch = take(sweep.state)?;
        sweep.close(epoch);
        sweep.closing_of(owner, epoch)
    }

    /// Waits for the end of an epoch, of a flush or of an operation.
    ///
    /// # Errors
    /// The failure of an operation that was recorded.
    pub fn finish(&self, owner: Owner<'_>, closing: Closing) -> Result<(), RmaError> {
        let Some(request) = closing.0 else {
            self.leave_at_once(owner);
            return Ok(());
        };
        until(owner, self.awaited(None), || request.is_complete());
        let error = request.status().error;
        request.release(&mut self.rank().enter());
        match error {
            Status::SUCCESS => Ok(()),
            Status::PROC_FAILED => Err(RmaError::Failed),
            Status::REVOKED => Err(RmaError::Revoked),
            _ => Err(RmaError::LostTarget),
        }
    }

    /// Begins a flush: it is complete when all operations until now, on one target or on all, are.
    ///
    /// # Errors
    /// [`RmaError::NoAccess`] or [`RmaError::Misplaced`] if no lock is held; [`RmaError::LostTarget`] if an operation
    /// has failed before.
    pub fn flush(&self, owner: Owner<'_>, member: Option<u32>) -> Result<Closing, RmaError> {
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        order_operations();
        let locks = match member {
            Some(member) => match sweep.state.locked_at(member)? {
                lock if is_flushed(&lock) => return flushed(&[lock]),
                lock => vec![lock],
            },
            None => sweep.state.all_locked()?,
        };
        if locks.iter().all(is_flushed) {
            return flushed(&locks);
        }
        let request = FlushRequest::make(sweep.claim).ok_or(RmaError::OutOfMemory)?;
        let age = sweep.state.age;
        sweep.flush(owner, &locks, age, request);
        sweep.settle(owner);
        // SAFETY: a fresh request, which lives until it is released.
        Ok(Closing(Some(unsafe { RequestRef::new(request.as_non_null().cast()) })))
    }

    /// Lets nobody wait for the end of something.
    pub fn forget(&self, _owner: Owner<'_>, closing: Closing) {
        if let Some(request) = closing.0 {
            request.release(&mut self.rank().enter());
        }
    }

    /// Ends a call that waits for nothing. A program may call in a loop until others have changed
    /// its memory, so every so often the rank gets a turn of progress.
    #[inline(always)]
    pub(super) fn leave_at_once(&self, owner: Owner<'_>) {
        // Relaxed, and not in one step: a lost count does no harm.
        let left = self.calls_left.load(Ordering::Relaxed).wrapping_sub(1);
        self.calls_left.store(left, Ordering::Relaxed);
        if left.cast_signed() <= 0 {
            self.have_turn(owner);
        }
    }

    #[cold]
    fn have_turn(&self, owner: Owner<'_>) {
        self.calls_left.store(CALLS_PER_TURN, Ordering::Relaxed);
        self.turn(owner);
    }

    /// A turn of progress in a call that waits for nothing.
    pub fn turn(&self, owner: Owner<'_>) {
        self.pace.turn(owner);
    }
}

const ACCESS_IS_OPEN: RmaError = RmaError::Misplaced("another access epoch is open");
const NO_EXPOSURE: RmaError = RmaError::Misplaced("no exposure epoch is open");
const FENCE_IS_USED: RmaError =
    RmaError::Misplaced("a fence epoch with operations is open: close it with MPI_Win_fence and MPI_MODE_NOSUCCEED");

/// An epoch with locks, and the place of one target in it, or of all.
type LockAt = (RecordRef<Epoch>, Option<usize>);
pub(super) type Locks = Vec<LockAt>;

/// Whether all operations until now are complete.
fn is_flushed(&(epoch, index): &LockAt) -> bool {
    index.map_or(epoch.pending.get(), |index| epoch.targets[index].pending.get()) == 0
}

/// A flush of epochs whose operations until now are complete.
fn flushed(locks: &[LockAt]) -> Result<Closing, RmaError> {
    let mut failed = false;
    for (epoch, index) in locks {
        failed |= epoch.take_error(*index) != Status::SUCCESS;
    }
    match failed {
        true => Err(RmaError::LostTarget),
        false => Ok(Closing(None)),
    }
}

impl WindowState {
    /// No access epoch is open but one by fence that was not used.
    fn no_access(&self) -> Result<(), RmaError> {
        if self.access.is_some() || self.locked > 0 {
            return Err(ACCESS_IS_OPEN);
        }
        match self.uses_fence() {
            true => Err(FENCE_IS_USED),
            false => Ok(()),
        }
    }

    fn no_other_than_fence(&self) -> Result<(), RmaError> {
        if self.access.is_some() || self.locked > 0 {
            return Err(RmaError::Misplaced("a fence while an access epoch is open"));
        }
        if self.exposure.is_some() {
            return Err(RmaError::Misplaced("a fence while an exposure epoch is open"));
        }
        Ok(())
    }

    /// The epoch that holds a lock at a member, and the member's place in it.
    fn locked_at(&self, member: u32) -> Result<LockAt, RmaError> {
        let no_access = RmaError::NoAccess { target: member };
        let epoch = self.access_to(member).ok_or(no_access)?;
        match epoch.kind.is_lock() {
            true => Ok((epoch, epoch.index_of(member))),
            false => Err(RmaError::MisplacedAt { what: "a flush without a lock", target: member }),
        }
    }

    /// The epochs that hold locks, for a flush of all targets.
    fn all_locked(&self) -> Result<Locks, RmaError> {
        let all = self.access.filter(|epoch| epoch.kind == EpochKind::LockAll);
        let single = self.locks.iter().copied().flatten();
        let found: Vec<_> = all.into_iter().chain(single).map(|it| (it, None)).collect();
        match found.is_empty() {
            true => Err(RmaError::Misplaced("no lock is held")),
            false => Ok(found),
        }
    }
}

impl Sweep<'_, '_> {
    /// A new epoch towards these members, at the end of the queue.
    fn open(&mut self, _owner: Owner<'_>, kind: EpochKind, members: &[u32]) -> RecordRef<Epoch> {
        let target = |&member: &u32| Target { member, ..Target::default() };
        self.window.short.end_quiet();
        let opened = self.state.tick();
        let spare = self.state.spare.take_if(|_| members.len() == 1);
        let epoch = match spare {
            Some(mut spare) => {
                let mut targets = core::mem::take(&mut spare.targets);
                targets[0] = target(&members[0]);
                *spare = Epoch::new(kind, opened, targets);
                // SAFETY: it is freed when it is spent.
                unsafe { RecordRef::new(NonNull::from(Box::leak(spare))) }
            }
            None => {
                let mut targets: Box<[Target]> = members.iter().map(target).collect();
                targets.sort_unstable_by_key(|target| target.member);
                leak(Epoch::new(kind, opened, targets))
            }
        };
        self.state.queue.push(epoch);
        epoch
    }

    /// An epoch of locks that were held without one, which is open.
    #[cold]
    fn of_held(&mut self, owner: Owner<'_>, held: Held) {
        let (kind, members): (_, Vec<u32>) = match held {
            Held::One { member, exclusive } => (EpochKind::Lock { exclusive }, [member].into()),
            Held::All => {
                let members = self.window.shared().members().len() as u32;
                (EpochKind::LockAll, (0..members).collect())
            }
        };
        let epoch = self.open(owner, kind, &members);
        epoch.is_active.set(true);
        epoch.ungranted.set(0);
        for target in &epoch.targets {
            target.is_granted.set(true);
        }
        match held {
            Held::One { member, .. } => {
                self.state.locks[member as usize] = Some(epoch);
                self.state.locked += 1;
            }
            Held::All => self.state.access = Some(epoch),
        }
    }

    /// A new fence epoch behind the fence with this number.
    fn open_fence(&mut self, owner: Owner<'_>, number: u64) -> RecordRef<Epoch> {
        let epoch = self.open(owner, EpochKind::Fence, &[]);
        epoch.opening_fence.set(number);
        epoch
    }

    /// Closes an epoch.
    fn close(&mut self, epoch: RecordRef<Epoch>) {
        self.window.short.forget();
        epoch.closed.set(self.state.tick());
    }

    /// Does what can be done now for an epoch that was just closed; the result is complete when the epoch is.
    fn closing_of(&mut self, owner: Owner<'_>, epoch: RecordRef<Epoch>) -> Result<Closing, RmaError> {
        self.settle(owner);
        if self.state.queue.is_empty() {
            self.window.short.begin_quiet();
        }
        // What is over is freed at the beginning of the next call.
        let (is_over, error) = (epoch.is_over.get(), epoch.error.get());
        if is_over && error == Status::SUCCESS {
            return Ok(Closing(None));
        }
        let request = self.request()?;
        if is_over {
            let status = Status { error, ..Status::EMPTY };
            // SAFETY: fresh.
            unsafe { Request::complete_quietly(request.as_ptr(), status) };
        } else {
            epoch.request.set(request.as_ptr());
        }
        // SAFETY: a fresh request, which lives until it is released.
        Ok(Closing(Some(unsafe { RequestRef::new(request) })))
    }

    /// A pending request.
    pub(super) fn request(&mut self) -> Result<NonNull<Request>, RmaError> {
        Request::bare(self.claim).ok_or(RmaError::OutOfMemory)
    }
}

//! One sweep over the epochs of a window: what its owner, or a thief for it, does under the owner's claim.
//!
//! A sweep goes through the epochs in the order in which they were opened, as the paper's section VII-D has it:
//! 1. activate a deferred epoch, if nothing before it forbids that; else stop here: epochs are not skipped;
//! 2. look which targets grant access now, and say which of the others are late;
//! 3. run recorded operations: first those for other nodes, which take time on their own, then those within the node;
//! 4. complete operations that were copied meanwhile, and the flushes that wait for them;
//! 5. tell each target as soon as the last operation on it is done;
//! 6. complete the epoch.
//!
//! A window is in its rank's list, and is a reason for thieves to look, only while some epoch is
//! closed or has operations that are not complete. Whoever changes what such an epoch waits for (a
//! grant, the end of an access, a lock, an arrival at a fence) tells the waiting rank, or, if that
//! computes, a sleeping worker. The owner enters the list first and sweeps once more after that:
//! one of the two sees the other.

use crate::Rma;
use crate::epoch::{CopyRef, Epoch, EpochKind, Recorded};
use crate::notes::{tell, tell_arrived, tell_locked};
use crate::shared::MemberHome;
use crate::window::{Window, WindowState};
use alloc::boxed::Box;
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_core::claim::Claim;
use cohort_core::list::List;
use cohort_core::message::Status;
use cohort_core::owner::Owner;
use cohort_core::record::RecordRef;
use cohort_core::request::Request;
use cohort_steal::TaskKind;

/// See the module page.
pub(super) struct Sweep<'a, 'rank> {
    pub(super) window: &'a Window,
    pub(super) claim: &'a mut Claim<'rank>,
    pub(super) state: &'a mut WindowState,
    /// Whether anything moved.
    pub(super) moved: bool,
    /// Something to copy outside of the claim.
    pub(super) work: Option<CopyRef>,
}

impl Window {
    pub(super) fn sweep<'a, 'rank>(&'a self, claim: &'a mut Claim<'rank>) -> Sweep<'a, 'rank> {
        debug_assert!(core::ptr::eq(claim.rank(), self.rank()));
        // SAFETY: the claim excludes every other task, and the caller makes one sweep at a time.
        let state = unsafe { &mut *self.state.get() };
        Sweep::new(self, claim, state)
    }
}

impl<'a, 'rank> Sweep<'a, 'rank> {
    fn new(window: &'a Window, claim: &'a mut Claim<'rank>, state: &'a mut WindowState) -> Self {
        Self { window, claim, state, moved: false, work: None }
    }

    /// Takes what there is to copy.
    pub(super) fn take_work(&mut self) -> Option<CopyRef> {
        self.work.take()
    }

    /// Sweeps, and enters or leaves the rank's list. After each call of the owner.
    pub(super) fn settle(&mut self, owner: Owner<'_>) {
        self.free_spent(owner);
        self.run();
        if self.waits() && !self.state.is_waiting {
            self.state.is_waiting = true;
            self.claim.of::<Rma>().waiting_windows.push(self.window.record());
            self.claim.expect_more(TaskKind::Shm);
            // What came before others could see that we wait.
            fence(Ordering::SeqCst);
            self.run();
        }
        self.leave_if_idle();
        cohort_net::kick(self.claim);
    }

    fn waits(&self) -> bool {
        self.state.queue.find(|epoch| epoch.waits()).is_some()
    }

    /// Leaves the rank's list when there is nothing to look for.
    pub(super) fn leave_if_idle(&mut self) {
        if !self.waits() {
            self.leave();
        }
    }

    /// Leaves the rank's list.
    pub(super) fn leave(&mut self) {
        if self.state.is_waiting {
            self.state.is_waiting = false;
            self.claim.of::<Rma>().waiting_windows.remove(self.window.record());
            self.claim.expect_less(TaskKind::Shm);
        }
    }

    /// One sweep.
    pub(super) fn run(&mut self) {
        self.sweep_epochs();
        self.check_late();
    }

    fn sweep_epochs(&mut self) {
        let mut next = self.state.queue.first();
        while let Some(epoch) = next {
            // It is taken before this one may leave.
            next = self.state.queue.next(epoch);
            if !epoch.is_active.get() {
                if !self.may_activate(&epoch) {
                    return;
                }
                self.activate(&epoch);
            }
            self.look_for_grants(&epoch);
            self.await_late(&epoch);
            self.run_recorded(epoch);
            self.reap(epoch);
            if epoch.is_closed() {
                self.end_targets(&epoch);
                if self.is_complete(&epoch) {
                    self.complete(epoch);
                }
            }
        }
    }

    /// Whether an epoch may run beside those before it (the paper, sections VI-A and VI-B). Epochs that the program has
    /// open at the same time run at the same time; one that was closed before forbids it until it is
    /// complete, or until a hint of the window allows it.
    fn may_activate(&self, epoch: &Epoch) -> bool {
        let mut next = self.state.queue.first();
        while let Some(earlier) = next.filter(|earlier| !core::ptr::eq(earlier.as_ptr(), epoch)) {
            let was_closed = earlier.closed.get() < epoch.opened;
            if was_closed && !self.state.reorder.allows(earlier.kind, epoch.kind) {
                return false;
            }
            // One ticket per member at a lock.
            if earlier.kind.is_lock() && epoch.kind.is_lock() {
                let shares_target = |target: &crate::epoch::Target| {
                    let index = earlier.index_of(target.member);
                    index.is_some_and(|index| !earlier.targets[index].is_ended.get())
                };
                if epoch.targets.iter().any(shares_target) {
                    return false;
                }
            }
            next = self.state.queue.next(earlier);
        }
        true
    }

    /// Asks the targets for access, or grants it to them.
    fn activate(&mut self, epoch: &Epoch) {
        epoch.is_active.set(true);
        self.moved = true;
        if epoch.nocheck.get() {
            for target in &epoch.targets {
                target.is_granted.set(true);
            }
            epoch.ungranted.set(0);
            return;
        }
        let shared = self.window.shared();
        let me = self.window.me();
        let counts = match epoch.kind {
            EpochKind::Access => &mut self.state.accesses,
            EpochKind::Exposure => &mut self.state.exposures,
            EpochKind::Lock { .. } | EpochKind::LockAll | EpochKind::Fence => &mut self.state.lockings,
        };
        for target in &epoch.targets {
            let member = target.member;
            let count = &mut counts[member as usize];
            *count += 1;
            target.id.set(*count);
            let Some(home) = shared.home(member) else {
                continue;
            };
            match epoch.kind {
                EpochKind::Exposure => {
                    let is_late = home.from(me).granted.open();
                    tell(self.claim, shared, member, is_late);
                }
                EpochKind::Lock { .. } | EpochKind::LockAll => {
                    let granted = |other| tell_locked(self.claim, shared, member, other);
                    let exclusive = epoch.kind == EpochKind::Lock { exclusive: true };
                    target.ticket.set(home.lock.request(me, exclusive, granted));
                }
                EpochKind::Access | EpochKind::Fence => {}
            }
        }
        for index in 0..epoch.targets.len() {
            let member = epoch.targets[index].member;
            if self.window.is_remote(member) {
                self.ask_remote(epoch.kind, member);
            }
        }
    }

    pub(super) fn look_for_grants(&mut self, epoch: &Epoch) {
        if epoch.ungranted.get() == 0 {
            return;
        }
        let (shared, me) = (self.window.shared(), self.window.me());
        if epoch.kind == EpochKind::Fence {
            if shared.has_passed(epoch.opening_fence.get()) {
                epoch.ungranted.set(0);
                self.moved = true;
            }
            return;
        }
        let own = shared.home(me);
        for target in epoch.targets.iter().filter(|target| !target.is_granted.get()) {
            // A lock on this node can be looked at; other nodes send word.
            let lock = shared.home(target.member).map(|home| &home.lock);
            let is_granted = match lock.filter(|_| epoch.kind.is_lock()) {
                Some(lock) => lock.is_granted(target.ticket.get()),
                None => own.is_some_and(|home| {
                    let counter = epoch.kind.counter(home, target.member);
                    counter.is_open(target.id.get())
                }),
            };
            target.is_granted.set(is_granted);
            if is_granted {
                epoch.ungranted.set(epoch.ungranted.get() - 1);
                self.moved = true;
            }
        }
    }

    /// Tells targets of a closed epoch that nothing more will come.
    fn end_targets(&mut self, epoch: &Epoch) {
        let (shared, me) = (self.window.shared(), self.window.me());
        match epoch.kind {
            EpochKind::Exposure => return,
            EpochKind::Fence => {
                // A fence that was never closed by a call has nobody to tell.
                let may_arrive = epoch.closing_fence.get() != 0 && epoch.ungranted.get() == 0;
                if may_arrive && epoch.pending.get() == 0 && !epoch.has_arrived.get() {
                    epoch.has_arrived.set(true);
                    self.moved = true;
                    if shared.arrivals.arrive(epoch.closing_fence.get()) {
                        tell_arrived(self.claim, shared, me, epoch.closing_fence.get());
                    }
                }
                return;
            }
            EpochKind::Access | EpochKind::Lock { .. } | EpochKind::LockAll => {}
        }
        let exclusive = epoch.is_alone();
        let is_lock = epoch.kind.is_lock();
        for index in 0..epoch.targets.len() {
            let target = &epoch.targets[index];
            if target.is_ended.get() || !target.is_granted.get() || target.pending.get() > 0 {
                continue;
            }
            target.is_ended.set(true);
            self.moved = true;
            if epoch.nocheck.get() {
                continue;
            }
            let member = target.member;
            let Some(home) = shared.home(member) else {
                self.end_remote(epoch.kind, member);
                continue;
            };
            if is_lock {
                if home.lock.release(exclusive) {
                    let granted = |other| tell_locked(self.claim, shared, member, other);
                    home.lock.advance(granted);
                }
            } else {
                let is_late = home.from(me).ended.open();
                tell(self.claim, shared, member, is_late);
            }
        }
    }

    fn is_complete(&self, epoch: &Epoch) -> bool {
        let shared = self.window.shared();
        match epoch.kind {
            EpochKind::Exposure => self.is_exposed_to_nobody(epoch),
            EpochKind::Fence => {
                let is_over = epoch.has_arrived.get() && shared.has_passed(epoch.closing_fence.get());
                epoch.pending.get() == 0 && (epoch.closing_fence.get() == 0 || is_over)
            }
            _ => epoch.targets.iter().all(|target| target.is_ended.get()),
        }
    }

    /// Whether all accesses that an exposure epoch allows are over.
    pub(super) fn is_exposed_to_nobody(&self, epoch: &Epoch) -> bool {
        let home: Option<&MemberHome> = self.window.shared().home(self.window.me());
        epoch.is_active.get()
            && home.is_some_and(|home| {
                let mut targets = epoch.targets.iter();
                targets.all(|target| home.from(target.member).ended.is_open(target.id.get()))
            })
    }

    /// Whether this member, or all of open epochs' targets, on this node give access.
    pub(super) fn has_access(&self, member: Option<u32>) -> bool {
        let shared = self.window.shared();
        let waits = |epoch: RecordRef<Epoch>| {
            let is_waited_for = |target: &crate::epoch::Target| {
                !target.is_granted.get()
                    && shared.home(target.member).is_some()
                    && member.is_none_or(|member| member == target.member)
            };
            !epoch.is_closed() && epoch.kind.is_access() && epoch.targets.iter().any(is_waited_for)
        };
        self.state.queue.find(waits).is_none()
    }

    fn complete(&mut self, epoch: RecordRef<Epoch>) {
        let (request, error) = (epoch.request.get(), epoch.error.get());
        epoch.is_over.set(true);
        self.moved = true;
        self.state.queue.remove(epoch);
        self.state.spent.push(epoch);
        if !request.is_null() {
            let status = Status { error, ..Status::EMPTY };
            // SAFETY: the request of the closing call, which only we complete.
            unsafe { Request::complete(request, status) };
        }
    }

    /// Frees the epochs that are over, but for one.
    ///
    /// # Safety
    /// As [`free_all`], of all of them.
    unsafe fn free_epochs(&mut self) {
        while let Some(epoch) = self.state.spent.first() {
            self.state.spent.remove(epoch);
            // SAFETY: the caller's promise.
            let epoch = unsafe { Box::from_raw(epoch.as_ptr()) };
            if epoch.targets.len() == 1 {
                self.state.spare = Some(epoch);
            }
        }
    }

    /// Frees what is over. By the owner.
    pub(super) fn free_spent(&mut self, _owner: Owner<'_>) {
        // SAFETY: what is spent is in no other list, was made by the owner's `Box`, and nobody uses
        // it; operations wait until no task copies any more.
        unsafe {
            self.free_epochs();
            free_all(&self.state.spent_flushes, |_| true);
            free_all(&self.state.spent_operations, Recorded::is_free);
        }
    }
}

/// Frees the elements of a list that may be freed.
///
/// # Safety
/// They were made by `Box`, and nobody uses those that may be freed.
unsafe fn free_all<T: cohort_core::list::Linked<0>>(list: &List<T, 0>, may: impl Fn(&T) -> bool) {
    let mut next = list.first();
    while let Some(element) = next {
        next = list.next(element);
        if may(&element) {
            list.remove(element);
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(element.as_ptr()) });
        }
    }
}

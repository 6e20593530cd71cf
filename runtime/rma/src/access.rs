//! Operations as the program calls them, and the end of a window.

use crate::Rma;
use crate::epoch::{Recorded, Reorder};
use crate::error::RmaError;
use crate::operation::Operation;
use crate::window::{Closing, SHORT, Window};
use alloc::boxed::Box;
use cohort_core::owner::Owner;
use cohort_core::request::RequestRef;
use cohort_core::wait::{WaitKind, until_with};
use cohort_steal::TaskKind;
use core::ptr::{NonNull, null_mut};

impl Window {
    /// Ends the caller's use of a window that is [broken](Window::is_broken). Its memory stays: others may read it, and
    /// nobody knows when they do not any more.
    pub fn abandon(self: Box<Self>, _owner: Owner<'_>) {
        let mut claim = self.rank().enter();
        claim.of::<Rma>().windows.remove(self.record());
        let mut sweep = self.sweep(&mut claim);
        sweep.leave();
        drop(claim);
        core::mem::forget(self);
    }

    /// Whether a member has failed while the others go on, or the window was revoked.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.trouble().is_some()
    }

    /// Ends the caller's use of the window, which is idle ([`Window::idle`]) at all members. Owner-only.
    pub fn close(self: Box<Self>, owner: Owner<'_>) {
        // Whoever copied last may not have let go of the operation yet.
        until_with(owner, WaitKind::Request, |claim| {
            let mut sweep = self.sweep(claim);
            sweep.free_spent(owner);
            sweep.state.spent_operations.is_empty()
        });
        let mut claim = self.rank().enter();
        claim.of::<Rma>().windows.remove(self.record());
        if self.shared().spans_nodes() {
            claim.expect_less(TaskKind::Net);
        }
        drop(claim);
        self.shared().leave(owner);
    }

    /// Asks for an operation. With `wants_request` the caller gets one, unless the operation is complete.
    ///
    /// # Errors
    /// [`RmaError::NoAccess`], [`RmaError::OutOfRange`], and what is wrong with the arguments.
    ///
    /// # Safety
    /// What is compared with, if anything, stays readable until the operation is complete. The target's
    /// elements are memory that the target gave to the window.
    pub unsafe fn access(
        &self,
        owner: Owner<'_>,
        operation: &Operation<'_>,
        wants_request: bool,
    ) -> Result<Closing, RmaError> {
        operation.check()?;
        let mut claim = self.rank().enter();
        let mut sweep = self.call(owner, &mut claim);
        let no_access = RmaError::NoAccess { target: operation.target };
        let epoch = sweep.state.access_to(operation.target).ok_or(no_access)?;
        let index = epoch.index_of(operation.target).ok_or(no_access)?;
        let base = self.resolve(operation)?;
        epoch.is_used.set(true);
        sweep.state.age += 1;
        let age = sweep.state.age;
        if !sweep.may_run_now(epoch, index, operation) {
            let request = match wants_request {
                true => Some(sweep.request()?),
                false => None,
            };
            let address = request.map_or(null_mut(), NonNull::as_ptr);
            sweep.record(owner, epoch, Recorded::new(operation, base, index, age, address));
            sweep.settle(owner);
            // SAFETY: fresh requests, which live until they are released.
            let request = request.map(|request| unsafe { RequestRef::new(request) });
            return Ok(Closing(request));
        }
        let resolved = operation.at(base);
        self.check_attached(operation.target, resolved.target)?;
        if resolved.bytes() <= SHORT {
            let turns = self.turns_at(operation.target, &epoch);
            // SAFETY: the caller's promise; we hold the claim.
            unsafe { resolved.run(0, resolved.bytes(), turns) };
            self.remember(operation.target, &epoch);
            return Ok(Closing(None));
        }
        let turns = self.turns_at(operation.target, &epoch);
        sweep.begin(epoch, index, operation.action);
        drop(claim);
        let mut at = 0;
        while at < resolved.bytes() {
            // Accumulates need the claim, which thieves shall not miss for long.
            let claim = operation.action.accumulates().then(|| self.rank().enter());
            let to = match claim {
                Some(_) => resolved.cut(at, SHORT),
                None => resolved.bytes(),
            };
            // SAFETY: the caller's promise.
            unsafe { resolved.run(at, to, turns) };
            at = to;
        }
        let mut claim = self.rank().enter();
        let mut sweep = self.sweep(&mut claim);
        sweep.done(epoch, index, operation.action, age);
        self.remember(operation.target, &epoch);
        sweep.settle(owner);
        Ok(Closing(None))
    }

    /// Changes the hints about the order of epochs that are opened from now on.
    pub fn set_reorder(&self, reorder: Reorder) {
        self.sweep(&mut self.rank().enter()).state.reorder = reorder;
    }
}

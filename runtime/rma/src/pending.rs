//! Operations of an epoch that are not complete, and the flushes that wait for them.

use crate::epoch::{CopyRef, Epoch, Flush, Recorded, leak};
use crate::operation::Operation;
use crate::request::FlushRequest;
use crate::sweep::Sweep;
use crate::sync::Locks;
use crate::window::SHORT;
use cohort_base::sync::atomic::Ordering;
use cohort_core::list::Links;
use cohort_core::message::Status;
use cohort_core::owner::Owner;
use cohort_core::record::RecordRef;
use cohort_core::request::Request;
use cohort_core::shares::Shares;
use core::cell::Cell;

/// Bytes of a chunk of an operation that several tasks copy.
const CHUNK: u64 = 128 << 10;

impl Sweep<'_, '_> {
    /// Whether an operation may run in the call that asks for it.
    #[inline]
    pub(super) fn may_run_now(&mut self, epoch: RecordRef<Epoch>, index: usize, operation: &Operation<'_>) -> bool {
        if !epoch.grants(index) && epoch.is_active.get() {
            self.look_for_grants(&epoch);
        }
        epoch.grants(index)
            && !self.window.is_remote(operation.target)
            && !(operation.action.accumulates() && epoch.accumulating.get() > 0)
    }

    /// Records an operation.
    pub(super) fn record(&mut self, _owner: Owner<'_>, epoch: RecordRef<Epoch>, operation: Recorded) {
        self.count(epoch, operation.index, operation.action.accumulates());
        epoch.recorded.push(leak(operation));
    }

    /// Counts an operation that its caller is about to do without the claim.
    pub(super) fn begin(&mut self, epoch: RecordRef<Epoch>, index: usize, action: crate::Action) {
        self.count(epoch, index, action.accumulates());
    }

    fn count(&mut self, epoch: RecordRef<Epoch>, index: usize, accumulates: bool) {
        self.window.short.forget();
        epoch.pending.set(epoch.pending.get() + 1);
        epoch.accumulating.set(epoch.accumulating.get() + u32::from(accumulates));
        if let Some(pending) = epoch.pending_at(index) {
            pending.set(pending.get() + 1);
        }
    }

    /// An operation that was begun is done.
    pub(super) fn done(&mut self, epoch: RecordRef<Epoch>, index: usize, action: crate::Action, age: u64) {
        self.operation_complete(epoch, index, action.accumulates(), age);
    }

    /// Runs what may run now, in the order in which it was asked for: first what is for other nodes.
    pub(super) fn run_recorded(&mut self, epoch: RecordRef<Epoch>) {
        if !epoch.is_active.get() || epoch.recorded.is_empty() {
            return;
        }
        if self.window.shared().spans_nodes() {
            self.send_recorded(epoch);
        }
        let mut may_accumulate = true;
        let mut next = epoch.recorded.first();
        while let Some(operation) = next {
            // It is taken before this one leaves the list.
            next = epoch.recorded.next(operation);
            if self.window.is_remote(operation.member) {
                continue;
            }
            let accumulates = operation.action.accumulates();
            if !epoch.grants(operation.index) || accumulates && !may_accumulate {
                may_accumulate &= !accumulates;
                continue;
            }
            self.moved = true;
            let elements = operation.target.as_buffer();
            if self.window.check_attached(operation.member, elements).is_err() {
                operation.error.set(Status::RMA_RANGE);
                epoch.recorded.remove(operation);
                self.retire(epoch, operation);
                continue;
            }
            let bytes = operation.resolved().bytes();
            if operation.action.can_be_shared() && bytes > SHORT && operation.progress.get() == 0 {
                self.share(epoch, operation, bytes);
                continue;
            }
            let to = operation.resolved().cut(operation.progress.get(), SHORT);
            let turns = self.window.turns_at(operation.member, &epoch);
            // SAFETY: the program's promise for its buffers; we hold the claim.
            unsafe { operation.resolved().run(operation.progress.get(), to, turns) };
            operation.progress.set(to);
            if to < bytes {
                // A long accumulate goes on in the next sweep, and no other one overtakes it.
                may_accumulate = false;
                continue;
            }
            epoch.recorded.remove(operation);
            self.retire(epoch, operation);
        }
    }

    /// Sends operations on members of other nodes, in the order in which they were asked for.
    fn send_recorded(&mut self, epoch: RecordRef<Epoch>) {
        let mut next = epoch.recorded.first();
        while let Some(operation) = next {
            // It is taken before this one leaves the list.
            next = epoch.recorded.next(operation);
            if !self.window.is_remote(operation.member) || !epoch.grants(operation.index) {
                continue;
            }
            // One that is cut off by the limit of packets has to be the last.
            if !self.send_pieces(epoch, operation) {
                return;
            }
            epoch.recorded.remove(operation);
            epoch.running.push(operation);
        }
    }

    /// Lets several tasks copy an operation.
    fn share(&mut self, epoch: RecordRef<Epoch>, operation: RecordRef<Recorded>, bytes: u64) {
        operation.shares.get_or_init(|| Shares::new(bytes, CHUNK, 1));
        epoch.recorded.remove(operation);
        epoch.running.push(operation);
    }

    /// Completes operations that were copied, and offers those that were not.
    pub(super) fn reap(&mut self, epoch: RecordRef<Epoch>) {
        let mut next = epoch.running.first();
        while let Some(operation) = next {
            next = epoch.running.next(operation);
            // Acquire pairs with the Release of whoever finished the last chunk.
            if operation.is_copied.load(Ordering::Acquire) {
                epoch.running.remove(operation);
                self.moved = true;
                self.retire(epoch, operation);
            } else if self.work.is_none() {
                let owner = self.window.rank();
                self.work = CopyRef::of(operation, owner);
            }
        }
    }

    /// An operation that is in no list of its epoch any more is complete.
    pub(super) fn retire(&mut self, epoch: RecordRef<Epoch>, operation: RecordRef<Recorded>) {
        cohort_net::names::forget(self.claim, operation.name.get());
        self.state.spent_operations.push(operation);
        let (request, error) = (operation.request, operation.error.get());
        if request.is_null() && error != Status::SUCCESS {
            epoch.fail(operation.index, error);
        }
        self.operation_complete(epoch, operation.index, operation.action.accumulates(), operation.age);
        if !request.is_null() {
            let status = Status { error, ..Status::EMPTY };
            // SAFETY: the program's request for this operation, which only we complete.
            unsafe { Request::complete(request, status) };
        }
    }

    /// Accounts for a complete operation.
    fn operation_complete(&mut self, epoch: RecordRef<Epoch>, index: usize, accumulates: bool, age: u64) {
        epoch.pending.set(epoch.pending.get() - 1);
        epoch.accumulating.set(epoch.accumulating.get() - u32::from(accumulates));
        if let Some(pending) = epoch.pending_at(index) {
            pending.set(pending.get() - 1);
        }
        let mut next = epoch.flushes.first();
        while let Some(flush) = next {
            next = epoch.flushes.next(flush);
            if age >= flush.stamp || flush.index.is_some_and(|it| it != index) {
                continue;
            }
            flush.remaining.set(flush.remaining.get() - 1);
            if flush.remaining.get() == 0 {
                epoch.flushes.remove(flush);
                self.state.spent_flushes.push(flush);
                self.part_of_flush_done(flush.request, epoch.take_error(flush.index));
            }
        }
    }

    /// Begins a flush of these epochs' operations older than `age`.
    pub(super) fn flush(&mut self, _owner: Owner<'_>, locks: &Locks, age: u64, request: RecordRef<FlushRequest>) {
        for &(epoch, index) in locks {
            let remaining = match index {
                Some(index) => epoch.targets[index].pending.get(),
                None => epoch.pending.get(),
            };
            if remaining == 0 {
                request.fail(epoch.take_error(index));
                continue;
            }
            let remaining = Cell::new(remaining);
            epoch.flushes.push(leak(Flush { stamp: age + 1, index, remaining, request, links: Links::none() }));
            request.parts.set(request.parts.get() + 1);
        }
        self.part_of_flush_done(request, Status::SUCCESS);
    }

    /// One part of a flush, or its beginning, is done, with this error: after the last its request is complete.
    fn part_of_flush_done(&mut self, request: RecordRef<FlushRequest>, error: i32) {
        request.fail(error);
        request.parts.set(request.parts.get() - 1);
        if request.parts.get() == 0 {
            let status = Status { error: request.error.get(), ..Status::EMPTY };
            // SAFETY: the request of a flush, which is completed after its last part only.
            unsafe { Request::complete(request.as_ptr().cast(), status) };
        }
    }
}

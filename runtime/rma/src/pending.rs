//! Operations of an epoch that are not complete, and the flushes that wait for them.

use crate::epoch::{CopyRef, Epoch, Flush, Recorded};
use crate::operation::Operation;
use crate::request::FlushRequest;
use crate::sweep::Sweep;
use crate::sync::Locks;
use crate::window::SHORT;
use alloc::boxed::Box;
use cohort_base::sync::atomic::Ordering;
use cohort_core::list::Links;
use cohort_core::message::Status;
use cohort_core::owner::Owner;
use cohort_core::request::Request;
use cohort_core::shares::Shares;
use core::ptr::NonNull;

/// Bytes of a chunk of an operation that several tasks copy.
const CHUNK: u64 = 128 << 10;

impl Sweep<'_, '_> {
    /// Whether an operation may run in the call that asks for it.
    #[inline]
    pub(super) fn may_run_now(&mut self, epoch: &mut Epoch, index: usize, operation: &Operation<'_>) -> bool {
        if !epoch.grants(index) && epoch.is_active {
            self.look_for_grants(epoch);
        }
        epoch.grants(index)
            && !self.window.is_remote(operation.target)
            && !(operation.action.accumulates() && epoch.accumulating > 0)
    }

    /// Records an operation.
    pub(super) fn record(&mut self, _owner: Owner<'_>, epoch: &mut Epoch, operation: Recorded) {
        self.count(epoch, operation.index, operation.action.accumulates());
        let operation = Box::into_raw(Box::new(operation));
        // SAFETY: fresh, and in no list.
        unsafe { epoch.recorded.push(operation) };
    }

    /// Counts an operation that its caller is about to do without the claim.
    pub(super) fn begin(&mut self, mut epoch: NonNull<Epoch>, index: usize, action: crate::Action) {
        // SAFETY: an open epoch; the claim is held.
        let epoch = unsafe { epoch.as_mut() };
        self.count(epoch, index, action.accumulates());
    }

    fn count(&mut self, epoch: &mut Epoch, index: usize, accumulates: bool) {
        self.window.short.forget();
        epoch.pending += 1;
        epoch.accumulating += u32::from(accumulates);
        if let Some(pending) = epoch.pending_at(index) {
            *pending += 1;
        }
    }

    /// An operation that was begun is done.
    pub(super) fn done(&mut self, mut epoch: NonNull<Epoch>, index: usize, action: crate::Action, age: u64) {
        // SAFETY: an epoch with a pending operation is not complete; the claim is held.
        let epoch = unsafe { epoch.as_mut() };
        self.operation_complete(epoch, index, action.accumulates(), age);
    }

    /// Runs what may run now, in the order in which it was asked for: first what is for other nodes.
    pub(super) fn run_recorded(&mut self, epoch: &mut Epoch) {
        if !epoch.is_active || epoch.recorded.first().is_null() {
            return;
        }
        if self.window.shared().spans_nodes() {
            self.send_recorded(epoch);
        }
        let mut may_accumulate = true;
        let mut next = epoch.recorded.first();
        while let Some(mut current) = NonNull::new(next) {
            // SAFETY: elements of the list are valid; the next one is taken first.
            let operation = unsafe {
                next = epoch.recorded.next(current.as_ptr());
                current.as_mut()
            };
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
                epoch.error = Status::RMA_RANGE;
                // SAFETY: it is in the list.
                unsafe { epoch.recorded.remove(current.as_ptr()) };
                self.retire(epoch, current);
                continue;
            }
            let bytes = operation.resolved().bytes();
            if operation.action.can_be_shared() && bytes > SHORT && operation.progress == 0 {
                self.share(epoch, operation, bytes);
                continue;
            }
            let to = operation.resolved().cut(operation.progress, SHORT);
            let turns = self.window.turns_at(operation.member, epoch);
            // SAFETY: the program's promise for its buffers; we hold the claim.
            unsafe { operation.resolved().run(operation.progress, to, turns) };
            operation.progress = to;
            if to < bytes {
                // A long accumulate goes on in the next sweep, and no other one overtakes it.
                may_accumulate = false;
                continue;
            }
            // SAFETY: it is in the list.
            unsafe { epoch.recorded.remove(current.as_ptr()) };
            self.retire(epoch, current);
        }
    }

    /// Sends operations on members of other nodes, in the order in which they were asked for.
    fn send_recorded(&mut self, epoch: &mut Epoch) {
        let mut next = epoch.recorded.first();
        while let Some(mut current) = NonNull::new(next) {
            // SAFETY: elements of the list are valid; the next one is taken first.
            let operation = unsafe {
                next = epoch.recorded.next(current.as_ptr());
                current.as_mut()
            };
            if !self.window.is_remote(operation.member) || !epoch.grants(operation.index) {
                continue;
            }
            // One that is cut off by the limit of packets has to be the last.
            if !self.send_pieces(epoch, operation) {
                return;
            }
            // SAFETY: it is in the one list, and then in the other.
            unsafe {
                epoch.recorded.remove(current.as_ptr());
                epoch.running.push(current.as_ptr());
            }
        }
    }

    /// Lets several tasks copy an operation.
    fn share(&mut self, epoch: &mut Epoch, operation: &mut Recorded, bytes: u64) {
        operation.shares = Some(Shares::new(bytes, CHUNK, 1));
        let operation = NonNull::from(operation);
        // SAFETY: it is in the one list, and then in the other.
        unsafe {
            epoch.recorded.remove(operation.as_ptr());
            epoch.running.push(operation.as_ptr());
        }
    }

    /// Completes operations that were copied, and offers those that were not.
    pub(super) fn reap(&mut self, epoch: &mut Epoch) {
        let mut next = epoch.running.first();
        while let Some(current) = NonNull::new(next) {
            // SAFETY: elements of the list are valid; the next one is taken first.
            unsafe {
                next = epoch.running.next(current.as_ptr());
                // Acquire pairs with the Release of whoever finished the last chunk.
                if current.as_ref().is_copied.load(Ordering::Acquire) {
                    epoch.running.remove(current.as_ptr());
                    self.moved = true;
                    self.retire(epoch, current);
                } else if self.work.is_none() {
                    let owner = self.window.rank();
                    self.work = CopyRef::of(current, owner);
                }
            }
        }
    }

    /// An operation that is in no list of its epoch any more is complete.
    pub(super) fn retire(&mut self, epoch: &mut Epoch, operation: NonNull<Recorded>) {
        // SAFETY: it is valid until its owner frees it.
        let (index, accumulates, age, request) = unsafe {
            let operation = operation.as_ref();
            let accumulates = operation.action.accumulates();
            (operation.index, accumulates, operation.age, operation.request)
        };
        // SAFETY: valid, and in no list.
        unsafe {
            cohort_net::names::forget(self.claim, operation.as_ref().name);
            self.state.spent_operations.push(operation.as_ptr());
        }
        self.operation_complete(epoch, index, accumulates, age);
        if !request.is_null() {
            let status = Status { error: epoch.error, ..Status::EMPTY };
            // SAFETY: the program's request for this operation, which only we complete.
            unsafe { Request::complete(request, status) };
        }
    }

    /// Accounts for a complete operation.
    fn operation_complete(&mut self, epoch: &mut Epoch, index: usize, accumulates: bool, age: u64) {
        epoch.pending -= 1;
        epoch.accumulating -= u32::from(accumulates);
        if let Some(pending) = epoch.pending_at(index) {
            *pending -= 1;
        }
        let mut next = epoch.flushes.first();
        while let Some(mut current) = NonNull::new(next) {
            // SAFETY: elements of the list are valid; the next one is taken first.
            unsafe {
                next = epoch.flushes.next(current.as_ptr());
                let flush = current.as_mut();
                if age >= flush.stamp || flush.index.is_some_and(|it| it != index) {
                    continue;
                }
                flush.remaining -= 1;
                if flush.remaining == 0 {
                    epoch.flushes.remove(current.as_ptr());
                    self.state.spent_flushes.push(current.as_ptr());
                    self.part_of_flush_done(flush.request);
                }
            }
        }
    }

    /// Begins a flush of these epochs' operations older than `age`.
    pub(super) fn flush(&mut self, _owner: Owner<'_>, locks: &Locks, age: u64, request: NonNull<FlushRequest>) {
        for &(mut epoch, index) in locks {
            // SAFETY: open epochs are valid; the claim is held.
            let epoch = unsafe { epoch.as_mut() };
            let remaining = match index {
                Some(index) => epoch.targets[index].pending,
                None => epoch.pending,
            };
            if remaining == 0 {
                continue;
            }
            let flush = Box::into_raw(Box::new(Flush {
                stamp: age + 1,
                index,
                remaining,
                request: request.as_ptr(),
                links: Links::NONE,
            }));
            // SAFETY: as above; the flush is fresh, and in no list.
            unsafe {
                (*request.as_ptr()).parts += 1;
                epoch.flushes.push(flush);
            }
        }
        self.part_of_flush_done(request.as_ptr());
    }

    /// One part of a flush, or its beginning, is done: after the last its request is complete.
    fn part_of_flush_done(&mut self, request: *mut FlushRequest) {
        // SAFETY: the request of a flush that is not complete; its parts are counted under the claim.
        unsafe {
            (*request).parts -= 1;
            if (*request).parts == 0 {
                Request::complete(request.cast(), Status::EMPTY);
            }
        }
    }
}

//! Operations that an epoch has recorded, and their copying by several tasks.

use super::Epoch;
use crate::operation::{Action, Operation, Resolved};
use cohort_base::sync::atomic::{AtomicBool, Ordering};
use cohort_core::list::{Linked, Links};
use cohort_core::record::RecordRef;
use cohort_core::request::Request;
use cohort_core::shares::Shares;
use cohort_core::subsystem::Need;
use cohort_datatype::{Buffer, OwnedBuffer};
use cohort_net::names::{Named, What};
use core::cell::{Cell, OnceCell};

/// An operation that could not be done at once.
pub(crate) struct Recorded {
    pub(crate) action: Action,
    pub(crate) origin: OwnedBuffer,
    pub(crate) result: Option<OwnedBuffer>,
    pub(crate) compare: *const u8,
    pub(crate) target: OwnedBuffer,
    /// The target's rank in the window's group, and its place in the epoch.
    pub(crate) member: u32,
    pub(crate) index: usize,
    /// When it was asked for, among the window's operations.
    pub(crate) age: u64,
    /// Bytes that were applied, or asked for at another node.
    pub(crate) progress: Cell<u64>,
    /// Packets to another node that were not answered.
    pub(crate) unanswered: Cell<u32>,
    /// By which the other node answers; 0 before it was asked.
    pub(crate) name: Cell<cohort_net::names::Name>,
    /// How it has failed, or [`cohort_core::Status::SUCCESS`].
    pub(crate) error: Cell<i32>,
    /// Its epoch, which lasts until it is complete.
    pub(crate) epoch: Cell<Option<RecordRef<Epoch>>>,
    /// Null, or the program's request.
    pub(crate) request: *mut Request,
    /// Present while several tasks copy.
    pub(crate) shares: OnceCell<Shares>,
    /// All shares are finished.
    pub(crate) is_copied: AtomicBool,
    pub(crate) links: Links<Self>,
}

impl Linked<0> for Recorded {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

// SAFETY: no other type has names of operations on windows.
unsafe impl Named for Recorded {
    const WHAT: What = What::Window;
}

impl Recorded {
    /// The operation, to be done later on elements at `base`.
    pub(crate) fn new(operation: &Operation<'_>, base: *mut u8, index: usize, age: u64, request: *mut Request) -> Self {
        Self {
            action: operation.action,
            origin: operation.origin.to_owned(),
            result: operation.result.map(Buffer::to_owned),
            compare: operation.compare,
            target: operation.target_at(base).to_owned(),
            member: operation.target,
            index,
            age,
            progress: Cell::new(0),
            unanswered: Cell::new(0),
            name: Cell::new(0),
            error: Cell::new(cohort_core::Status::SUCCESS),
            epoch: Cell::new(None),
            request,
            shares: OnceCell::new(),
            is_copied: AtomicBool::new(false),
            links: Links::none(),
        }
    }

    pub(crate) fn resolved(&self) -> Resolved<'_> {
        Resolved {
            action: self.action,
            origin: self.origin.as_buffer(),
            result: self.result.as_ref().map(OwnedBuffer::as_buffer),
            compare: self.compare,
            target: self.target.as_buffer(),
        }
    }

    /// Whether no task copies any more, so that its owner may free it.
    pub(crate) fn is_free(&self) -> bool {
        self.shares.get().is_none_or(Shares::is_sole)
    }
}

/// A reference to an operation that several tasks copy.
#[derive(Debug)]
pub(crate) struct CopyRef {
    operation: RecordRef<Recorded>,
    owner: &'static cohort_core::Rank,
}

impl CopyRef {
    /// A reference more to an operation of `owner`, which is claimed, with shares that are not exhausted.
    pub(crate) fn of(operation: RecordRef<Recorded>, owner: &'static cohort_core::Rank) -> Option<Self> {
        let shares = operation.shares.get()?;
        if shares.is_exhausted() {
            return None;
        }
        shares.retain();
        Some(Self { operation, owner })
    }

    /// Copies up to `limit` chunks; returns the bytes. For any task, outside of any claim.
    pub(crate) fn work(&self, limit: u32) -> u64 {
        let operation = self.operation;
        let Some(shares) = operation.shares.get() else {
            return 0;
        };
        let mut bytes = 0;
        for _ in 0..limit {
            let Some(chunk) = shares.take() else { break };
            let length = chunk.end - chunk.start;
            // SAFETY: the program's buffers are left to the runtime until the operation is complete; only puts
            // and gets have shares.
            unsafe { operation.resolved().run(chunk.start, chunk.end, None) };
            bytes += length;
            if shares.finish(length) {
                // Release pairs with the Acquire of whoever reaps it under the claim.
                operation.is_copied.store(true, Ordering::Release);
                self.owner.notify(self.owner, Some(Need::Message));
            }
        }
        bytes
    }
}

impl Drop for CopyRef {
    fn drop(&mut self) {
        // The owner frees the operation when its own reference is the only one.
        if let Some(shares) = self.operation.shares.get() {
            let was_last = shares.release();
            debug_assert!(!was_last, "the owner keeps one");
        }
    }
}

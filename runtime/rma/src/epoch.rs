//! Epochs as objects with a life of their own.
//!
//! ```text
//!              program:  open ───────── operations ───────── close ──► (its request)
//!  engine:  Deferred ──activate──► Active ── grants come, operations run ──► complete, freed
//! ```
//! *Open* and *closed* are the program's, *deferred*, *active* and *complete* the engine's (the
//! paper, section VI). An epoch that is opened while an earlier one is closed and not complete is
//! deferred: its operations are recorded. When it is activated it asks its targets for access; what
//! is recorded runs as they grant it, whoever has time for it.

mod recorded;

pub(super) use recorded::{CopyRef, Recorded};

use crate::request::FlushRequest;
use alloc::boxed::Box;
use cohort_core::list::{Linked, Links, List};
use cohort_core::record::RecordRef;
use cohort_core::request::Request;
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};

/// What kind of epoch it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochKind {
    /// From `MPI_Win_start` to `MPI_Win_complete`.
    Access,
    /// From `MPI_Win_post` to `MPI_Win_wait`.
    Exposure,
    /// From `MPI_Win_lock` to `MPI_Win_unlock`.
    Lock {
        /// `MPI_LOCK_EXCLUSIVE`.
        exclusive: bool,
    },
    /// From `MPI_Win_lock_all` to `MPI_Win_unlock_all`.
    LockAll,
    /// From one `MPI_Win_fence` to the next.
    Fence,
}

impl EpochKind {
    pub(super) fn is_lock(self) -> bool {
        matches!(self, Self::Lock { .. } | Self::LockAll)
    }

    /// Whether its targets give access one by one.
    pub(super) fn is_access(self) -> bool {
        self.is_lock() || self == Self::Access
    }
}

/// Hints of the window that let epochs run before earlier ones are complete (the paper, section VI-B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reorder {
    /// `MPI_WIN_ACCESS_AFTER_ACCESS_REORDER`.
    pub access_after_access: bool,
    /// `MPI_WIN_ACCESS_AFTER_EXPOSURE_REORDER`.
    pub access_after_exposure: bool,
    /// `MPI_WIN_EXPOSURE_AFTER_EXPOSURE_REORDER`.
    pub exposure_after_exposure: bool,
    /// `MPI_WIN_EXPOSURE_AFTER_ACCESS_REORDER`.
    pub exposure_after_access: bool,
}

impl Reorder {
    /// Whether an epoch of kind `later` may run while one of kind `earlier` is closed and not complete.
    pub(super) fn allows(self, earlier: EpochKind, later: EpochKind) -> bool {
        let never = |kind| matches!(kind, EpochKind::LockAll | EpochKind::Fence);
        if never(earlier) || never(later) {
            return false;
        }
        match (earlier == EpochKind::Exposure, later == EpochKind::Exposure) {
            (false, false) => self.access_after_access,
            (true, false) => self.access_after_exposure,
            (true, true) => self.exposure_after_exposure,
            (false, true) => self.exposure_after_access,
        }
    }
}

/// One member that an epoch has to do with.
#[derive(Clone, Debug, Default)]
pub(super) struct Target {
    /// Its rank in the window's group.
    pub(super) member: u32,
    /// Which opening of its counter the epoch waits for.
    pub(super) id: Cell<u64>,
    /// Of a lock on this node.
    pub(super) ticket: Cell<u64>,
    /// It grants access.
    pub(super) is_granted: Cell<bool>,
    /// It was told that the epoch is over.
    pub(super) is_ended: Cell<bool>,
    /// Operations that are not complete.
    pub(super) pending: Cell<u32>,
    /// As [`Epoch::error`], of operations on this one.
    pub(super) error: Cell<i32>,
}

/// See the module page. Lives in memory of its owner, who alone makes and frees it.
pub(super) struct Epoch {
    pub(super) kind: EpochKind,
    /// Of a lock: `MPI_MODE_NOCHECK`. Nobody is asked for it, as nobody holds a lock that conflicts.
    pub(super) nocheck: Cell<bool>,
    pub(super) is_active: Cell<bool>,
    /// It is complete, and waits to be freed.
    pub(super) is_over: Cell<bool>,
    /// When it was opened and closed, among the calls on this window; `u64::MAX` while it is open.
    pub(super) opened: u64,
    pub(super) closed: Cell<u64>,
    /// By rank. Empty for fences, whose targets are all members.
    pub(super) targets: Box<[Target]>,
    /// Targets that do not grant access yet. A fence counts as one.
    pub(super) ungranted: Cell<u32>,
    /// Of a fence: the numbers of the fences that open and close it.
    pub(super) opening_fence: Cell<u64>,
    pub(super) closing_fence: Cell<u64>,
    /// Of a fence: the member has arrived at the closing one.
    pub(super) has_arrived: Cell<bool>,
    /// Operations that wait for a grant, and operations under way.
    pub(super) recorded: List<Recorded, 0>,
    pub(super) running: List<Recorded, 0>,
    /// Operations that are not complete: recorded, running, or done by the caller just now.
    pub(super) pending: Cell<u32>,
    /// Accumulates among them.
    pub(super) accumulating: Cell<u32>,
    /// Whether an operation was ever asked for.
    pub(super) is_used: Cell<bool>,
    pub(super) flushes: List<Flush, 0>,
    /// Null, or the request of the call that closed it.
    pub(super) request: Cell<*mut Request>,
    /// How an operation without a request has failed of which the program was not told yet, or
    /// [`cohort_core::Status::SUCCESS`], which is 0.
    pub(super) error: Cell<i32>,
    links: Links<Self>,
}

impl Linked<0> for Epoch {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

impl Epoch {
    /// `opened`, and `closed` while it is open.
    pub(super) const OPEN: u64 = u64::MAX;

    pub(super) fn new(kind: EpochKind, opened: u64, targets: Box<[Target]>) -> Self {
        let ungranted = match kind {
            EpochKind::Fence => 1,
            EpochKind::Exposure => 0,
            _ => targets.len() as u32,
        };
        Self {
            kind,
            nocheck: Cell::new(false),
            is_active: Cell::new(false),
            is_over: Cell::new(false),
            opened,
            closed: Cell::new(Self::OPEN),
            targets,
            ungranted: Cell::new(ungranted),
            opening_fence: Cell::new(0),
            closing_fence: Cell::new(0),
            has_arrived: Cell::new(false),
            recorded: List::empty(),
            running: List::empty(),
            pending: Cell::new(0),
            accumulating: Cell::new(0),
            is_used: Cell::new(false),
            flushes: List::empty(),
            request: Cell::new(null_mut()),
            error: Cell::new(cohort_core::Status::SUCCESS),
            links: Links::none(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get() != Self::OPEN
    }

    /// The place of a member among the targets; 0 for a fence.
    pub(super) fn index_of(&self, member: u32) -> Option<usize> {
        match self.kind {
            EpochKind::Fence => Some(0),
            EpochKind::LockAll => Some(member as usize),
            _ => self.targets.binary_search_by_key(&member, |target| target.member).ok(),
        }
    }

    /// Whether operations on the target at this place may run.
    pub(super) fn grants(&self, index: usize) -> bool {
        self.is_active.get()
            && match self.kind {
                EpochKind::Fence => self.ungranted.get() == 0,
                _ => self.targets[index].is_granted.get(),
            }
    }

    /// Operations on the target at this place that are not complete.
    pub(super) fn pending_at(&self, index: usize) -> Option<&Cell<u32>> {
        self.targets.get(index).map(|target| &target.pending)
    }

    /// An operation on the target at this place has failed, whose end no request tells.
    pub(super) fn fail(&self, index: usize, error: i32) {
        self.error.set(error);
        if let Some(target) = self.targets.get(index) {
            target.error.set(error);
        }
    }

    /// How an operation on the target at this place, or on any, has failed of which the program was not told; now it
    /// is.
    pub(super) fn take_error(&self, index: Option<usize>) -> i32 {
        const SUCCESS: i32 = cohort_core::Status::SUCCESS;
        if self.error.get() == SUCCESS {
            return SUCCESS;
        }
        let Some(index) = index else {
            self.targets.iter().for_each(|target| target.error.set(SUCCESS));
            return self.error.replace(SUCCESS);
        };
        let error = self.targets[index].error.replace(SUCCESS);
        let mut others = self.targets.iter().map(|target| target.error.get());
        self.error.set(others.find(|&error| error != SUCCESS).unwrap_or(SUCCESS));
        error
    }

    /// Whether nobody else can accumulate at its targets: it holds a lock that keeps them away.
    pub(super) fn is_alone(&self) -> bool {
        self.kind == EpochKind::Lock { exclusive: true } && !self.nocheck.get()
    }

    /// Whether there is something to look for in its owner's progress.
    pub(super) fn waits(&self) -> bool {
        self.is_closed() || self.pending.get() > 0
    }
}

/// A flush that is not complete: it waits for operations that were asked for before it.
pub(super) struct Flush {
    /// The age of the first operation that it does not wait for.
    pub(super) stamp: u64,
    /// The target's place in the epoch; `None` for all targets.
    pub(super) index: Option<usize>,
    /// Operations that it still waits for.
    pub(super) remaining: Cell<u32>,
    pub(super) request: RecordRef<FlushRequest>,
    pub(super) links: Links<Self>,
}

impl Linked<0> for Flush {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

/// A record of the owner's, which `Sweep::free_spent` frees.
pub(super) fn leak<T>(record: T) -> RecordRef<T> {
    // SAFETY: it is freed when it is spent, and nobody uses it any more.
    unsafe { RecordRef::new(NonNull::from(Box::leak(Box::new(record)))) }
}

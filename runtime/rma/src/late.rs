//! Targets that are late: what an epoch's owner says of them, and the check of what [`crate::grants`] guarantees.

use crate::epoch::{Epoch, EpochKind, Target};
use crate::grants::GrantCounter;
use crate::shared::MemberHome;
use crate::sweep::Sweep;
use cohort_base::sync::atomic::{Ordering, fence};

impl EpochKind {
    /// The counter at which an epoch of this kind waits for a member. Fences have one for all members.
    pub(super) fn counter(self, home: &MemberHome, member: u32) -> &GrantCounter {
        match self {
            Self::Access => &home.from(member).granted,
            Self::Exposure => &home.from(member).ended,
            Self::Lock { .. } | Self::LockAll => &home.from(member).locked,
            Self::Fence => &home.fences,
        }
    }
}

/// Whether an epoch has to wait for a target with something to ship to it, or to learn from it.
fn is_late(kind: EpochKind, is_closed: bool, target: &Target) -> bool {
    match kind {
        EpochKind::Exposure => is_closed,
        _ => !target.is_granted.get() && (is_closed || target.pending.get() > 0),
    }
}

impl Epoch {
    /// Of a fence epoch: the last fence that it is late for, or 0.
    fn late_fence(&self) -> u64 {
        match (self.closing_fence.get(), self.pending.get() > 0) {
            (0, true) => self.opening_fence.get(),
            (closing, _) => closing,
        }
    }
}

impl Sweep<'_, '_> {
    /// Has the openers of counters know which targets of an active epoch are late, and looks once more.
    pub(super) fn await_late(&mut self, epoch: &Epoch) {
        let window = self.window;
        let Some(home) = window.shared().home(window.me()) else {
            return;
        };
        let mut late = 0;
        let (kind, is_closed) = (epoch.kind, epoch.is_closed());
        if kind == EpochKind::Fence {
            late += home.fences.want(epoch.late_fence());
        } else if epoch.ungranted.get() > 0 || kind == EpochKind::Exposure && is_closed {
            for target in &epoch.targets {
                if is_late(kind, is_closed, target) {
                    late += kind.counter(home, target.member).want(target.id.get());
                }
            }
        }
        if late > 0 {
            self.state.late += late;
            fence(Ordering::SeqCst);
            self.look_for_grants(epoch);
        }
    }

    /// Checks the guarantees of [`crate::grants`], in debug builds.
    pub(super) fn check_late(&self) {
        let window = self.window;
        let home = window.shared().home(window.me());
        let Some(home) = home.filter(|_| cfg!(debug_assertions)) else {
            return;
        };
        // Each late target calls once at most; the others never do (G0, G1, G3).
        let calls = home.calls.load(Ordering::Relaxed);
        assert!(calls <= self.state.late, "{calls} calls are too many");
        let mut next = self.state.queue.first();
        while let Some(epoch) = next {
            next = self.state.queue.next(epoch);
            for target in epoch.targets.iter().filter(|_| epoch.is_active.get()) {
                let waits = epoch.kind == EpochKind::Exposure || !target.is_granted.get();
                let is_wanted = epoch.kind.counter(home, target.member).is_wanted(target.id.get());
                let is_late = is_late(epoch.kind, epoch.is_closed(), target);
                // Who is late at opening only is not among those that call (G2).
                assert!(!waits || is_wanted == is_late, "of {target:?}");
            }
        }
    }
}

//! What a rank waits for at its windows, for whoever asks why a job hangs.
//!
//! By anybody with the claim: nothing here changes anything.

use crate::Rma;
use crate::epoch::{Epoch, EpochKind, Target};
use crate::window::Window;
use cohort_base::picture::{Fact, Told};
use cohort_core::claim::Claim;
use cohort_core::waits::Awaited;

/// Most facts about a window.
const TOLD_MAX: usize = 16;

/// The epochs of a window that its owner waits for: those that are closed, or, for access to their targets, open ones.
pub(super) struct AwaitedEpochs<'a> {
    pub(super) window: &'a Window,
    /// Wait for access by open epochs, to this member if one is named.
    pub(super) access: Option<Option<u32>>,
}

impl Awaited for AwaitedEpochs<'_> {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        self.window.tell(claim, self.access, tell);
    }
}

impl Window {
    fn fact(&self, told: Told, target: &Target, claim: &Claim<'_>) -> Fact {
        let member = self.shared().members()[target.member as usize];
        Fact {
            key: core::ptr::from_ref(self.shared()).addr() as u64,
            member: target.member as i32,
            world: claim.rank().node().world_rank(member) as i32,
            ..Fact::new(told)
        }
    }

    fn tell(&self, claim: &mut Claim<'_>, access: Option<Option<u32>>, tell: &mut dyn FnMut(Fact)) {
        let mut left = TOLD_MAX;
        self.each_epoch(claim, |epoch| {
            let name = match epoch.kind {
                EpochKind::Access => "MPI_Win_post",
                EpochKind::Exposure => "MPI_Win_complete",
                EpochKind::Lock { .. } | EpochKind::LockAll => "lock",
                EpochKind::Fence => "MPI_Win_fence",
            };
            // A flush waits for operations of open epochs.
            let is_meant = match access {
                Some(_) => !epoch.is_closed() && epoch.kind.is_access(),
                None => epoch.is_closed() || epoch.pending.get() > 0,
            };
            if epoch.is_over.get() || !is_meant {
                return;
            }
            if epoch.kind == EpochKind::Fence {
                let key = core::ptr::from_ref(self.shared()).addr() as u64;
                let size = self.shared().members().len() as u32;
                let fence = Fact::new(Told::Access).named(name);
                return tell(Fact { key, size, ..fence });
            }
            for target in &epoch.targets {
                let is_meant = access.flatten().is_none_or(|member| member == target.member);
                if self.is_missing(epoch, target) && is_meant && left > 0 {
                    left -= 1;
                    tell(self.fact(Told::Access, target, claim).named(name));
                }
            }
        });
    }

    /// Whether a member has not done its part for an epoch.
    fn is_missing(&self, epoch: &Epoch, target: &Target) -> bool {
        let home = self.shared().home(self.me());
        match epoch.kind {
            EpochKind::Exposure => home.is_some_and(|home| !home.from(target.member).ended.is_open(target.id.get())),
            _ => !target.is_granted.get() || target.pending.get() > 0,
        }
    }

    fn each_epoch(&self, claim: &Claim<'_>, mut look: impl FnMut(&Epoch)) {
        debug_assert!(core::ptr::eq(claim.rank(), self.rank()));
        self.with_queue(claim, |queue| {
            queue.find(|epoch| {
                look(&epoch);
                false
            });
        });
    }
}

/// Tells the locks that a rank holds.
pub fn tell_locks(claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
    let mut left = TOLD_MAX;
    let mut next = claim.of::<Rma>().windows.first();
    while let Some(window) = next {
        window.each_epoch(claim, |epoch| {
            let name = match epoch.kind {
                EpochKind::Lock { exclusive: true } => "exclusive lock",
                EpochKind::Lock { exclusive: false } | EpochKind::LockAll => "shared lock",
                _ => return,
            };
            if epoch.is_over.get() || epoch.nocheck.get() {
                return;
            }
            for target in &epoch.targets {
                if target.is_granted.get() && !target.is_ended.get() && left > 0 {
                    left -= 1;
                    tell(window.fact(Told::Holds, target, claim).named(name));
                }
            }
        });
        if let Some((exclusive, members)) = window.holds_now() {
            let name = if exclusive { "exclusive lock" } else { "shared lock" };
            for member in members.take(left) {
                left -= 1;
                let target = Target { member, ..Target::default() };
                tell(window.fact(Told::Holds, &target, claim).named(name));
            }
        }
        next = claim.of::<Rma>().windows.next(window);
    }
}

//! The progress policies of one rank: its own, and those of its communicators and windows.
//!
//! A receive, or a post, asks the policy of its communicator. What acts for the rank as a whole is there as long as one
//! of the policies needs it ([`Capabilities`]).
//!
//! Several threads of a rank may change policies at a time: each change is made by the holder of [`Policies::lock`].
//! Whoever reads meanwhile sees the capabilities before or after.

use cohort_base::lock::{FutexGuard, FutexLock};
use cohort_base::settings::Progress;
use cohort_base::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use cohort_steal::policy::{Capabilities, policy};

/// The policies of one rank.
#[derive(Debug)]
pub struct Policies {
    own: AtomicU8,
    /// Communicators and windows with a policy of their own, by policy.
    uses: [AtomicU32; Progress::NAMES.len()],
    /// What was added by an adapting policy.
    added: AtomicU32,
    capabilities: AtomicU32,
    /// Whether the rank has begun and not ended.
    is_open: AtomicBool,
    changing: FutexLock<()>,
}

/// The right to change a rank's policies.
#[derive(Debug)]
pub struct Change<'rank> {
    policies: &'rank Policies,
    _lock: FutexGuard<'rank, ()>,
}

impl Policies {
    /// Those of a rank that has not begun.
    pub fn new(own: Progress) -> Self {
        Self {
            own: AtomicU8::new(own.index()),
            uses: core::array::from_fn(|_| AtomicU32::new(0)),
            added: AtomicU32::new(0),
            capabilities: AtomicU32::new(policy(own).capabilities().bits()),
            is_open: AtomicBool::new(false),
            changing: FutexLock::new(()),
        }
    }

    /// Those of a rank that has not begun, in the place of one that has ended.
    pub fn renew(&self, own: Progress) {
        self.own.store(own.index(), Ordering::Relaxed);
        self.uses.iter().for_each(|uses| uses.store(0, Ordering::Relaxed));
        self.added.store(0, Ordering::Relaxed);
        self.is_open.store(false, Ordering::Relaxed);
        self.capabilities.store(policy(own).capabilities().bits(), Ordering::Release);
    }

    /// What all of them need. A hint for tasks that are not ordered with the change.
    #[inline]
    pub fn capabilities(&self) -> Capabilities {
        // Acquire pairs with the Release in `Change::settle`: what the capabilities need was made before.
        Capabilities::of_bits(self.capabilities.load(Ordering::Acquire))
    }

    /// The rank's own policy.
    #[inline]
    pub fn own(&self) -> Progress {
        Progress::of_index(self.own.load(Ordering::Relaxed))
    }

    /// The right to change them; waits for a thread of the rank that has it. The caller does not hold the rank's claim.
    pub fn lock(&self) -> Change<'_> {
        Change { policies: self, _lock: self.changing.lock() }
    }

    /// [`Policies::lock`], unless a thread has it.
    pub fn try_lock(&self) -> Option<Change<'_>> {
        let _lock = self.changing.try_lock()?;
        Some(Change { policies: self, _lock })
    }
}

impl Change<'_> {
    /// Whether what the policies need is running, or is to run. A rank that has ended needs nothing.
    pub fn is_open(&self) -> bool {
        self.policies.is_open.load(Ordering::Relaxed)
    }

    /// The rank begins, or ends.
    pub fn open(&self, is_open: bool) {
        self.policies.is_open.store(is_open, Ordering::Relaxed);
    }

    /// Gives the rank another policy of its own, which begins without what an adapting one had added.
    pub fn set_own(&self, progress: Progress) {
        self.policies.own.store(progress.index(), Ordering::Relaxed);
        self.policies.added.store(0, Ordering::Relaxed);
    }

    /// One communicator or window more has this policy.
    pub fn adopt(&self, progress: Progress) {
        self.policies.uses[usize::from(progress.index())].fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub fn renounce(&self, progress: Progress) {
        self.policies.uses[usize::from(progress.index())].fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds what an adapting policy takes.
    pub fn add(&self, capabilities: Capabilities) {
        self.policies.added.fetch_or(capabilities.bits(), Ordering::Relaxed);
    }

    /// What the policies need now.
    pub fn needed(&self) -> Capabilities {
        let used = Progress::NAMES
            .iter()
            .filter(|(_, progress)| self.policies.uses[usize::from(progress.index())].load(Ordering::Relaxed) > 0);
        let added = Capabilities::of_bits(self.policies.added.load(Ordering::Relaxed));
        let own = policy(self.policies.own()).capabilities().and(added);
        used.fold(own, |all, &(_, progress)| all.and(policy(progress).capabilities()))
    }

    /// Lets everybody see these capabilities, whose room has been made.
    pub fn settle(&self, capabilities: Capabilities) {
        self.policies.capabilities.store(capabilities.bits(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_stay_as_long_as_somebody_needs_them() {
        let policies = Policies::new(Progress::None);
        let change = policies.lock();
        assert_eq!(change.needed(), Capabilities::default());
        for progress in [Progress::Ghost, Progress::Ghost, Progress::Signal] {
            change.adopt(progress);
        }
        assert!(change.needed().has_ghost() && change.needed().may_interrupt());
        change.renounce(Progress::Ghost);
        change.renounce(Progress::Signal);
        assert!(change.needed().has_ghost() && !change.needed().may_interrupt());
        change.renounce(Progress::Ghost);
        assert_eq!(change.needed(), Capabilities::default());
        change.add(Capabilities::HELPER);
        assert!(change.needed().has_helper());
        change.set_own(Progress::Steal);
        assert!(change.needed().steals() && !change.needed().has_helper());
    }

    #[test]
    fn one_thread_at_a_time_changes_them() {
        let policies = Policies::new(Progress::Steal);
        let change = policies.lock();
        assert!(policies.try_lock().is_none());
        drop(change);
        assert!(policies.try_lock().is_some());
    }
}

//! The progress policy that a program asks for on one communicator or window, by the info key [`KEY`].

use crate::Outcome;
use crate::info::Info;
use cohort_abi::neutral;
use cohort_base::settings::Progress;
use cohort_engine::{Rank, lifecycle};
use core::sync::atomic::{AtomicU8, Ordering};

/// The key of `MPI_Comm_set_info`, `MPI_Win_set_info` and of the calls that make communicators and windows from
/// hints.
pub const KEY: &str = "cohort_progress";

/// No policy of its own.
const NONE: u8 = u8::MAX;

/// The policy of one communicator or window. While it lives the rank has what the policy needs.
pub struct OwnPolicy {
    rank: &'static Rank,
    chosen: AtomicU8,
}

impl OwnPolicy {
    /// That of the rank.
    #[must_use]
    pub fn of_rank(rank: &'static Rank) -> Self {
        Self { rank, chosen: AtomicU8::new(NONE) }
    }

    fn own(&self) -> Option<Progress> {
        // Relaxed: it orders nothing; a call that runs at the same time as a change has either.
        match self.chosen.load(Ordering::Relaxed) {
            NONE => None,
            index => Some(Progress::of_index(index)),
        }
    }

    /// The policy in force: its own, or else that of the rank.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Progress {
        self.own().unwrap_or_else(|| self.rank.progress())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.get().name()
    }

    /// Takes the policy that these hints name, if they name one. Threads come and go here, so not in a hurry.
    ///
    /// # Errors
    /// `MPI_ERR_INFO_VALUE` if it is none; nothing was done then.
    pub fn take(&self, hints: &Info) -> Outcome<()> {
        // Ranks that survive each other do no work for others, whatever hints say.
        if let Some(wanted) = wanted(hints)?.filter(|_| !self.rank.node().survives()) {
            let before = self.chosen.swap(wanted.index(), Ordering::Relaxed);
            let before = (before != NONE).then(|| Progress::of_index(before));
            lifecycle::exchange_policy(self.rank, before, Some(wanted));
        }
        Ok(())
    }
}

impl Drop for OwnPolicy {
    fn drop(&mut self) {
        if let Some(progress) = self.own() {
            lifecycle::exchange_policy(self.rank, Some(progress), None);
        }
    }
}

/// The policy that these hints name.
///
/// # Errors
/// `MPI_ERR_INFO_VALUE` if there is no policy of this name.
pub fn wanted(hints: &Info) -> Outcome<Option<Progress>> {
    match hints.get(KEY) {
        None => Ok(None),
        Some(name) => Progress::of_name(&name).map(Some).ok_or_else(|| neutral::ERR_INFO_VALUE.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_a_policy_or_none_or_are_wrong() {
        let hints = Info::default();
        assert_eq!(wanted(&hints), Ok(None));
        hints.set(KEY, "thread:rndv").unwrap();
        assert_eq!(wanted(&hints), Ok(Some(Progress::ThreadRendezvous)));
        hints.set(KEY, "gost").unwrap();
        assert_eq!(wanted(&hints), Err(neutral::ERR_INFO_VALUE.into()));
    }
}

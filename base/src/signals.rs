//! Which signals the calling thread blocks. By system call: neither a C library nor `errno` is used, so that tasks of
//! all ranks may do it. The C library's own signals are blocked as well.

use linux_raw_sys::general::{__NR_rt_sigprocmask, SIG_SETMASK, SIGBUS, SIGSEGV};

/// A set of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals(pub u64);

impl Signals {
    /// All.
    pub const ALL: Self = Self(u64::MAX);

    /// Those of faults: a thread that blocks them is killed where a handler would have helped.
    pub const FAULTS: Self = Self(1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1));

    /// All others.
    pub const ALL_BUT_FAULTS: Self = Self(!Self::FAULTS.0);

    /// Blocks these and no others, and returns what was blocked before.
    pub fn block(self) -> Self {
        let mut before = 0;
        change(&raw const self.0, &raw mut before);
        Self(before)
    }

    /// Blocks these and no others, as before [`Signals::block`].
    pub fn restore(self) {
        change(&raw const self.0, core::ptr::null_mut());
    }

    /// Those that the calling thread blocks.
    #[must_use]
    pub fn blocked() -> Self {
        let mut blocked = 0;
        change(core::ptr::null(), &raw mut blocked);
        Self(blocked)
    }

    /// Lets those of faults through. Returns what was blocked before, if one of them was.
    pub fn admit_faults() -> Option<Self> {
        let before = Self::blocked();
        before.has_faults().then(|| Self(before.0 & Self::ALL_BUT_FAULTS.0).block())
    }

    /// Whether one of those of faults is among them.
    #[must_use]
    pub const fn has_faults(self) -> bool {
        self.0 & Self::FAULTS.0 != 0
    }

    /// Whether a signal is among them.
    #[must_use]
    pub const fn has(self, signal: u32) -> bool {
        self.0 & (1 << (signal - 1)) != 0
    }
}

/// Sets the mask, if there is one, and writes what it was to `before`, if that is a place.
fn change(mask: *const u64, before: *mut u64) {
    let arguments = [SIG_SETMASK as usize, mask.addr(), before.addr(), size_of::<u64>(), 0, 0];
    // SAFETY: the callers pass live words of the size that is told, or NULL. With these it does not fail.
    unsafe { cohort_arch::system_call(__NR_rt_sigprocmask, arguments) };
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn signals_are_blocked_and_let_through_again() {
        let before = Signals::blocked();
        let first = Signals::ALL_BUT_FAULTS.block();
        assert_eq!(first, before);
        let now = Signals::blocked();
        assert!(!now.has(SIGSEGV) && !now.has(SIGBUS) && now.has(2) && now.has(15));
        assert_eq!(Signals::admit_faults(), None);
        Signals::ALL.block();
        let blocked = Signals::blocked();
        assert_eq!(Signals::admit_faults(), Some(blocked));
        assert_eq!(Signals::blocked(), Signals(blocked.0 & !Signals::FAULTS.0));
        first.restore();
        assert_eq!(Signals::blocked(), before);
    }
}

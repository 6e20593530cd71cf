//! What a window keeps for the fast path of calls (`fast_path.rs`): stamps of its members, and locks without an epoch.

use crate::grants::zeroed;
use crate::shared::{Part, WinShared};
use alloc::boxed::Box;
use cohort_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Flags of a member's stamp: the epoch is one of locks; it keeps all others away.
pub(super) const LOCK: u64 = 1;
pub(super) const ALONE: u64 = 2;
const FLAGS: u64 = LOCK | ALONE;
const STEP: u64 = FLAGS + 1;

/// Values of `held`. One member's lock is [`one`].
pub(super) const NOTHING: u64 = 0;
pub(super) const ALL: u64 = 1;

/// The lock of one member is held; exclusively, if the lowest bit is set.
#[inline]
pub(super) fn one(member: u32) -> u64 {
    (u64::from(member) << 1) + 2
}

/// Calls that wait for nothing between two turns of progress.
pub(super) const CALLS_PER_TURN: u32 = 16;

/// What a window keeps for the fast path; `fast_path.rs` has the protocol, with its steps. The owner's; thieves never
/// look.
pub(super) struct Short {
    stamp: AtomicU64,
    pub(super) stamps: Box<[AtomicU64]>,
    pub(super) parts: &'static [Part],
    pub(super) is_quiet: AtomicBool,
    /// Whether it is quiet while it has no epoch.
    may_be_quiet: AtomicBool,
    pub(super) held: AtomicU64,
}

/// What is held without an epoch.
pub(super) enum Held {
    One { member: u32, exclusive: bool },
    All,
}

impl Short {
    pub(super) fn new(shared: &'static WinShared) -> Self {
        Self {
            stamp: AtomicU64::new(STEP),
            // SAFETY: numbers may be zero, which no stamp of a window is.
            stamps: unsafe { zeroed(shared.members().len()) },
            parts: shared.parts(),
            is_quiet: AtomicBool::new(!shared.spans_nodes()),
            may_be_quiet: AtomicBool::new(!shared.spans_nodes()),
            held: AtomicU64::new(NOTHING),
        }
    }

    /// S2. Under the owner's claim, or by its only thread.
    #[inline]
    pub(super) fn forget(&self) {
        // Relaxed: see `fast_path.rs`.
        let stamp = self.stamp.load(Ordering::Relaxed);
        self.stamp.store(stamp + STEP, Ordering::Relaxed);
    }

    /// S1.
    #[inline]
    pub(super) fn remember(&self, member: u32, flags: u64) {
        let stamp = self.stamp.load(Ordering::Relaxed);
        // Release pairs with the Acquire of R1.
        self.stamps[member as usize].store(stamp | flags, Ordering::Release);
    }

    /// R1 and R2: the flags of a member's valid stamp. Any number may be asked for.
    #[inline(always)]
    pub(super) fn flags(&self, member: u32) -> Option<u64> {
        let flags = self.stamps.get(member as usize)?.load(Ordering::Acquire) ^ self.stamp.load(Ordering::Relaxed);
        (flags <= FLAGS).then_some(flags)
    }

    /// The window has an epoch, or a lock is held without one.
    #[inline]
    pub(super) fn end_quiet(&self) {
        self.is_quiet.store(false, Ordering::Relaxed);
    }

    /// The window has neither.
    #[inline]
    pub(super) fn begin_quiet(&self) {
        let is_quiet = self.may_be_quiet.load(Ordering::Relaxed);
        self.is_quiet.store(is_quiet, Ordering::Relaxed);
    }

    /// Whether calls may take locks without an epoch from now on.
    pub(super) fn set_may_be_quiet(&self, may_be_quiet: bool) {
        self.may_be_quiet.store(may_be_quiet, Ordering::Relaxed);
        if !may_be_quiet {
            self.end_quiet();
        }
    }
}

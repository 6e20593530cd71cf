//! How far a process has come between initialisation and finalisation.

use cohort_abi::neutral;
use cohort_base::boot::Lifecycle;
use cohort_engine::{Owner, leave_messages, lifecycle};
use cohort_object::ports;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use spin::Mutex;

/// How far a process has come, and its thread level.
pub struct Lifetime {
    stage: AtomicU32,
    /// Thread level, neutral.
    pub thread_level: AtomicI32,
    /// Thread id of the thread that initialised MPI.
    pub main_thread: AtomicI32,
    /// Uses of MPI that have begun and not ended: sessions, and the time from `MPI_Init` to
    /// `MPI_Finalize`.
    uses: Mutex<Uses>,
}

/// Uses of MPI of a process.
struct Uses {
    /// Those that have begun and not ended.
    begun: u32,
    /// Of these, those that are about to end.
    leaving: u32,
}

/// A use of MPI that is about to end; dropped, it goes on.
pub struct Leaving<'a> {
    lifetime: &'a Lifetime,
    /// Whether all others have ended or are about to, so that MPI ends with this one. Of several that end at a time one
    /// is told so.
    pub is_last: bool,
}

impl Lifetime {
    /// Before initialisation.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            stage: AtomicU32::new(Lifecycle::Fresh as u32),
            thread_level: AtomicI32::new(neutral::THREAD_SINGLE),
            main_thread: AtomicI32::new(0),
            uses: Mutex::new(Uses { begun: 0, leaving: 0 }),
        }
    }

    /// Whether the process is at this stage.
    pub fn is(&self, stage: Lifecycle) -> bool {
        self.stage.load(Ordering::Acquire) == stage as u32
    }

    /// How far the process has come, for messages.
    pub fn stage_text(&self) -> &'static str {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == Lifecycle::Fresh as u32 => "MPI has not been initialised",
            stage if stage == Lifecycle::Finalized as u32 => "MPI has been finalised",
            _ => "MPI is initialised",
        }
    }

    /// The process is at this stage now.
    pub fn reach(&self, stage: Lifecycle) {
        self.stage.store(stage as u32, Ordering::Release);
    }

    /// Begins a use of MPI. The loader then takes the end of the rank for a failure.
    pub fn enter(&self, owner: Owner<'static>) {
        let mut uses = self.uses.lock();
        uses.begun += 1;
        if uses.begun == 1 {
            lifecycle::begin(owner);
            owner.rank().boot().reach(Lifecycle::Initialized);
        }
    }

    /// A use of MPI is about to end.
    pub fn begin_to_leave(&self) -> Leaving<'_> {
        let mut uses = self.uses.lock();
        uses.leaving += 1;
        Leaving { lifetime: self, is_last: uses.leaving == uses.begun }
    }
}

impl Leaving<'_> {
    /// Ends the use of MPI. Nobody waits in `MPI_Finalize` for a process without one, which may never call that.
    pub fn end(self, owner: Owner<'static>) {
        let mut uses = self.lifetime.uses.lock();
        uses.begun -= 1;
        if uses.begun == 0 {
            ports::end(owner.rank());
            lifecycle::end(owner);
            lifecycle::leave_without_meeting(owner);
            owner.rank().boot().reach(Lifecycle::Finalized);
            leave_messages(owner.rank());
        }
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.lifetime.uses.lock().leaving -= 1;
    }
}

impl Default for Lifetime {
    fn default() -> Self {
        Self::new()
    }
}

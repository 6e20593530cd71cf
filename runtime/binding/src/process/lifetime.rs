//! How far a process has come between initialisation and finalisation.

use cohort_abi::neutral;
use cohort_base::boot::Lifecycle;
use cohort_engine::{Owner, lifecycle};
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
    uses: Mutex<u32>,
}

impl Lifetime {
    /// Before initialisation.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            stage: AtomicU32::new(Lifecycle::Fresh as u32),
            thread_level: AtomicI32::new(neutral::THREAD_SINGLE),
            main_thread: AtomicI32::new(0),
            uses: Mutex::new(0),
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
        *uses += 1;
        if *uses == 1 {
            lifecycle::begin(owner);
            owner.rank().boot().reach(Lifecycle::Initialized);
        }
    }

    /// Whether MPI ends for this process with the use that ends next.
    pub fn is_last_use(&self) -> bool {
        *self.uses.lock() == 1
    }

    /// Ends a use of MPI. Nobody waits in `MPI_Finalize` for a process without one, which may never call that.
    pub fn leave(&self, owner: Owner<'static>) {
        let mut uses = self.uses.lock();
        *uses -= 1;
        if *uses == 0 {
            ports::end(owner.rank());
            lifecycle::end(owner);
            lifecycle::leave_without_meeting(owner);
            owner.rank().boot().reach(Lifecycle::Finalized);
        }
    }
}

impl Default for Lifetime {
    fn default() -> Self {
        Self::new()
    }
}

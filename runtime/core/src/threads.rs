//! How the threads of one rank share it (`MPI_THREAD_MULTIPLE`).
//!
//! Each call takes the rank's claim, and so does each turn of a thread that waits. Threads are likely to outnumber
//! CPUs even where ranks do not. So a thread that finds the claim taken gives its CPU away a few times before it
//! queues up to sleep: a claim that is handed on to a sleeper lies idle until that one runs, and everybody who
//! comes meanwhile queues up too. And while several threads wait, each gives its CPU away instead of spinning: what it
//! waits for may be a message that another one is about to send.

use crate::yield_policy::YieldPolicy;
use cohort_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::sync::atomic::compiler_fence;

/// Times that a thread gives its CPU away before it queues up for the claim.
const YIELDS: u32 = 16;

/// The threads of one rank. All accesses are Relaxed: the level is set before there are threads,
/// and the count is a hint.
#[derive(Debug)]
pub struct Threads {
    are_multiple: AtomicBool,
    waiting: AtomicU32,
    /// Whether a handler that interrupts the rank's thread finds it busy.
    keeps_handler_out: AtomicBool,
}

impl Default for Threads {
    /// One thread, which does not wait.
    fn default() -> Self {
        Self {
            are_multiple: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            keeps_handler_out: AtomicBool::new(false),
        }
    }
}

impl Threads {
    /// Whether several threads may be in calls at a time.
    #[inline]
    pub fn are_multiple(&self) -> bool {
        self.are_multiple.load(Ordering::Relaxed)
    }

    /// Several threads may be in calls at a time from now on, or one.
    pub fn set_multiple(&self, multiple: bool) {
        self.are_multiple.store(multiple, Ordering::Relaxed);
    }

    /// What a thread does each time it finds the claim taken; see [`cohort_steal::claim::ClaimWord::claim_yielding`].
    #[inline]
    pub fn yielding(&self, yield_policy: &YieldPolicy) -> impl FnMut() -> bool {
        let mut yields = 0;
        move || {
            yields += 1;
            self.are_multiple() && yields <= YIELDS && yield_policy.give_way().is_some()
        }
    }

    /// From now on a handler finds the thread busy, or not any more. The thread and its handler are one to the
    /// hardware, so the order is the compiler's alone.
    #[inline]
    pub fn keep_handler_out(&self, busy: bool) {
        compiler_fence(Ordering::SeqCst);
        self.keeps_handler_out.store(busy, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Whether a handler finds the thread busy that it interrupts.
    pub fn keeps_handler_out(&self) -> bool {
        self.keeps_handler_out.load(Ordering::Relaxed)
    }

    /// A thread begins to wait.
    #[inline]
    pub fn begin_wait(&self) {
        if self.are_multiple() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A thread that began to wait has ended.
    #[inline]
    pub fn end_wait(&self) {
        if self.are_multiple() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether several threads wait.
    #[inline]
    pub fn share_a_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 1
    }
}

//! How the threads of one rank share it (`MPI_THREAD_MULTIPLE`).
//!
//! Each call takes the rank's claim, and so does each turn of a thread that waits. Threads are likely to outnumber
//! CPUs even where ranks do not. So a thread that finds the claim taken gives its CPU away a few times before it
//! queues up to sleep: a claim that is handed on to a sleeper lies idle until that one runs, and everybody who
//! comes meanwhile queues up too. And while several threads wait, each gives its CPU away instead of spinning: what it
//! waits for may be a message that another one is about to send. Where somebody takes the CPU each time, threads
//! outnumber CPUs, and each looks once before it gives it away again.
//!
//! A thread of the runtime's own may be in calls of the engine that wait, beside the program's ([`Block`]).

use crate::yield_policy::YieldPolicy;
use cohort_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{from_ref, null, with_exposed_provenance};
use core::sync::atomic::compiler_fence;

/// Times that a thread gives its CPU away before it queues up for the claim.
const YIELDS: u32 = 16;

/// What the register for thread-local data leads to in a thread of the runtime's own that runs calls of the engine for
/// its rank, as the program's threads do. It has no thread-local data, so nothing of the program's may run in it: no
/// function that the program has given MPI, no handler of its signals. By its block such a thread is told from the
/// program's: claims that it takes are none of the owner's ([`Claim::is_by_owner`](crate::Claim::is_by_owner)).
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Block {
    /// Its own address, as in the blocks of C libraries.
    this: *const c_void,
    /// [`MARK`], where C libraries have an address.
    mark: usize,
    /// The MPI function that the thread works for, if it is sure.
    call: Cell<Option<&'static &'static str>>,
    /// What a C library's functions would look at.
    rest: [usize; 13],
}

/// No address: it is odd, and not canonical.
const MARK: usize = 0xC0_40_47_F1_1E_00_00_01;

impl Block {
    /// One that is not in its place yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { this: null(), mark: MARK, call: Cell::new(None), rest: [0; 13] }
    }

    /// It stays where it is.
    pub fn settle(&mut self) {
        self.this = with_exposed_provenance(from_ref(self).expose_provenance());
    }

    /// Whether the calling thread has such a block.
    #[must_use]
    pub fn is_callers() -> bool {
        #[cfg(all(not(miri), not(loom)))]
        {
            cohort_arch::thread_block_word() == MARK
        }
        #[cfg(any(miri, loom))]
        false
    }

    /// That of the calling thread.
    #[must_use]
    pub fn of_caller() -> Option<&'static Self> {
        #[cfg(all(not(miri), not(loom)))]
        {
            let block = with_exposed_provenance::<Self>(cohort_arch::thread_block());
            // SAFETY: the mark says what it is; it stays as long as the thread, which is the only one to ask for it.
            Self::is_callers().then(|| unsafe { &*block })
        }
        #[cfg(any(miri, loom))]
        None
    }

    /// The thread works for this MPI function from now on.
    pub fn set_call(&self, call: Option<&'static &'static str>) {
        self.call.set(call);
    }

    /// The MPI function that it works for.
    pub(crate) fn call(&self) -> Option<&'static str> {
        self.call.get().copied()
    }
}

impl Default for Block {
    fn default() -> Self {
        Self::new()
    }
}

/// The threads of one rank. All accesses are Relaxed: the level is set before there are threads,
/// and the count is a hint.
#[derive(Debug)]
pub struct Threads {
    are_multiple: AtomicBool,
    /// Those of the program.
    are_programs_multiple: AtomicBool,
    waiting: AtomicU32,
    /// Whether somebody took the CPU that a waiting one last gave away.
    is_cpu_taken: AtomicBool,
    /// Whether a handler that interrupts the rank's thread finds it busy.
    keeps_handler_out: AtomicBool,
}

impl Default for Threads {
    /// One thread, which does not wait.
    fn default() -> Self {
        Self {
            are_multiple: AtomicBool::new(false),
            are_programs_multiple: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            is_cpu_taken: AtomicBool::new(false),
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

    /// Several threads of the program may be in calls at a time from now on.
    pub fn set_multiple(&self) {
        self.are_programs_multiple.store(true, Ordering::Relaxed);
        self.are_multiple.store(true, Ordering::Relaxed);
    }

    /// One thread of another program, which does not wait.
    pub fn renew(&self) {
        let flags = [&self.are_multiple, &self.are_programs_multiple, &self.is_cpu_taken, &self.keeps_handler_out];
        for flag in flags {
            flag.store(false, Ordering::Relaxed);
        }
        self.waiting.store(0, Ordering::Relaxed);
    }

    /// Whether they may.
    pub fn are_programs_multiple(&self) -> bool {
        self.are_programs_multiple.load(Ordering::Relaxed)
    }

    /// A thread with a [`Block`] may be in calls beside the program's from now on, or none.
    pub fn set_helped(&self, helped: bool) {
        self.are_multiple.store(helped || self.are_programs_multiple(), Ordering::Relaxed);
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

    /// A waiting thread gave its CPU away; `is_taken`: for so long that somebody else has run on it.
    pub fn note_yield(&self, is_taken: bool) {
        // The line stays with all of them while nothing changes.
        if self.is_cpu_taken.load(Ordering::Relaxed) != is_taken {
            self.is_cpu_taken.store(is_taken, Ordering::Relaxed);
        }
    }

    /// Whether several threads wait and outnumber CPUs.
    #[inline]
    pub fn share_a_cpu(&self) -> bool {
        self.share_a_wait() && self.is_cpu_taken.load(Ordering::Relaxed)
    }
}

//! The polling thread of a rank (`COHORT_PROGRESS=thread`).
//!
//! It is a bare kernel thread of the rank's task: the node image has no libc to make a pthread
//! with, and needs none, since stealable code uses no thread-local data. All signals are
//! blocked in it, so that handlers of the application never run on it.
//!
//! Like a thief it takes the claim for one turn at a time, and like a waiting rank it parks when
//! nothing moves, in the rank's own slot, where every message to the rank wakes it.

use crate::arch;
use crate::net;
use crate::partitioned::Opened;
use crate::progress;
use crate::rank::Rank;
use crate::wait::{Patience, UNSURE_SLEEP};
use cohort_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use cohort_base::sync::pause;
use core::ffi::c_void;
use core::ptr::{from_ref, null_mut};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Bytes of the thread's stack, of which the lowest page is a guard.
const STACK: usize = 128 << 10;
const GUARD: usize = 4096;

/// A rank's polling thread, if it has one.
#[derive(Debug)]
pub(crate) struct Poller {
    stop: AtomicBool,
    /// 1 while the thread lives; the kernel clears it.
    alive: AtomicU32,
    stack: AtomicPtr<c_void>,
}

impl Poller {
    pub(crate) fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            alive: AtomicU32::new(0),
            stack: AtomicPtr::new(null_mut()),
        }
    }

    /// Starts the thread, if it does not run and the kernel lets us.
    pub(crate) fn start(&self, rank: &'static Rank) {
        if self.alive.load(Ordering::Acquire) != 0 {
            return;
        }
        let Some(stack) = map_stack() else {
            return;
        };
        self.stack.store(stack, Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
        self.alive.store(1, Ordering::Relaxed);
        let signals = arch::block_signals();
        // SAFETY: the stack is fresh, and unmapped in `stop` only after the thread has ended;
        // the rank lives for ever; `run` is stealable code.
        let started = unsafe {
            let end = stack.cast::<u8>().add(STACK);
            let argument = from_ref(rank).cast();
            arch::start_thread(end, self.alive.as_ptr(), run, argument)
        };
        arch::restore_signals(signals);
        if started < 0 {
            self.alive.store(0, Ordering::Relaxed);
            self.unmap_stack();
        }
    }

    /// Stops the thread, if there is one, and waits for its end.
    pub(crate) fn stop(&self, rank: &Rank) {
        use rustix::thread::futex::{Flags, wait};
        if self.stack.load(Ordering::Relaxed).is_null() {
            return;
        }
        self.stop.store(true, Ordering::Release);
        rank.wake();
        while self.alive.load(Ordering::Acquire) != 0 {
            // The kernel's wake-up is of the shared kind. A failed wait just looks again.
            let _ = wait(&self.alive, Flags::empty(), 1, None);
        }
        self.unmap_stack();
    }

    fn unmap_stack(&self) {
        let stack = self.stack.swap(null_mut(), Ordering::Relaxed);
        // SAFETY: mapped by `map_stack`, and no thread uses it. Unmapping a whole mapping
        // does not fail.
        let _ = unsafe { munmap(stack, STACK) };
    }
}

fn map_stack() -> Option<*mut c_void> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice, whose first page is ours to
    // protect.
    unsafe {
        let stack = mmap_anonymous(null_mut(), STACK, protection, flags).ok()?;
        if mprotect(stack, GUARD, MprotectFlags::empty()).is_err() {
            let _ = munmap(stack, STACK);
            return None;
        }
        Some(stack)
    }
}

/// The thread.
///
/// # Safety
/// `rank` is a rank.
unsafe extern "C" fn run(rank: *const c_void) {
    // SAFETY: `start` passed a rank, which lives for ever.
    let rank = unsafe { &*rank.cast::<Rank>() };
    let mut patience = Patience::new(rank);
    while !rank.poller().stop.load(Ordering::Acquire) {
        if poll(rank) {
            patience.renew();
        } else if patience.is_over() {
            park(rank);
            patience.renew();
        } else {
            pause();
        }
    }
}

/// One turn for the rank; `true` when something moved.
fn poll(rank: &Rank) -> bool {
    let Some(mut claim) = rank.try_steal() else {
        return false;
    };
    let turn = progress::turn(&mut claim);
    let work = turn.work.or_else(|| progress::own_work(&mut claim, false));
    drop(claim);
    let opened = turn.opened.map_or(0, Opened::work);
    let helped = opened + work.map_or(0, |work| work.run(u32::MAX));
    turn.moved || helped > 0
}

/// Sleeps until something happens to the rank.
fn park(rank: &Rank) {
    let ticket = rank.park().prepare(rank.node().barriers());
    let stop = &rank.poller().stop;
    if stop.load(Ordering::Acquire) || poll(rank) {
        rank.park().cancel(ticket);
    } else {
        // While the owner is in a call it holds the claim and handles everything itself; when it
        // leaves, a message that it left behind may wait for us, so that the sleep is short.
        let limit = rank.is_claimed().then_some(UNSURE_SLEEP);
        net::sleep(rank, ticket, limit);
    }
}

//! Atomics, barriers and the futex: the only way lock-free code of Cohort touches them.
//!
//! Under `--cfg loom` the atomics are loom's, so that the same source is model-checked.
//!
//! # The asymmetric barrier
//!
//! Publishing a message and then asking "is the receiver asleep?" is a store followed by
//! a load of another location, which x86 may reorder. A full fence on every message
//! costs more than the message. [`Barriers::light`] is a compiler fence on the
//! sender's side, paired with [`Barriers::heavy`] (`membarrier`) on the side
//! that is about to sleep, which pays for both. When ranks outnumber cores sleeping is
//! the common case, and both sides take an ordinary fence.

#[cfg(not(loom))]
pub use core::sync::atomic;
#[cfg(loom)]
pub use loom::sync::atomic;

#[cfg(not(loom))]
use core::sync::atomic::{Ordering, compiler_fence, fence};

/// Tells the CPU that this is a polling loop; under loom, lets another thread run.
#[inline]
pub fn pause() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Keeps its content alone on a cache line (and its prefetched neighbour's).
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct CacheLine<T>(pub T);

impl<T> core::ops::Deref for CacheLine<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> core::ops::DerefMut for CacheLine<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// Orders an atomic operation that reads and writes before later reads, as a full barrier does. On x86-64 the operation
/// is one.
#[inline]
pub fn fence_behind_locked() {
    #[cfg(not(loom))]
    cohort_arch::fence_behind_locked();
    #[cfg(loom)]
    loom::sync::atomic::fence(atomic::Ordering::SeqCst);
}

/// How the two sides of a sleep/wake handshake order their store before their load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barriers {
    /// Light is a compiler fence, heavy is `membarrier(PRIVATE_EXPEDITED)`.
    Asymmetric,
    /// Both are sequentially consistent fences.
    Symmetric,
}

impl Barriers {
    /// Registers this address space for `membarrier` and says which kind works.
    /// `crowded` (more ranks than CPUs) makes sleeping the common case, where the
    /// symmetric kind is cheaper in total.
    #[cfg(not(loom))]
    #[must_use]
    pub fn detect(crowded: bool) -> Self {
        use rustix::thread::{MembarrierCommand, membarrier};
        // Miri does not know the call.
        if !cfg!(miri) && !crowded && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() {
            Self::Asymmetric
        } else {
            Self::Symmetric
        }
    }

    /// Orders the caller's earlier stores before its later loads, paired with
    /// [`Barriers::heavy`] of the other side. For the frequent side.
    #[inline]
    pub fn light(self) {
        #[cfg(not(loom))]
        match self {
            Self::Asymmetric => compiler_fence(Ordering::SeqCst),
            Self::Symmetric => fence(Ordering::SeqCst),
        }
        #[cfg(loom)]
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    }

    /// Stores `value` with release order and passes [`Barriers::light`], for a load with
    /// sequentially consistent order to follow. A swap costs less than a store and a fence.
    #[inline]
    pub fn store(self, word: &atomic::AtomicU32, value: u32) {
        #[cfg(not(loom))]
        match self {
            Self::Asymmetric => {
                word.store(value, Ordering::Release);
                compiler_fence(Ordering::SeqCst);
            }
            Self::Symmetric => {
                word.swap(value, Ordering::SeqCst);
            }
        }
        #[cfg(loom)]
        {
            word.store(value, loom::sync::atomic::Ordering::Release);
            self.light();
        }
    }

    /// The same for the rare side, which is about to sleep.
    #[inline]
    pub fn heavy(self) {
        #[cfg(not(loom))]
        match self {
            Self::Asymmetric => {
                use rustix::thread::{MembarrierCommand, membarrier};
                // Registered in `detect`, so it cannot fail; a full fence keeps at least
                // our own order if a kernel ever says otherwise.
                if membarrier(MembarrierCommand::PrivateExpedited).is_err() {
                    fence(Ordering::SeqCst);
                }
            }
            Self::Symmetric => fence(Ordering::SeqCst),
        }
        #[cfg(loom)]
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    }
}

/// The private futex of one 32-bit word, or of the upper half of a 64-bit word.
#[cfg(not(loom))]
pub mod futex {
    use core::sync::atomic::{AtomicU32, AtomicU64};
    use core::time::Duration;
    use rustix::thread::futex::{Flags, Timespec, wait as raw_wait, wake as raw_wake};

    /// Why a wait ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Wait {
        /// Woken, interrupted by a signal, or the word had another value already:
        /// look at the word again.
        Again,
        /// The time is over.
        TimedOut,
    }

    /// Sleeps while `*word == expected`, at most `limit` (for ever if `None`).
    ///
    /// It is part of a function that has saved where it returns to, so that whoever looks at the task finds its callers
    /// (`pip-exec --inspect`).
    #[inline(always)]
    pub fn wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) -> Wait {
        let limit =
            limit.map(|limit| Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) });
        match raw_wait(word, Flags::PRIVATE, expected, limit.as_ref()) {
            Err(rustix::io::Errno::TIMEDOUT) => Wait::TimedOut,
            _ => Wait::Again,
        }
    }

    /// Wakes at most `count` sleepers of `word`.
    pub fn wake(word: &AtomicU32, count: u32) {
        // Waking a valid address does not fail.
        let _ = raw_wake(word, Flags::PRIVATE, count);
    }

    /// Only the kernel reads it: Rust's atomics of one place have one size.
    fn upper(word: &AtomicU64) -> &AtomicU32 {
        let half = usize::from(cfg!(target_endian = "little"));
        // SAFETY: half of a word that is borrowed as long, aligned as an `AtomicU32`.
        unsafe { &*core::ptr::from_ref(word).cast::<AtomicU32>().add(half) }
    }

    /// [`wait`] while the upper half of `word` is `expected`, whatever the lower half is.
    #[inline(always)]
    pub fn wait_upper(word: &AtomicU64, expected: u32, limit: Option<Duration>) -> Wait {
        if cfg!(miri) {
            // Miri reads no part of an atomic word; whoever waits looks again anyway.
            core::hint::spin_loop();
            return Wait::Again;
        }
        wait(upper(word), expected, limit)
    }

    /// Wakes all sleepers of [`wait_upper`].
    pub fn wake_upper(word: &AtomicU64) {
        if !cfg!(miri) {
            wake(upper(word), i32::MAX as u32);
        }
    }
}

/// The futex as a model: the kernel's bucket lock is a mutex, its queue a condition variable.
///
/// All words share one queue, so a model may sleep on one word only. Time limits do
/// not exist: a model that needs one to end has lost a wake-up.
#[cfg(loom)]
pub mod futex {
    use core::time::Duration;
    use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use loom::sync::{Condvar, Mutex};

    loom::lazy_static! {
        static ref LOCK: Mutex<()> = Mutex::new(());
        static ref QUEUE: Condvar = Condvar::new();
    }

    /// Why a wait ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Wait {
        /// Woken, or the word had another value already: look at the word again.
        Again,
    }

    /// Sleeps while `*word == expected`.
    pub fn wait(word: &AtomicU32, expected: u32, _limit: Option<Duration>) -> Wait {
        wait_while(|| word.load(Ordering::SeqCst) == expected)
    }

    /// [`wait`] while the upper half of `word` is `expected`, whatever the lower half is.
    pub fn wait_upper(word: &AtomicU64, expected: u32, _limit: Option<Duration>) -> Wait {
        wait_while(|| (word.load(Ordering::SeqCst) >> 32) as u32 == expected)
    }

    fn wait_while(is_as_expected: impl FnOnce() -> bool) -> Wait {
        if let Ok(guard) = LOCK.lock()
            && is_as_expected()
        {
            drop(QUEUE.wait(guard));
        }
        Wait::Again
    }

    /// Wakes all sleepers of [`wait_upper`].
    pub fn wake_upper(_word: &AtomicU64) {
        if let Ok(_guard) = LOCK.lock() {
            QUEUE.notify_all();
        }
    }

    /// Wakes at most `count` sleepers.
    pub fn wake(_word: &AtomicU32, count: u32) {
        if let Ok(_guard) = LOCK.lock() {
            if count == 1 {
                QUEUE.notify_one();
            } else {
                QUEUE.notify_all();
            }
        }
    }
}

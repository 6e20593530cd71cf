//! A lock and a value that is made once, for whatever the owners of several ranks share.
//!
//! `std`'s locks count poisoning in thread-local data and spinning locks burn the CPU that the holder may need, so
//! that neither fits code that runs on tasks with different C libraries. Whoever waits here sleeps in the kernel.
//!
//! **Not for thieves and signal handlers**: who interrupts or helps the holder would wait for itself. The lock
//! is neither fair nor recursive. A holder that dies keeps it; so does a panic, unless it unwinds (in tests).
//!
//! # State of a [`FutexLock`]
//! One word ("Futexes are tricky", U. Drepper, mutex 2): [`FREE`], [`HELD`], or [`AWAITED`]: held,
//! and somebody may sleep.
//!
//! # Protocol
//! ```text
//! lock                                     unlock
//! L1 FREE -> HELD: done                    U1 swap to FREE
//! L2 spin a little while it is HELD        U2 it was AWAITED: futex wake, one
//! L3 swap to AWAITED; it was FREE: done
//! L4 futex wait while AWAITED; go to L3
//! ```
//!
//! # Why only one has it
//! It is taken by L1 or by an L3 that saw FREE, each one atomic step from FREE to something else;
//! only U1 of the holder makes it FREE again. L1 and L3 are Acquire, U1 is Release, so the next
//! holder sees what the last one wrote (an L3 that found it taken is a read-modify-write between
//! them and continues the release sequence).
//!
//! # Why no wake-up is lost
//! While a thread sleeps, the word is AWAITED or somebody is on the way to L3. A thread sleeps only
//! if the word is AWAITED then (the kernel compares and queues in one step). Only a U1 makes an
//! AWAITED word something else, and its U2 wakes one sleeper, who goes to L3. Until it is there
//! others may lock and unlock by L1 and U1 without a wake-up; its L3 makes the word AWAITED again,
//! whether it takes the lock or not, so that the next U1 wakes the next sleeper. Each U1 is
//! followed by another one as long as each holder unlocks. The price is one wake-up in vain after
//! the last sleeper.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{futex, pause};
use core::marker::PhantomData;

#[cfg(not(loom))]
use core::cell::UnsafeCell;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// Nobody has the lock.
const FREE: u32 = 0;
/// Somebody has it, and nobody sleeps.
const HELD: u32 = 1;
/// Somebody has it, and others may sleep.
const AWAITED: u32 = 2;

/// Looks at a held lock before its waiter sleeps: some microseconds, about what a sleep and a wake-up cost.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// What happens when somebody waits for a lock for so long that its holder must have died.
#[cfg(not(loom))]
pub mod stuck {
    use crate::clock::{ticks, ticks_per_us};
    use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
    use crate::sync::futex::{self, Wait};
    use core::ptr::null_mut;
    use core::time::Duration;

    /// No holder needs a small part of this.
    pub(crate) const LIMIT: Duration = Duration::from_secs(10);

    static CALLED: AtomicPtr<()> = AtomicPtr::new(null_mut());

    /// From now on this is called in such a wait, again and again.
    pub fn call(function: fn()) {
        CALLED.store(function as *mut (), Ordering::Release);
    }

    /// Whether something is called, since tasks may die while others go on.
    #[must_use]
    pub fn is_called() -> bool {
        !CALLED.load(Ordering::Acquire).is_null()
    }

    /// For who spins, and has done so since this time in ticks: if that is so long that the holder must have died.
    pub fn look(since: u64) {
        if is_called() && ticks().wrapping_sub(since) > LIMIT.as_micros() as u64 * ticks_per_us() {
            tell();
        }
    }

    /// Somebody has waited for so long.
    pub(crate) fn tell() {
        let function = CALLED.load(Ordering::Acquire);
        if !function.is_null() {
            // SAFETY: only `call` stores here.
            let function: fn() = unsafe { core::mem::transmute(function) };
            function();
        }
    }

    /// L4.
    pub(super) fn wait(word: &AtomicU32, expected: u32) {
        if !is_called() {
            futex::wait(word, expected, None);
        } else if futex::wait(word, expected, Some(LIMIT)) == Wait::TimedOut {
            tell();
        }
    }
}

/// As in programs; models have no clock.
#[cfg(loom)]
pub mod stuck {
    /// Nothing happens.
    pub fn look(_since: u64) {}

    pub(super) fn wait(word: &crate::sync::atomic::AtomicU32, expected: u32) {
        crate::sync::futex::wait(word, expected, None);
    }
}

/// A value that one thread at a time uses; the others sleep meanwhile.
#[derive(Debug)]
pub struct FutexLock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is used by one thread at a time, by whoever has the lock; so it is sent from thread to thread.
unsafe impl<T: Send> Sync for FutexLock<T> {}

impl<T: Default> Default for FutexLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> FutexLock<T> {
    /// A lock that nobody has, and its value.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { word: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// A lock that nobody has, and its value.
    #[cfg(loom)]
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { word: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// The value, of a lock that nobody can take any more. A holder that has died does not matter.
    #[cfg(not(loom))]
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// Takes the lock, and sleeps until it can. Who has it already waits for ever.
    #[inline]
    pub fn lock(&self) -> FutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait_and_lock(),
        }
    }

    /// Runs `work` with the value, and gives the lock back.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock())
    }

    /// Takes the lock if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<FutexGuard<'_, T>> {
        // L1. Acquire pairs with U1's Release.
        self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok().then(|| self.guard())
    }

    #[cold]
    fn wait_and_lock(&self) -> FutexGuard<'_, T> {
        // L2. With a sleeper there is nothing to gain: the holder's U1 enters the kernel anyway.
        let mut left = SPINS;
        while left > 0 {
            left -= 1;
            match self.word.load(Ordering::Relaxed) {
                HELD => pause(),
                FREE => match self.try_lock() {
                    Some(guard) => return guard,
                    None => pause(),
                },
                _ => break,
            }
        }
        // L3. Acquire pairs with U1's Release.
        while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
            stuck::wait(&self.word, AWAITED); // L4
        }
        self.guard()
    }

    /// The right to the value, for who has just taken the lock.
    fn guard(&self) -> FutexGuard<'_, T> {
        FutexGuard { lock: self, stays_here: PhantomData }
    }

    /// Where the value is, for reading. In a model this counts as a use that no writing may meet.
    fn place(&self) -> *const T {
        #[cfg(not(loom))]
        return self.value.get();
        #[cfg(loom)]
        self.value.with(|place| place)
    }

    /// Where the value is, for writing. In a model this counts as a use that no other use may meet.
    fn place_mut(&self) -> *mut T {
        #[cfg(not(loom))]
        return self.value.get();
        #[cfg(loom)]
        self.value.with_mut(|place| place)
    }
}

/// The right to the value of a [`FutexLock`]; gives the lock back when it is dropped, by the thread that took it.
#[derive(Debug)]
#[must_use = "the lock is free again when this is dropped"]
pub struct FutexGuard<'lock, T> {
    lock: &'lock FutexLock<T>,
    /// Not `Send`: nobody else can tell when the thread that took the lock may wait for it again.
    stays_here: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared references to the value only.
unsafe impl<T: Sync> Sync for FutexGuard<'_, T> {}

impl<T> core::ops::Deref for FutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard has the lock, so nobody else uses the value.
        unsafe { &*self.lock.place() }
    }
}

impl<T> core::ops::DerefMut for FutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard has the lock, so nobody else uses the value, and it is borrowed for as long.
        unsafe { &mut *self.lock.place_mut() }
    }
}

impl<T> Drop for FutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // U1. Release pairs with L1 and L3.
        if self.lock.word.swap(FREE, Ordering::Release) == AWAITED {
            futex::wake(&self.lock.word, 1);
        }
    }
}

/// A value that the first who asks for it makes, while the others wait. Later looks are one load.
#[derive(Debug)]
pub struct FutexOnce<T> {
    /// 1 once the value is there, which it is from then on, unchanged.
    is_made: AtomicU32,
    value: FutexLock<Option<T>>,
}

// SAFETY: the lock covers the making; afterwards everybody has shared references to the value, which `T: Sync` allows.
unsafe impl<T: Send + Sync> Sync for FutexOnce<T> {}

impl<T> Default for FutexOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FutexOnce<T> {
    /// Not made yet.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { is_made: AtomicU32::new(0), value: FutexLock::new(None) }
    }

    /// Not made yet.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { is_made: AtomicU32::new(0), value: FutexLock::new(None) }
    }

    /// The value, if it was made.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        // Acquire pairs with the Release in `make`.
        if self.is_made.load(Ordering::Acquire) == 0 {
            return None;
        }
        // SAFETY: it was made before, and from then on nobody writes the place.
        unsafe { &*self.value.place() }.as_ref()
    }

    /// The value; `make` makes it if nobody has. `make` must not ask for the same value.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.make(make),
        }
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> T) -> &T {
        let mut value = self.value.lock();
        if value.is_none() {
            *value = Some(make());
            // Release pairs with the Acquire in `get`.
            self.is_made.store(1, Ordering::Release);
        }
        drop(value);
        self.get().expect("made above or by somebody else before")
    }
}

#[cfg(test)]
mod tests;

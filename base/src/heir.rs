//! A lock whose value outlives whoever dies with it, for tables of a node whose ranks survive each other.
//!
//! There are two places for the value, and a word that says which of them counts. Whoever changes the value works on a
//! copy, which it puts into the other place; then it changes the word, in one store, and forgets the old value. So one
//! who dies with the lock leaves either the old value or the new one, whole, and what it had under way is lost memory.
//!
//! The lock's word has the holder's process. Who waits looks from time to time whether that process is there, and takes
//! the lock from one that is not. A process that has ended counts as there until its parent has seen that, which the
//! launcher does at once. Should the kernel have given its number to another process since, the waiter is
//! [stuck](crate::lock::stuck) as with any other lock.
//!
//! Where ranks do not survive each other this is a plain lock, and values are changed where they are.
//!
//! # Protocol
//! ```text
//! lock                                          unlock
//! L1 FREE -> own process: done                  U1 swap to FREE
//! L2 mark the word as AWAITED                   U2 it was AWAITED: futex wake, all
//! L3 futex wait while it is that, for some time
//! L4 the holder is gone: its word -> own process, AWAITED: done
//! L5 go to L1
//! ```
//! One who dies between U1 and U2 leaves sleepers: they look again after L3's time.

use crate::lock::stuck;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::futex;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::time::Duration;
use rustix::process::{Pid, getpid, test_kill_process};

/// Nobody has the lock.
const FREE: u32 = 0;

/// Others may sleep. Processes have smaller numbers.
const AWAITED: u32 = 1 << 31;

/// Some holder. No rank is this process.
const ANYBODY: u32 = 1;

/// How long somebody sleeps before it looks whether the holder is still there.
const PATIENCE: Duration = Duration::from_millis(5);

/// See the module page.
#[derive(Debug)]
pub struct HeirLock<T> {
    /// [`FREE`], or the holder's process, and [`AWAITED`].
    word: AtomicU32,
    /// Which value counts.
    current: AtomicU32,
    values: [UnsafeCell<MaybeUninit<T>>; 2],
}

// SAFETY: the values are used by one thread at a time, by whoever has the lock.
unsafe impl<T: Send> Sync for HeirLock<T> {}

impl<T> Drop for HeirLock<T> {
    fn drop(&mut self) {
        let current = *self.current.get_mut() as usize & 1;
        // SAFETY: the place that counts has a value, which nobody uses any more.
        unsafe { self.values[current].get_mut().assume_init_drop() };
    }
}

/// Gives the lock back.
#[derive(Debug)]
pub struct HeirGuard<'lock>(&'lock AtomicU32);

impl Drop for HeirGuard<'_> {
    fn drop(&mut self) {
        // U1. Release pairs with the Acquire of L1 and L4.
        if self.0.swap(FREE, Ordering::Release) & AWAITED != 0 {
            futex::wake(self.0, i32::MAX as u32);
        }
    }
}

fn own_process() -> u32 {
    getpid().as_raw_nonzero().get().cast_unsigned()
}

/// What a holder puts into the word. Where nobody goes on without it, it does not matter who it is.
fn own_mark() -> u32 {
    if stuck::is_called() { own_process() } else { ANYBODY }
}

/// Whether a process is there, or its parent has not seen yet that it is not.
fn is_there(process: u32) -> bool {
    let Some(process) = Pid::from_raw(process.cast_signed()) else {
        return true;
    };
    test_kill_process(process) != Err(rustix::io::Errno::SRCH)
}

impl<T: Clone + Default> Default for HeirLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl HeirLock<()> {
    /// Takes the lock until the guard is gone, for as long as that takes: whoever waits waits as long as the holder is
    /// there. Who has it already waits for ever.
    #[must_use]
    pub fn hold(&self) -> HeirGuard<'_> {
        self.lock(false)
    }

    /// [`HeirLock::hold`], if nobody who is still there has the lock.
    #[must_use]
    pub fn try_hold(&self) -> Option<HeirGuard<'_>> {
        let (own, there) = (own_mark(), self.word.load(Ordering::Relaxed));
        let is_free = match there & !AWAITED {
            FREE => true,
            // L4
            holder => own != ANYBODY && !is_there(holder),
        };
        let mine = own | there & AWAITED;
        let is_taken = is_free && self.word.compare_exchange(there, mine, Ordering::Acquire, Ordering::Relaxed).is_ok();
        is_taken.then(|| HeirGuard(&self.word))
    }
}

impl<T: Clone> HeirLock<T> {
    /// A lock that nobody has, and its value.
    #[must_use]
    pub const fn new(value: T) -> Self {
        let values = [UnsafeCell::new(MaybeUninit::new(value)), UnsafeCell::new(MaybeUninit::uninit())];
        Self { word: AtomicU32::new(FREE), current: AtomicU32::new(0), values }
    }

    /// Runs `work` with the value, and gives the lock back. Who has it already waits for ever.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let survives = stuck::is_called();
        let _held = self.lock(true);
        match survives {
            true => self.change_copy(work),
            // SAFETY: the lock is held, and the place that counts has a value.
            false => work(unsafe { (*self.place(self.current.load(Ordering::Relaxed))).assume_init_mut() }),
        }
    }

    fn place(&self, number: u32) -> *mut MaybeUninit<T> {
        self.values[number as usize & 1].get()
    }

    /// The holder works on a copy, which then counts.
    fn change_copy<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let current = self.current.load(Ordering::Acquire);
        let old = self.place(current);
        // SAFETY: the lock is held, and the place that counts has a value.
        let mut copy = unsafe { (*old).assume_init_ref().clone() };
        let result = work(&mut copy);
        // SAFETY: the lock is held. What somebody who has died has left in the other place is not touched.
        unsafe { (*self.place(current ^ 1)).write(copy) };
        self.current.store(current ^ 1, Ordering::Release);
        // SAFETY: it does not count any more, so that nobody uses it again.
        unsafe { (*old).assume_init_drop() };
        result
    }

    /// `is_short`: no holder takes long, so that one who does is not there.
    fn lock(&self, is_short: bool) -> HeirGuard<'_> {
        let own = own_mark();
        // L1
        match self.word.compare_exchange(FREE, own, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => HeirGuard(&self.word),
            Err(_) => self.wait_and_lock(own, is_short),
        }
    }

    #[cold]
    fn wait_and_lock(&self, own: u32, is_short: bool) -> HeirGuard<'_> {
        let mut waited = Duration::ZERO;
        loop {
            let there = self.word.load(Ordering::Relaxed);
            let holder = there & !AWAITED;
            // L1 by one who has slept: others may sleep still. L4: the holder is gone.
            if holder == FREE || !is_there(holder) {
                if self.word.compare_exchange(there, own | AWAITED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return HeirGuard(&self.word);
                }
                continue;
            }
            // L2
            let marked = there | AWAITED;
            if there != marked
                && self.word.compare_exchange(there, marked, Ordering::Relaxed, Ordering::Relaxed).is_err()
            {
                continue;
            }
            // L3
            if futex::wait(&self.word, marked, Some(PATIENCE)) == futex::Wait::TimedOut && is_short {
                waited += PATIENCE;
                if waited >= stuck::LIMIT {
                    stuck::tell();
                    waited = Duration::ZERO;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

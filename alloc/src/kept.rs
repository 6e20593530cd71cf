//! Freed mappings that are kept for the next block of their kind.
//!
//! A long block is a mapping of its own. To unmap it takes the lock of the address space, interrupts every CPU that
//! runs a rank, and has the next block's pages faulted in again, one by one: with collective operations that need such
//! a block in each call these faults took half of the time. So a heap may keep some, up to a number of bytes;
//! they give way to new ones.
//!
//! # Protocol
//! A slot holds an item or null. Whoever swaps an item out of a slot (Acquire) owns it, and nobody else does: a slot
//! gives each item once, since it is put into one slot only (Release), by its owner. So any task may put and take at
//! any time, also a handler of a signal; nobody waits. Who looks for a length takes items out and puts those back that
//! do not fit; meanwhile another one finds less than there is. Who dies in between takes its item along.
//! `bytes` counts the items in slots, with those that are just moved: it bounds them, and is right when all are still.

use cohort_base::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use core::ops::RangeInclusive;
use core::ptr::{NonNull, null_mut};

/// So many items are kept at most.
const SLOTS: usize = if cfg!(loom) { 2 } else { 8 };

/// What can be kept.
pub(crate) trait Item {
    /// Its bytes; they do not change.
    ///
    /// # Safety
    /// It is valid, and the caller's.
    unsafe fn length(this: NonNull<Self>) -> u64;

    /// Ends it.
    ///
    /// # Safety
    /// As for [`Item::length`].
    unsafe fn release(this: NonNull<Self>);
}

/// Items that their owners have put here.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    slots: [AtomicPtr<T>; SLOTS],
    bytes: AtomicU64,
    most: u64,
}

impl<T: Item> Kept<T> {
    /// Keeps items of at most so many bytes together; none if 0.
    #[cfg(not(loom))]
    pub(crate) const fn new(most: u64) -> Self {
        Self { slots: [const { AtomicPtr::new(null_mut()) }; SLOTS], bytes: AtomicU64::new(0), most }
    }

    /// The same; loom's atomics are not constants.
    #[cfg(loom)]
    pub(crate) fn new(most: u64) -> Self {
        Self { slots: core::array::from_fn(|_| AtomicPtr::new(null_mut())), bytes: AtomicU64::new(0), most }
    }

    /// The bytes of all items.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Keeps an item, in place of others if need be, or ends it.
    ///
    /// # Safety
    /// It is valid, and the caller's, whose it is no longer then.
    pub(crate) unsafe fn put(&self, item: NonNull<T>) {
        // SAFETY: it is the caller's.
        let length = unsafe { T::length(item) };
        if length > self.most {
            // SAFETY: as above.
            return unsafe { T::release(item) };
        }
        let mut beyond = (self.bytes.fetch_add(length, Ordering::Relaxed) + length).saturating_sub(self.most);
        for slot in &self.slots {
            if beyond > 0 {
                beyond = beyond.saturating_sub(self.release(slot.swap(null_mut(), Ordering::Acquire)));
            }
        }
        self.place(item);
    }

    /// Puts an item that is counted into a slot.
    fn place(&self, item: NonNull<T>) {
        let put = |slot: &AtomicPtr<T>| {
            let put = slot.compare_exchange(null_mut(), item.as_ptr(), Ordering::Release, Ordering::Relaxed);
            put.is_ok()
        };
        if !self.slots.iter().any(put) {
            self.release(self.slots[0].swap(item.as_ptr(), Ordering::AcqRel));
        }
    }

    /// Ends an item that was taken out of a slot, if it is one, and says how many bytes it had.
    fn release(&self, item: *mut T) -> u64 {
        let Some(item) = NonNull::new(item) else {
            return 0;
        };
        // SAFETY: who takes an item out of a slot owns it.
        let length = unsafe { T::length(item) };
        self.bytes.fetch_sub(length, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { T::release(item) };
        length
    }

    /// Takes an item whose length is one of these.
    pub(crate) fn take(&self, lengths: RangeInclusive<u64>) -> Option<NonNull<T>> {
        for slot in &self.slots {
            if slot.load(Ordering::Relaxed).is_null() {
                continue;
            }
            let Some(item) = NonNull::new(slot.swap(null_mut(), Ordering::Acquire)) else {
                continue;
            };
            // SAFETY: who takes an item out of a slot owns it.
            let length = unsafe { T::length(item) };
            if lengths.contains(&length) {
                self.bytes.fetch_sub(length, Ordering::Relaxed);
                return Some(item);
            }
            self.place(item);
        }
        None
    }

    /// Ends all items, and says how many bytes they had.
    pub(crate) fn clear(&self) -> u64 {
        self.slots.iter().map(|slot| self.release(slot.swap(null_mut(), Ordering::Acquire))).sum()
    }
}

#[cfg(test)]
mod tests;

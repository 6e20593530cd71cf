//! Numbered slots of one rank: from the index in a handle to what it stands for.
//!
//! Slots never move, so a handle is decoded without a lock: the chunk is found from the
//! index, and the slot belongs to whoever holds the handle (MPI forbids that two threads complete
//! the same request). Taking and giving back slots happens under the rank's [`Claim`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::INDEX_MAX;
use cohort_engine::Claim;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Slots of the first chunk, which [`Slots::first`] finds; each further one is twice as large.
const FIRST_CHUNK: u32 = 64;

/// Enough chunks for every index a handle can hold.
const CHUNKS: usize = 21;

/// The end of the list of vacant slots.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
enum Slot<T> {
    Vacant { next: u32 },
    Used(T),
}

/// Slots of one kind of object.
pub struct Slots<T> {
    chunks: [AtomicPtr<UnsafeCell<Slot<T>>>; CHUNKS],
    vacant: Cell<u32>,
    used: Cell<u32>,
}

// SAFETY: `vacant` and `used` are touched only under the rank's claim, which the methods that
// do so take as a witness; slots are reached only through their handle's holder.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slots<T> {
    /// No slots; it allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS],
            vacant: Cell::new(NONE),
            used: Cell::new(0),
        }
    }

    /// Keeps `value` and returns its index; `None` when no index is left.
    pub fn insert(&self, claim: &mut Claim<'_>, value: T) -> Option<u32> {
        self.try_insert(claim, value).ok()
    }

    /// Keeps `value` and returns its index.
    ///
    /// # Errors
    /// The value, when no index is left.
    #[inline]
    pub fn try_insert(&self, _claim: &mut Claim<'_>, value: T) -> Result<u32, T> {
        let index = match self.vacant.get() {
            NONE => self.unused(),
            index => Some(index),
        };
        let Some((index, slot)) = index.and_then(|index| Some((index, self.slot(index)?))) else {
            return Err(value);
        };
        // SAFETY: the slot is vacant and the claim is held, so nobody else refers to it; there is nothing to drop.
        unsafe {
            if let Slot::Vacant { next } = *slot.get() {
                self.vacant.set(next);
            }
            slot.get().write(Slot::Used(value));
        }
        Ok(index)
    }

    /// Whether one value more can be kept.
    pub fn has_room(&self, _claim: &mut Claim<'_>) -> bool {
        if self.vacant.get() != NONE {
            return true;
        }
        // A fresh slot is vacant, and its list ends with it.
        let fresh = self.unused();
        self.vacant.set(fresh.unwrap_or(NONE));
        fresh.is_some()
    }

    /// Takes vacant slots out, to be filled later without the claim ([`Slots::fill`]). Returns how many.
    pub fn reserve(&self, _claim: &mut Claim<'_>, indexes: &mut [u32]) -> usize {
        let mut count = 0;
        for place in indexes {
            let index = match self.vacant.get() {
                NONE => self.unused(),
                index => Some(index),
            };
            let Some((index, slot)) = index.and_then(|index| Some((index, self.slot(index)?))) else {
                break;
            };
            // SAFETY: the slot is vacant and the claim is held, so nobody else refers to it.
            let next = match unsafe { &*slot.get() } {
                Slot::Vacant { next } => *next,
                Slot::Used(_) => unreachable!("a used slot in the list of vacant ones"),
            };
            self.vacant.set(next);
            *place = index;
            count += 1;
        }
        count
    }

    /// Puts a value into a slot that was reserved.
    ///
    /// # Safety
    /// `index` came from [`Slots::reserve`] or was [vacated](Slots::vacate), and is filled once.
    #[inline]
    pub unsafe fn fill(&self, index: u32, value: T) {
        if let Some(slot) = self.slot(index) {
            // SAFETY: the caller's promise: nobody else refers to the slot.
            unsafe { slot.get().write(Slot::Used(value)) };
        }
    }

    /// Forgets the value of a slot, of which the caller has let go of all that it holds. The slot stays out of the list
    /// of vacant ones until it is [filled](Slots::fill) again. It needs no claim.
    ///
    /// # Safety
    /// The caller holds the handle, nobody uses the value any more, and no other thread uses the slot meanwhile.
    #[inline(always)]
    pub unsafe fn vacate(&self, index: u32) {
        if let Some(slot) = self.slot(index) {
            // SAFETY: the caller's promise. The value is forgotten where it is.
            unsafe { slot.get().write(Slot::Vacant { next: NONE }) };
        }
    }

    /// Takes the value of a slot away; the slot will be used again.
    pub fn remove(&self, _claim: &mut Claim<'_>, index: u32) -> Option<T> {
        let slot = self.slot(index)?;
        let next = self.vacant.get();
        // SAFETY: the caller holds the handle and the claim.
        match unsafe { slot.get().replace(Slot::Vacant { next }) } {
            Slot::Used(value) => {
                self.vacant.set(index);
                Some(value)
            }
            vacant => {
                // SAFETY: as above.
                unsafe { slot.get().write(vacant) };
                None
            }
        }
    }

    /// Takes the value of a slot away, which stays out of the list of vacant ones until it is
    /// [given back](Slots::give_back).
    pub(crate) fn withdraw(&self, _claim: &mut Claim<'_>, index: u32) -> Option<T> {
        let slot = self.slot(index)?;
        // SAFETY: the caller holds the handle and the claim.
        match unsafe { slot.get().replace(Slot::Vacant { next: NONE }) } {
            Slot::Used(value) => Some(value),
            vacant => {
                // SAFETY: as above.
                unsafe { slot.get().write(vacant) };
                None
            }
        }
    }

    /// A slot that was withdrawn will be used again.
    pub(crate) fn give_back(&self, _claim: &mut Claim<'_>, index: u32) {
        if let Some(slot) = self.slot(index) {
            let next = self.vacant.get();
            // SAFETY: nobody has the slot, which is in no list, and the claim is held; there is nothing to drop.
            unsafe { slot.get().write(Slot::Vacant { next }) };
            self.vacant.set(index);
        }
    }

    /// The value of slot `index`; `None` if the slot is vacant.
    ///
    /// # Safety
    /// The caller holds the handle and no other thread ends the object's life meanwhile.
    #[inline]
    pub unsafe fn get(&self, index: u32) -> Option<&T> {
        let slot = self.slot(index)?;
        // SAFETY: slots are initialised; nobody replaces this one, by the caller's contract.
        match unsafe { &*slot.get() } {
            Slot::Vacant { .. } => None,
            Slot::Used(value) => Some(value),
        }
    }

    /// [`Slots::get`] in the fewest instructions, of the first chunk's slots alone.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn first(&self, index: u32) -> Option<&T> {
        // SAFETY: the caller's promise.
        unsafe { self.first_at(index as usize) }
    }

    /// [`Slots::first`] of any number.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn first_at(&self, index: usize) -> Option<&T> {
        if index >= FIRST_CHUNK as usize {
            return None;
        }
        let slots = self.chunks[0].load(Ordering::Acquire);
        if slots.is_null() {
            return None;
        }
        // SAFETY: the chunk has this slot, and lives as long as the table; the rest as in `get`.
        match unsafe { &*(*slots.add(index)).get() } {
            Slot::Vacant { .. } => None,
            Slot::Used(value) => Some(value),
        }
    }

    /// [`Slots::get`] of what [`Slots::first`] has not found. An index may be too large for a handle.
    ///
    /// # Safety
    /// As there.
    #[cold]
    pub unsafe fn beyond_first(&self, index: u32) -> Option<&T> {
        // SAFETY: the caller's promise.
        (index <= INDEX_MAX).then(|| unsafe { self.get(index) })?
    }

    /// Calls `look` for each value, until it says `false`.
    ///
    /// # Safety
    /// The rank's claim is held, under which values come and go, and nobody [reserves](Slots::reserve) slots.
    pub unsafe fn each(&self, mut look: impl FnMut(&T) -> bool) {
        for index in 0..self.used.get() {
            // SAFETY: the claim keeps all of them where they are.
            if let Some(value) = unsafe { self.get(index) }
                && !look(value)
            {
                return;
            }
        }
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&UnsafeCell<Slot<T>>> {
        // Most programs have few objects of a kind.
        let (chunk, offset) = match index < FIRST_CHUNK {
            true => (0, index as usize),
            false => place(index),
        };
        let slots = self.chunks.get(chunk)?.load(Ordering::Acquire);
        if slots.is_null() {
            return None;
        }
        // SAFETY: a chunk has slots for every index that `place` puts there, and lives as
        // long as the table.
        Some(unsafe { &*slots.add(offset) })
    }

    /// A slot that was never used, made vacant.
    #[cold]
    fn unused(&self) -> Option<u32> {
        let index = self.used.get();
        // The last index is left to handles that need no slot.
        if index >= INDEX_MAX {
            return None;
        }
        let (chunk, offset) = place(index);
        if offset == 0 {
            let length = FIRST_CHUNK << chunk;
            let mut slots: Vec<UnsafeCell<Slot<T>>> = Vec::new();
            slots.try_reserve_exact(length as usize).ok()?;
            let vacant = || UnsafeCell::new(Slot::Vacant { next: NONE });
            slots.extend((0..length).map(|_| vacant()));
            let slots = slots.into_boxed_slice();
            // Paired with the acquire load in `slot`.
            self.chunks[chunk].store(Box::into_raw(slots).cast(), Ordering::Release);
        }
        self.used.set(index + 1);
        Some(index)
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            let slots = *chunk.get_mut();
            if slots.is_null() {
                continue;
            }
            let slots = core::ptr::slice_from_raw_parts_mut(slots, (FIRST_CHUNK as usize) << number);
            // SAFETY: made by `unused` from a box of this length.
            drop(unsafe { Box::from_raw(slots) });
        }
    }
}

/// Chunk of an index, and offset in that chunk.
#[inline]
fn place(index: u32) -> (usize, usize) {
    let chunk = (index / FIRST_CHUNK + 1).ilog2();
    let first = FIRST_CHUNK * ((1 << chunk) - 1);
    (chunk as usize, (index - first) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vacated_slot_is_nobody_elses_until_it_is_filled() {
        let slots = Slots::new();
        let mut indexes = [0; 2];
        // Without a rank there is no claim: the slots come into being as `reserve` makes them.
        for place in &mut indexes {
            *place = slots.unused().unwrap();
        }
        // SAFETY: one thread, and each slot is filled once.
        unsafe {
            slots.fill(indexes[0], 'a');
            slots.fill(indexes[1], 'b');
            assert_eq!(slots.get(indexes[0]), Some(&'a'));
            slots.vacate(indexes[0]);
            // What a program has kept of the handle leads to nothing.
            assert_eq!(slots.get(indexes[0]), None);
            assert_eq!(slots.first(indexes[0]), None);
            // Nobody else gets the slot meanwhile.
            assert_eq!(slots.vacant.get(), NONE);
            assert_eq!(slots.unused(), Some(2));
            slots.fill(indexes[0], 'c');
            assert_eq!(slots.get(indexes[0]), Some(&'c'));
            assert_eq!(slots.get(indexes[1]), Some(&'b'));
        }
    }

    #[test]
    fn every_index_has_its_own_place() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(place(index), expected, "{index}");
            expected.1 += 1;
            if expected.1 == (FIRST_CHUNK as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(place(INDEX_MAX).0 < CHUNKS);
    }
}

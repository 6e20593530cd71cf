//! Records in the heaps of ranks, by address.
//!
//! What is under way (operations, links, epochs) is a record that lists, names and other records lead to. None of them
//! owns it, so no reference would do. A [`RecordRef`] is such an address with a promise: the record is there. Whoever
//! frees it sees to it that nobody uses a copy of the address afterwards, so freeing is the unsafe act, and looking at
//! the record is not. Fields that change are cells or atomics; cells are used under the claim of the record's rank.

#[cfg(not(loom))]
use crate::ranks::Claim;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

/// The address of a record that is there until it is freed. It is copied freely.
#[repr(transparent)]
pub struct RecordRef<T>(NonNull<T>);

#[cfg(not(loom))]
impl<T> RecordRef<T> {
    /// A fresh record in the claimed rank's heap; `None` when memory is short.
    #[inline]
    pub fn make(claim: &mut Claim<'_>, value: T) -> Option<Self> {
        const { assert!(align_of::<T>() <= 16, "the heap's alignment") };
        let block = claim.alloc(size_of::<T>())?.cast::<T>();
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { block.write(value) };
        Some(Self(block))
    }

    /// Takes the value out of its memory, and frees that.
    ///
    /// # Safety
    /// As for [`RecordRef::free`].
    #[must_use]
    pub unsafe fn into_value(self, claim: &mut Claim<'_>) -> T {
        // SAFETY: the caller's promise.
        unsafe {
            let value = self.0.read();
            claim.free_local(self.0.cast());
            value
        }
    }

    /// Drops the record and frees its memory.
    ///
    /// # Safety
    /// It is of the claimed rank's heap and in no list, and no copy of this is used any more.
    #[inline]
    pub unsafe fn free(self, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            self.0.drop_in_place();
            claim.free_local(self.0.cast());
        }
    }
}

impl<T> RecordRef<T> {
    /// The address of a record that was made otherwise.
    ///
    /// # Safety
    /// The record is valid, and there until it is freed. Whoever frees it, or takes a unique reference to it, sees to
    /// it that no copy of this is used from then on, or meanwhile, and that it is in no list.
    #[inline]
    #[must_use]
    pub const unsafe fn new(record: NonNull<T>) -> Self {
        Self(record)
    }

    /// The address.
    #[inline]
    #[must_use]
    pub const fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }

    /// The address, which is not null.
    #[inline]
    #[must_use]
    pub const fn as_non_null(self) -> NonNull<T> {
        self.0
    }
}

impl<T> Clone for RecordRef<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RecordRef<T> {}

impl<T> PartialEq for RecordRef<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for RecordRef<T> {}

impl<T> Deref for RecordRef<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: by `new`, the record is there as long as copies of its address are used.
        unsafe { self.0.as_ref() }
    }
}

impl<T> fmt::Debug for RecordRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

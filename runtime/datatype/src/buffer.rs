//! The three arguments that describe data in MPI: address, count and datatype.
//!
//! There is one type for them, in two forms. [`Buffer`] is what functions take and pass on: it is
//! copied freely and counts no reference. [`OwnedBuffer`] is what outlives a call (requests,
//! persistent operations, recorded ones, checked arguments): it keeps the datatype alive. Each is made from
//! the other without a look-up.

use super::{Type, TypeRef, types};
use core::ops::Range;
use core::ptr::null_mut;

/// A user's buffer: `count` elements of `datatype` at `base` (which may be `MPI_BOTTOM`, 0,
/// when the type holds absolute addresses).
///
/// Whoever makes one promises that the data may be used as MPI says ([`Buffer::new`]). So functions that
/// read or write the data of a buffer ask for nothing more.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    base: *mut u8,
    count: u64,
    datatype: &'a Type,
}

impl<'a> Buffer<'a> {
    /// `count` elements of `datatype` at `base`. Of data that is only read, `base` was a `const` pointer before.
    ///
    /// # Safety
    /// What an operation reads of the memory that they describe stays valid for reading, and what it writes for
    /// writing, until each operation that takes the buffer, or a part of it, is complete. Until then nobody else
    /// writes what it reads, nor touches what it writes, and no buffer that it reads overlaps one that it writes.
    /// For buffers of a program that is the program's promise by MPI.
    #[inline]
    #[must_use]
    pub const unsafe fn new(base: *mut u8, count: u64, datatype: &'a Type) -> Self {
        Self { base, count, datatype }
    }

    /// `bytes` bytes at `base`.
    ///
    /// # Safety
    /// As for [`Buffer::new`].
    #[inline]
    #[must_use]
    pub const unsafe fn of_bytes(base: *mut u8, bytes: u64) -> Self {
        Self { base, count: bytes, datatype: &types::MPI_BYTE }
    }

    /// No data.
    pub const EMPTY: Self = Self { base: null_mut(), count: 0, datatype: &types::MPI_BYTE };

    /// The buffer's address.
    #[inline(always)]
    #[must_use]
    pub const fn base(&self) -> *mut u8 {
        self.base
    }

    /// Number of elements.
    #[inline(always)]
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their type.
    #[inline(always)]
    #[must_use]
    pub const fn datatype(&self) -> &'a Type {
        self.datatype
    }

    /// Bytes of the packed stream.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.datatype.size as u64 * self.count
    }

    /// The address of the first byte when all data is one contiguous run.
    #[inline]
    #[must_use]
    pub fn contiguous(&self) -> Option<*mut u8> {
        let placed = &self.datatype.placed;
        let one_run = placed.node.is_run() && (self.datatype.extent() == self.datatype.size || self.count <= 1);
        one_run.then(|| self.base.wrapping_offset(placed.disp as isize))
    }

    /// Some of the buffer's elements.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    #[must_use]
    pub fn within(self, elements: Range<u64>) -> Self {
        let Range { start, end } = elements;
        assert!(start <= end && end <= self.count, "the buffer has no such elements");
        // SAFETY: they are elements of the buffer.
        unsafe { self.part(start, end - start) }
    }

    /// `count` elements from element `first` on, which may lie behind the buffer's own.
    ///
    /// # Safety
    /// As for [`Buffer::new`], of those elements; of the buffer's own it holds.
    #[inline]
    #[must_use]
    pub unsafe fn part(self, first: u64, count: u64) -> Self {
        let displacement = (first as i64).wrapping_mul(self.datatype.extent());
        Self { base: self.base.wrapping_offset(displacement as isize), count, ..self }
    }

    /// The same with a reference of its own to the datatype.
    #[inline]
    #[must_use]
    pub fn to_owned(self) -> OwnedBuffer {
        OwnedBuffer { base: self.base, count: self.count, datatype: self.datatype.to_ref() }
    }
}

/// A [`Buffer`] that keeps its datatype alive.
#[derive(Clone, Debug)]
pub struct OwnedBuffer {
    base: *mut u8,
    count: u64,
    datatype: TypeRef,
}

impl OwnedBuffer {
    /// `count` elements of `datatype` at `base`.
    ///
    /// # Safety
    /// As for [`Buffer::new`].
    #[inline]
    #[must_use]
    pub unsafe fn new(base: *mut u8, count: u64, datatype: TypeRef) -> Self {
        Self { base, count, datatype }
    }

    /// No elements of `datatype`.
    #[must_use]
    pub fn empty(datatype: TypeRef) -> Self {
        Self { base: null_mut(), count: 0, datatype }
    }

    /// The buffer's address.
    #[inline(always)]
    #[must_use]
    pub const fn base(&self) -> *mut u8 {
        self.base
    }

    /// Number of elements.
    #[inline(always)]
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their type.
    #[inline(always)]
    #[must_use]
    pub const fn datatype(&self) -> &TypeRef {
        &self.datatype
    }

    /// To pass on.
    #[inline]
    #[must_use]
    pub fn as_buffer(&self) -> Buffer<'_> {
        Buffer { base: self.base, count: self.count, datatype: &self.datatype }
    }

    /// Bytes of the packed stream.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.as_buffer().bytes()
    }
}

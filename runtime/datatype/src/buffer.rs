//! The three arguments that describe data in MPI: address, count and datatype.
//!
//! There is one type for them, in two forms. [`Buffer`] is what functions take and pass on: it is
//! copied freely and counts no reference. [`OwnedBuffer`] is what outlives a call (requests,
//! persistent operations, recorded ones, checked arguments): it keeps the datatype alive. Each is made from
//! the other without a look-up.

use super::{Type, TypeRef, types};
use core::ptr::null_mut;

/// A user's buffer: `count` elements of `datatype` at `base` (which may be `MPI_BOTTOM`, 0,
/// when the type holds absolute addresses).
///
/// It says where data is and grants nothing: whoever reads or writes the data says why it may.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    /// The buffer's address. Of data that is only read, a `const` pointer before.
    pub base: *mut u8,
    /// Number of elements.
    pub count: u64,
    /// Their type.
    pub datatype: &'a Type,
}

impl<'a> Buffer<'a> {
    /// `count` elements of `datatype` at `base`.
    #[inline]
    #[must_use]
    pub const fn new(base: *mut u8, count: u64, datatype: &'a Type) -> Self {
        Self {
            base,
            count,
            datatype,
        }
    }

    /// `bytes` bytes at `base`.
    #[inline]
    #[must_use]
    pub const fn of_bytes(base: *mut u8, bytes: u64) -> Self {
        Self::new(base, bytes, &types::MPI_BYTE)
    }

    /// No data.
    pub const EMPTY: Self = Self::of_bytes(null_mut(), 0);

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
        let one_run = placed.node.is_run()
            && (self.datatype.extent() == self.datatype.size || self.count <= 1);
        one_run.then(|| self.base.wrapping_offset(placed.disp as isize))
    }

    /// `count` elements from element `first` on.
    #[inline]
    #[must_use]
    pub fn part(self, first: u64, count: u64) -> Self {
        let displacement = (first as i64).wrapping_mul(self.datatype.extent());
        let base = self.base.wrapping_offset(displacement as isize);
        Self::new(base, count, self.datatype)
    }

    /// The same with a reference of its own to the datatype.
    #[inline]
    #[must_use]
    pub fn to_owned(self) -> OwnedBuffer {
        OwnedBuffer::new(self.base, self.count, self.datatype.to_ref())
    }
}

/// A [`Buffer`] that keeps its datatype alive.
#[derive(Clone, Debug)]
pub struct OwnedBuffer {
    /// The buffer's address.
    pub base: *mut u8,
    /// Number of elements.
    pub count: u64,
    /// Their type.
    pub datatype: TypeRef,
}

impl OwnedBuffer {
    /// `count` elements of `datatype` at `base`.
    #[inline]
    #[must_use]
    pub fn new(base: *mut u8, count: u64, datatype: TypeRef) -> Self {
        Self {
            base,
            count,
            datatype,
        }
    }

    /// To pass on.
    #[inline]
    #[must_use]
    pub fn as_buffer(&self) -> Buffer<'_> {
        Buffer::new(self.base, self.count, &self.datatype)
    }

    /// Bytes of the packed stream.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.as_buffer().bytes()
    }
}

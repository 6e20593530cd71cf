//! Datatypes: what lies where in a user's buffer, and how to move it.
//!
//! A [`Type`] is immutable once made. It keeps three views of itself:
//!
//! * its bounds ([`Type::size`], [`Type::extent`], …) as MPI-4.1 chapter 5 defines them;
//! * a compiled program (`program.rs`) of nested regular loops and irregular block tables, from
//!   which [`pack`], [`unpack`] and [`copy`] reach any byte of the packed stream in
//!   O(depth · log blocks) and move regular parts in tight loops;
//! * the [`Contents`] of the call that made it and the [`Signature`] of its elements.
//!
//! Making and dropping the last reference of a type is owner-only; everything else here
//! neither allocates nor blocks, so any task may do it for any rank.
//!
//! [`op`] holds the reduction operations on elements of these types.
//!
//! This crate is **stealable** (`no_std`, no thread-local data). It knows no rank.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod arch;
mod arrays;
mod basic;
mod bounds;
mod buffer;
mod construct;
mod contents;
mod description;
pub mod external;
pub mod fortran;
mod kernels;
pub mod op;
mod places;
mod predefined;
mod program;
mod reference;
mod signature;
mod transfer;

#[cfg(test)]
mod tests;

pub use arrays::{ArrayOrder, Distribution, darray, subarray};
pub use basic::Basic;
pub use bounds::BoundsRule;
pub use buffer::{Buffer, OwnedBuffer};
pub use construct::{
    contiguous, dup, f90, hindexed, hindexed_block, hvector, indexed, indexed_block, resized, struct_, vector,
};
pub use contents::{Combiner, Contents, CountForm, Form};
pub use places::{Order, Runs};
pub use predefined::{
    Dense, dense, named_like, pair_members, predefined, predefined_all, predefined_type, types, value_index,
};
pub use reference::TypeRef;
pub use signature::{Digest, Signature};
pub use transfer::{copy, copy_bytes, pack, pack_bytes, unpack, unpack_bytes, visit};

use bounds::Bounds;
use program::Placed;
use reference::Own;

/// Why a datatype cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeError {
    /// A size, displacement or extent does not fit in 63 bits and a sign.
    Overflow,
    /// A count or block length is negative.
    NegativeCount {
        /// The value given.
        value: i64,
    },
    /// Array arguments contradict each other (`what` names the first that does).
    BadArray {
        /// The argument, in MPI's spelling.
        what: &'static str,
    },
}

/// One datatype. See the module page.
#[derive(Debug)]
pub struct Type {
    size: i64,
    bounds: Bounds,
    alignment: i64,
    placed: Placed,
    signature: Signature,
    element: Option<Basic>,
    contents: Contents,
    handle: u32,
    name: &'static str,
    own: Own,
}

impl Type {
    /// A reference of the caller's own, which keeps the type alive.
    #[inline]
    #[must_use]
    pub fn to_ref(&self) -> TypeRef {
        TypeRef::of(&self.own)
    }

    /// Bytes of data in one element (`MPI_Type_size`).
    #[inline]
    #[must_use]
    pub fn size(&self) -> i64 {
        self.size
    }

    /// Distance in bytes between consecutive elements of a buffer.
    #[inline]
    #[must_use]
    pub fn extent(&self) -> i64 {
        self.bounds.ub - self.bounds.lb
    }

    /// Lower bound, bytes from the buffer's address.
    #[inline]
    #[must_use]
    pub fn lb(&self) -> i64 {
        self.bounds.lb
    }

    /// Upper bound, bytes from the buffer's address.
    #[must_use]
    pub fn ub(&self) -> i64 {
        self.bounds.ub
    }

    /// Offset of the lowest byte of data.
    #[must_use]
    pub fn true_lb(&self) -> i64 {
        self.bounds.true_lb
    }

    /// Bytes between the lowest and the highest byte of data.
    #[must_use]
    pub fn true_extent(&self) -> i64 {
        self.bounds.true_ub - self.bounds.true_lb
    }

    /// Whether `count` elements are one run of `count * size` bytes that begins at the
    /// buffer's address, for every count.
    #[inline]
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.placed.disp == 0 && self.placed.node.is_run() && self.extent() == self.size
    }

    /// The class of all elements, if they are of one class.
    #[must_use]
    pub fn basic(&self) -> Option<Basic> {
        self.signature.uniform()
    }

    /// The class of one instance, if that is a single basic element in its predefined layout.
    #[inline]
    #[must_use]
    pub fn element(&self) -> Option<Basic> {
        self.element
    }

    /// Number of basic elements in one instance; pair types count two.
    #[must_use]
    pub fn basics_count(&self) -> u64 {
        self.signature.elements()
    }

    /// Basic elements in `bytes` bytes of a stream of this type (`MPI_Get_elements`), or
    /// `None` when the bytes end inside an element.
    #[must_use]
    pub fn elements_in(&self, bytes: i64) -> Option<i64> {
        if self.size == 0 {
            return (bytes == 0).then_some(0);
        }
        let (whole, rest) = (bytes / self.size, bytes % self.size);
        let inside = self.signature.elements_in(rest as u64)?;
        whole.checked_mul(self.basics_count() as i64)?.checked_add(inside as i64)
    }

    /// Whole elements of this type in `bytes` bytes (`MPI_Get_count`), or `None` when the
    /// bytes end inside one.
    #[must_use]
    pub fn count_in(&self, bytes: i64) -> Option<i64> {
        match self.size {
            0 => (bytes == 0).then_some(0),
            size => (bytes % size == 0).then_some(bytes / size),
        }
    }

    /// The sequence of basic elements.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The constructor call that made this type.
    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The MPI-5 ABI's handle of a predefined type, 0 for all others.
    #[must_use]
    pub fn handle(&self) -> u32 {
        self.handle
    }

    /// The predefined type's MPI name (`"MPI_INT"`), or `""`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

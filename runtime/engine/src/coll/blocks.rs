//! The per-member blocks of a buffer, in the forms that collectives have for them.

use super::round::{Posted, Round};
use super::shared::{Entry, INLINE, LEAVES};
use crate::EngineError;
use crate::datatype::{Layout, Type, TypeRef, copy, pack, unpack};
use core::ops::Range;

/// A buffer with one block for each member of a communicator.
#[derive(Clone, Copy)]
pub enum Blocks<'a> {
    /// Blocks of equal length one after the other (`MPI_Gather`).
    Equal {
        /// The buffer's address.
        base: *mut u8,
        /// Elements per block.
        count: u64,
        /// The elements' type.
        datatype: &'a Type,
    },
    /// Blocks of any length anywhere (`MPI_Gatherv`).
    Varying {
        /// The buffer's address.
        base: *mut u8,
        /// Elements of each member's block.
        counts: &'a [i64],
        /// Displacement of each block, in extents of the type.
        displacements: &'a [i64],
        /// The elements' type.
        datatype: &'a Type,
    },
    /// Blocks of any length and type anywhere (`MPI_Alltoallw`).
    Typed {
        /// The buffer's address.
        base: *mut u8,
        /// Elements of each member's block.
        counts: &'a [i64],
        /// Displacement of each block, in bytes.
        displacements: &'a [i64],
        /// The type of each block.
        datatypes: &'a [TypeRef],
    },
}

impl<'a> Blocks<'a> {
    /// The block of `member`.
    #[must_use]
    pub fn block(&self, member: usize) -> Layout<'a> {
        let at = |base: *mut u8, bytes: i64| base.wrapping_offset(bytes as isize);
        match *self {
            Self::Equal {
                base,
                count,
                datatype,
            } => {
                let bytes = (member as i64 * count as i64).wrapping_mul(datatype.extent());
                Layout::new(at(base, bytes), count, datatype)
            }
            Self::Varying {
                base,
                counts,
                displacements,
                datatype,
            } => {
                let bytes = displacements[member].wrapping_mul(datatype.extent());
                Layout::new(at(base, bytes), counts[member] as u64, datatype)
            }
            Self::Typed {
                base,
                counts,
                displacements,
                datatypes,
            } => {
                let start = at(base, displacements[member]);
                Layout::new(start, counts[member] as u64, &datatypes[member])
            }
        }
    }

    /// The bytes that the blocks of `members` members pack to, when all are equally long.
    pub(super) fn equal_bytes(&self, members: usize) -> Option<u64> {
        match self {
            Self::Equal { .. } => self.block(0).bytes().checked_mul(members as u64),
            _ => None,
        }
    }
}

/// Copies all of `source` into `destination`.
///
/// # Safety
/// Both describe live buffers of the caller's collective call.
pub(super) unsafe fn copy_whole(
    destination: Layout<'_>,
    source: Layout<'_>,
) -> Result<(), EngineError> {
    let bytes = source.bytes();
    // SAFETY: the caller's conditions.
    unsafe { copy_piece(destination, source, 0..bytes) };
    fits(bytes, destination)
}

/// Copies these bytes of `source`, as far as there is room for them.
///
/// # Safety
/// Of [`copy_whole`].
pub(super) unsafe fn copy_piece(destination: Layout<'_>, source: Layout<'_>, range: Range<u64>) {
    // Types may be relative to MPI_BOTTOM, so equal addresses alone say nothing.
    let same =
        source.base == destination.base && core::ptr::eq(source.datatype, destination.datatype);
    if !same {
        // SAFETY: the caller's conditions. MPI forbids buffers that overlap, except a block that
        // is its own source, which needs no copy.
        unsafe { copy(destination, source, range.start, range.end) };
    }
}

/// Unpacks the inline entry that `from` posted, from byte `offset` on.
///
/// # Safety
/// `data` holds `offset + bytes` bytes, and `destination` is a live buffer.
pub(super) unsafe fn unpack_inline(
    destination: Layout<'_>,
    data: *const u8,
    offset: u64,
    bytes: u64,
) -> Result<(), EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { unpack(destination, 0, data.add(offset as usize), bytes) };
    fits(bytes, destination)
}

/// Whether there is room for so many bytes.
///
/// # Errors
/// [`EngineError::Truncated`].
pub(super) fn fits(bytes: u64, destination: Layout<'_>) -> Result<(), EngineError> {
    let room = destination.bytes();
    if bytes > room {
        return Err(EngineError::Truncated {
            message: bytes,
            buffer: room,
        });
    }
    Ok(())
}

impl Round<'_> {
    /// Posts the data of `layout` if it is small, else the layout's address. Returns whether
    /// others will read the caller's memory.
    ///
    /// # Safety
    /// `layout` is a live, readable buffer.
    pub(super) unsafe fn post_layout(&self, layout: &Layout<'_>) -> bool {
        // SAFETY: the caller's promise.
        let (entry, exposed) = unsafe { self.entry_with(layout) };
        self.publish(entry);
        exposed
    }

    /// [`Round::post_layout`] of a member that need not wait for others: up to [`LEAVES`] bytes are copied, so that it can leave.
    ///
    /// # Safety
    /// As [`Round::post_layout`].
    pub(super) unsafe fn leave_layout(&self, layout: &Layout<'_>) -> bool {
        // SAFETY: the caller's promise.
        let (entry, exposed) = unsafe { self.entry_to_leave(layout) };
        self.publish(entry);
        exposed
    }

    /// [`Round::leave_layout`] of a root; `None`: another member has chosen a schedule instead.
    ///
    /// # Safety
    /// As [`Round::post_layout`].
    pub(super) unsafe fn leave_layout_unless_scheduled(&self, layout: &Layout<'_>) -> Option<bool> {
        // SAFETY: the caller's promise.
        let (entry, exposed) = unsafe { self.entry_to_leave(layout) };
        self.publish_as_choice(entry).then_some(exposed)
    }

    /// Posts the data of `layout`, at most [`LEAVES`] bytes.
    ///
    /// # Safety
    /// As [`Round::post_layout`].
    ///
    /// # Errors
    /// No memory; nothing is posted.
    pub(super) unsafe fn leave_data(&self, layout: &Layout<'_>) -> Result<(), EngineError> {
        // SAFETY: the caller's promise.
        let (entry, exposed) = unsafe { self.entry_to_leave(layout) };
        if exposed {
            return Err(EngineError::OutOfMemory);
        }
        self.publish(entry);
        Ok(())
    }

    /// # Safety
    /// As [`Round::post_layout`].
    unsafe fn entry_to_leave(&self, layout: &Layout<'_>) -> (&Entry, bool) {
        let bytes = layout.bytes();
        let fill = |out| {
            // SAFETY: the caller's promise; the parcel has room.
            unsafe { pack(*layout, 0, out, bytes) };
        };
        let parcel = || self.parcel(bytes, fill);
        let is_parcel = (INLINE + 1..=LEAVES).contains(&(bytes as usize));
        match is_parcel.then(parcel).flatten() {
            Some(entry) => (entry, false),
            // SAFETY: the caller's promise.
            None => unsafe { self.entry_with(layout) },
        }
    }

    /// # Safety
    /// As [`Round::post_layout`].
    unsafe fn entry_with(&self, layout: &Layout<'_>) -> (&Entry, bool) {
        let bytes = layout.bytes();
        if bytes as usize > INLINE {
            return (self.address(layout), true);
        }
        // SAFETY: the entry has room for INLINE bytes.
        let entry = self.inline(bytes, |out| unsafe {
            pack(*layout, 0, out, bytes);
        });
        (entry, false)
    }

    /// Receives what `member` posted with [`Round::post_layout`].
    ///
    /// # Safety
    /// `member` has posted so in this round; `destination` is a live, writable buffer.
    pub(super) unsafe fn receive_layout(
        &self,
        member: usize,
        destination: Layout<'_>,
    ) -> Result<(), EngineError> {
        match self.posted(member) {
            // SAFETY: the entry holds that many bytes.
            Posted::Inline { data, bytes } => unsafe { unpack_inline(destination, data, 0, bytes) },
            // SAFETY: the record is the layout that the member posted, alive until we complete.
            Posted::Address(record) => unsafe {
                copy_whole(destination, *record.cast::<Layout<'_>>())
            },
        }
    }
}

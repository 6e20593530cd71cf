//! Copies of what the arguments of collectives describe. Any task may run these: they neither wait nor allocate.

use alloc::vec::Vec;
use cohort_base::sync::CacheLine;
use cohort_core::EngineError;
use cohort_datatype::{Buffer, Type, copy, unpack_bytes};
use core::ops::Range;

/// Copies all of `source` into `destination`.
pub(crate) fn copy_whole(destination: Buffer<'_>, source: Buffer<'_>) -> Result<(), EngineError> {
    let bytes = source.bytes();
    let is_word =
        bytes == 8 && destination.bytes() == 8 && source.datatype().is_dense() && destination.datatype().is_dense();
    // SAFETY: elements of a dense type begin at their address, and have no gaps.
    unsafe {
        if is_word {
            let word = source.base().cast::<u64>().read_unaligned();
            destination.base().cast::<u64>().write_unaligned(word);
            return Ok(());
        }
        copy_piece(destination, source, 0..bytes);
    }
    fits(bytes, destination)
}

/// Copies these bytes of `source`, as far as there is room for them. Returns how many that were.
pub(crate) fn copy_piece(destination: Buffer<'_>, source: Buffer<'_>, range: Range<u64>) -> u64 {
    // Types may be relative to MPI_BOTTOM, so equal addresses alone say nothing.
    let same = source.base() == destination.base() && core::ptr::eq(source.datatype(), destination.datatype());
    if same {
        return 0;
    }
    copy(destination, source, range.start, range.end)
}

/// Unpacks what a member has posted.
pub(crate) fn unpack_inline(destination: Buffer<'_>, data: &[u8]) -> Result<(), EngineError> {
    unpack_bytes(destination, 0, data);
    fits(data.len() as u64, destination)
}

/// Unpacks what a member has posted for all, who are to expect as much (MPI 4.1, section 6.4).
///
/// # Errors
/// [`EngineError::Truncated`], when it is longer or shorter than `destination`.
pub(crate) fn unpack_value(destination: Buffer<'_>, data: &[u8]) -> Result<(), EngineError> {
    unpack_bytes(destination, 0, data);
    fills(data.len() as u64, destination)
}

/// Whether there are as many bytes as there is room.
///
/// # Errors
/// [`EngineError::Truncated`].
pub(crate) fn fills(bytes: u64, destination: Buffer<'_>) -> Result<(), EngineError> {
    let room = destination.bytes();
    if bytes != room {
        return Err(EngineError::Truncated { message: bytes, buffer: room });
    }
    Ok(())
}

/// Whether there is room for so many bytes.
///
/// # Errors
/// [`EngineError::Truncated`].
pub(crate) fn fits(bytes: u64, destination: Buffer<'_>) -> Result<(), EngineError> {
    let room = destination.bytes();
    if bytes > room {
        return Err(EngineError::Truncated { message: bytes, buffer: room });
    }
    Ok(())
}

/// What the memory of a span is to be aligned to: as elements of a program may be.
pub(crate) const LINE: u64 = 64;

/// Memory so aligned.
pub(crate) type Lines = Vec<CacheLine<[u64; LINE as usize / 8]>>;

/// The memory that elements of a type take.
pub(crate) struct Span {
    /// Where it begins, seen from the address of the first element, in bytes: a multiple of [`LINE`], so that this
    /// address is as well aligned as the memory.
    pub(crate) low: i64,
    /// Its length.
    pub(crate) bytes: u64,
}

/// The memory that `count` elements take, which may have gaps or reach below their address.
pub(crate) fn span(datatype: &Type, count: u64) -> Span {
    let last = count.saturating_sub(1) as i64;
    let reach = datatype.extent().wrapping_mul(last);
    let first = datatype.true_lb() + reach.min(0);
    let before = first.rem_euclid(LINE as i64);
    Span { low: first - before, bytes: before as u64 + datatype.true_extent() as u64 + reach.unsigned_abs() }
}

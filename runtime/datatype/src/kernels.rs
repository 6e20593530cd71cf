//! The innermost loops that move strided blocks to and from a contiguous stream.

use crate::arch::{self, LINE};
use core::ptr::copy_nonoverlapping;

#[cfg(test)]
mod tests;

/// Blocks up to this many bytes (in words of 8) are moved word by word instead of by a call.
const WORDWISE_MAX: usize = 128;

/// Runs of at least this many bytes may be moved in a way of our own; C libraries take no string instruction below.
const LONG: usize = 2 << 10;

/// Runs of at least this many bytes are moved in the way that is best for long ones on this machine.
const VERY_LONG: usize = 16 << 10;

/// Moves one run of any length.
///
/// # Safety
/// As [`move_block`].
#[inline(always)]
pub(super) unsafe fn move_run(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's conditions.
    unsafe {
        if bytes >= LONG {
            move_long(from, to, bytes);
        } else {
            copy_nonoverlapping(from, to, bytes);
        }
    }
}

/// Moves a long run.
///
/// The string instruction writes whole lines without reading them first, if the destination begins with a line. C
/// libraries take it too, but not for each length: some versions go back to vectors where that is slower. Others take
/// it where the destination is a few bytes ahead of the source in its page, and a processor that takes each load for
/// one of the bytes just stored needs up to 17 times as long.
///
/// # Safety
/// As [`move_block`], for at least a line.
#[inline(never)]
unsafe fn move_long(from: *const u8, to: *mut u8, bytes: usize) {
    let ahead = to.addr().wrapping_sub(from.addr()) % PAGE;
    // SAFETY: the caller's conditions; a processor whose strings wait has the vectors.
    unsafe {
        if (1..JUST_AHEAD).contains(&ahead) && arch::strings_wait_for_stores() {
            arch::move_lines(from, to, bytes);
        } else if bytes < VERY_LONG || (1..NEAR_IN_PAGE).contains(&ahead) || !arch::moves_strings_best() {
            copy_nonoverlapping(from, to, bytes);
        } else {
            move_strings(from, to, bytes);
        }
    }
}

/// Moves a run by the string instruction, to a destination that begins with a line.
///
/// # Safety
/// As [`move_block`], for at least a line.
#[inline(always)]
unsafe fn move_strings(from: *const u8, to: *mut u8, bytes: usize) {
    let head = to.align_offset(LINE);
    // SAFETY: the caller's conditions; a line is no longer than the run.
    unsafe {
        copy_nonoverlapping(from, to, LINE);
        arch::move_strings(from.add(head), to.add(head), bytes - head);
    }
}

/// The part of an address by which the processor first tells whether a load meets a store before it.
const PAGE: usize = 4096;

/// So far behind a byte that is stored, loads from the same place of another page wait for it.
const NEAR_IN_PAGE: usize = 128;

/// So far ahead of the source a destination makes the string instruction wait for each of its stores.
const JUST_AHEAD: usize = 16;

/// Moves one block; short lengths that occur in structs are moved without a call.
///
/// # Safety
/// `from` is readable and `to` writable for `bytes` bytes, and they do not overlap.
#[inline(always)]
pub(super) unsafe fn move_block(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's conditions cover exactly `bytes` bytes in every arm.
    unsafe {
        match bytes {
            4 => move_array::<4>(from, to),
            8 => move_array::<8>(from, to),
            16 => move_array::<16>(from, to),
            _ => move_run(from, to, bytes),
        }
    }
}

/// # Safety
/// As [`move_block`] with `N` bytes.
#[inline(always)]
unsafe fn move_array<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: byte arrays have no alignment, and the caller vouches for N bytes.
    unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
}

/// Moves `count` blocks of `block` bytes from addresses `from_stride` apart to addresses
/// `to_stride` apart.
///
/// # Safety
/// Every block is readable at its source and writable at its destination, and no source
/// overlaps a destination.
pub(super) unsafe fn move_strided(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    count: usize,
    block: usize,
) {
    // SAFETY: the caller's conditions are those of every arm.
    unsafe {
        match block {
            1 => fixed::<1>(from, from_stride, to, to_stride, count),
            2 => fixed::<2>(from, from_stride, to, to_stride, count),
            4 => fixed::<4>(from, from_stride, to, to_stride, count),
            8 => fixed::<8>(from, from_stride, to, to_stride, count),
            12 => fixed::<12>(from, from_stride, to, to_stride, count),
            16 => fixed::<16>(from, from_stride, to, to_stride, count),
            24 => fixed::<24>(from, from_stride, to, to_stride, count),
            32 => fixed::<32>(from, from_stride, to, to_stride, count),
            64 => fixed::<64>(from, from_stride, to, to_stride, count),
            _ if block.is_multiple_of(8) && block <= WORDWISE_MAX => {
                each(from, from_stride, to, to_stride, count, |from, to| {
                    for word in 0..block / 8 {
                        // SAFETY: the word lies inside the block.
                        move_array::<8>(from.add(word * 8), to.add(word * 8));
                    }
                });
            }
            _ => each(from, from_stride, to, to_stride, count, |from, to| {
                // SAFETY: the caller's conditions for this block.
                move_run(from, to, block);
            }),
        }
    }
}

/// # Safety
/// As [`move_strided`] with blocks of `N` bytes.
unsafe fn fixed<const N: usize>(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, count: usize) {
    // The packed side gets a loop of its own, whose address arithmetic the compiler folds.
    if to_stride == N as isize {
        each(from, from_stride, to, N as isize, count, |from, to| {
            // SAFETY: the caller's conditions for this block.
            unsafe { move_array::<N>(from, to) }
        });
    } else if from_stride == N as isize {
        each(from, N as isize, to, to_stride, count, |from, to| {
            // SAFETY: the caller's conditions for this block.
            unsafe { move_array::<N>(from, to) }
        });
    } else {
        each(from, from_stride, to, to_stride, count, |from, to| {
            // SAFETY: the caller's conditions for this block.
            unsafe { move_array::<N>(from, to) }
        });
    }
}

#[inline(always)]
fn each(
    mut from: *const u8,
    from_stride: isize,
    mut to: *mut u8,
    to_stride: isize,
    count: usize,
    move_one: impl Fn(*const u8, *mut u8),
) {
    for _ in 0..count {
        move_one(from, to);
        from = from.wrapping_offset(from_stride);
        to = to.wrapping_offset(to_stride);
    }
}

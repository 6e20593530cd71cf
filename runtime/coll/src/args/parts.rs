//! Blocks that a member gives to each of all members, as it posts them for others: copies, one behind the other, with
//! their ends in front.

use cohort_datatype::{Buffer, pack};

/// Longest block of a dense type that is copied without [`pack`].
const COPIED_MAX: u64 = 64 << 10;

/// Bytes of what is said of a part.
const END: usize = size_of::<u32>();

/// Bytes in front of the parts of so many members.
#[inline(always)]
pub(crate) const fn head(size: usize) -> usize {
    size * END
}

/// Bytes of the parts of `size` members and of what is in front of them; `None`: of more than `most`.
#[inline(always)]
pub(crate) fn bytes<'a>(size: usize, most: u64, block: impl Fn(usize) -> Buffer<'a>) -> Option<u64> {
    let mut total = head(size) as u64;
    for member in 0..size {
        total = total.saturating_add(block(member).bytes());
        if total > most {
            return None;
        }
    }
    Some(total)
}

/// Writes the parts of `size` members.
///
/// # Safety
/// `out` has room for [`bytes`], aligned for numbers of 32 bits, and `block` tells of blocks of the caller's.
#[inline(always)]
pub(crate) unsafe fn write<'a>(size: usize, block: impl Fn(usize) -> Buffer<'a>, out: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let (ends, mut data) = (out.cast::<u32>(), out.add(head(size)));
        let mut end = 0;
        for member in 0..size {
            let block = block(member);
            let bytes = block.bytes();
            if bytes > 0 {
                give_block(&block, data);
                data = data.add(bytes as usize);
                end += bytes as u32;
            }
            ends.add(member).write(end);
        }
    }
}

/// The part of member `me` among those of `size` members: where it is, and its bytes.
///
/// # Safety
/// [`write`] has written them there, for so many.
#[inline(always)]
pub(crate) unsafe fn part(first: *const u8, (me, size): (usize, usize)) -> (*const u8, usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let ends = first.cast::<u32>();
        let start = match me {
            0 => 0,
            _ => ends.add(me - 1).read() as usize,
        };
        let end = ends.add(me).read() as usize;
        (first.add(head(size) + start), end - start)
    }
}

/// Writes a block.
///
/// # Safety
/// `out` has room for its bytes.
#[inline]
pub(crate) unsafe fn give_block(block: &Buffer<'_>, out: *mut u8) {
    // SAFETY: the caller's promise; elements of a dense type begin at their address, and have no gaps.
    unsafe {
        match block.bytes() {
            bytes @ 0..=COPIED_MAX if block.datatype().is_dense() => copy_small(block.base(), out, bytes as usize),
            bytes => {
                pack(*block, 0, out, bytes);
            }
        }
    }
}

/// Copies up to some hundred bytes, mostly a word.
///
/// # Safety
/// Both have that many, and do not overlap.
#[inline]
pub(crate) unsafe fn copy_small(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let word = |at: usize| {
            let data = from.add(8 * at).cast::<u64>().read_unaligned();
            to.add(8 * at).cast::<u64>().write_unaligned(data);
        };
        match bytes {
            8 => word(0),
            16 => {
                word(0);
                word(1);
            }
            0 => {}
            _ => core::ptr::copy_nonoverlapping(from, to, bytes),
        }
    }
}

//! What nodes send each other about a chunk: bytes, and where they belong.
//!
//! Places are runs, one after the other: how many bytes are left out, then how many follow, each a number of seven bits
//! per byte. A number takes no more bytes than it counts, but 0, which only the first gap may be. So the runs of a
//! chunk are never longer than the chunk, and a byte.

use super::super::cover::Cover;
use cohort_datatype::Buffer;
use core::slice::from_raw_parts;

/// Bytes of a message before its data.
const HEADER: u64 = size_of::<Header>() as u64;

/// What a message begins with.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Header {
    /// The next row of chunks in which the sender's node has data, [`u64::MAX`] for none.
    pub(super) next: u64,
    /// Where in the file the first byte lies that the sender could not read.
    pub(super) end: u64,
    /// Bytes of data, which follow the header.
    pub(super) data: u32,
    /// Bytes of runs, which follow the data.
    pub(super) runs: u32,
    /// Not 0: the sender has met an error, and this is the last row.
    pub(super) stops: u64,
}

impl Header {
    /// Of a message without data.
    pub(super) const NOTHING: Self = Self { next: 0, end: 0, data: 0, runs: 0, stops: 0 };

    /// Bytes of the message.
    pub(super) fn bytes(&self) -> u64 {
        HEADER + u64::from(self.data) + u64::from(self.runs)
    }
}

/// The parts of a slot.
#[derive(Clone, Copy)]
pub(super) enum Half {
    /// Data, which may have its runs behind it.
    Data,
    /// Runs.
    Runs,
}

/// Memory for what is sent to a node, or comes from it: a chunk's data and its runs, each with a header in front.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    base: *mut u8,
    chunk: u64,
}

impl Slot {
    /// Bytes of a slot.
    pub(super) const fn bytes(chunk: u64) -> u64 {
        // Runs may take a byte more than the chunk; numbers of 64 bits begin at their multiples.
        2 * (HEADER + chunk) + 8
    }

    /// A slot there. Whoever uses what it points to promises that the memory is live and its own.
    pub(super) const fn new(base: *mut u8, chunk: u64) -> Self {
        Self { base, chunk }
    }

    /// Where data goes.
    pub(super) fn data(self) -> *mut u8 {
        self.begin(Half::Data)
    }

    /// Where runs go.
    pub(super) fn runs(self) -> *mut u8 {
        self.begin(Half::Runs)
    }

    /// Where a half begins, behind its header.
    pub(super) fn begin(self, half: Half) -> *mut u8 {
        let before = match half {
            Half::Data => HEADER,
            Half::Runs => 2 * HEADER + self.chunk,
        };
        self.base.wrapping_add(before as usize)
    }

    /// Room for a message.
    ///
    /// # Safety
    /// The memory is the caller's as long as the result is used.
    pub(super) unsafe fn room(self, half: Half) -> Buffer<'static> {
        let begin = self.begin(half).wrapping_sub(HEADER as usize);
        let bytes = match half {
            Half::Data => Self::bytes(self.chunk),
            Half::Runs => HEADER + self.chunk + 8,
        };
        // SAFETY: the caller's promise.
        unsafe { Buffer::of_bytes(begin, bytes) }
    }
}

/// The header in front of data or runs.
///
/// # Safety
/// The memory is live, and a header was written there.
pub(super) unsafe fn header(of: *mut u8) -> Header {
    // SAFETY: the caller's promise.
    unsafe { of.wrapping_sub(HEADER as usize).cast::<Header>().read_unaligned() }
}

/// Writes the header in front of data or runs, and gives where the message begins.
///
/// # Safety
/// The memory is live and the caller's.
pub(super) unsafe fn set_header(of: *mut u8, header: Header) -> *mut u8 {
    let begin = of.wrapping_sub(HEADER as usize);
    // SAFETY: the caller's promise.
    unsafe { begin.cast::<Header>().write_unaligned(header) };
    begin
}

/// Brings the bytes of runs, in a chunk at `image`, together, and gives how many they are. `to` may be `image`.
///
/// # Safety
/// There is a chunk, and room for the bytes.
pub(super) unsafe fn pack(runs: Runs<'_>, image: *const u8, to: *mut u8) -> u32 {
    let mut at = to;
    for (start, length) in runs {
        // SAFETY: the run lies in the chunk. No byte is written above the place from which it comes.
        unsafe { at.copy_from(image.wrapping_add(start as usize), length as usize) };
        at = at.wrapping_add(length as usize);
    }
    (at.addr() - to.addr()) as u32
}

/// Puts bytes that [`pack`] has brought together where they belong.
///
/// # Safety
/// There is a chunk at `image`, and there are as many bytes, which are no part of it.
pub(super) unsafe fn unpack(runs: Runs<'_>, mut from: *const u8, image: *mut u8) {
    for (start, length) in runs {
        // SAFETY: the run lies in the chunk.
        unsafe { image.wrapping_add(start as usize).copy_from_nonoverlapping(from, length as usize) };
        from = from.wrapping_add(length as usize);
    }
}

/// Writes the runs of a cover, and gives how many bytes that takes.
///
/// # Safety
/// There is room for the chunk's bytes and one more.
pub(super) unsafe fn write_runs(cover: &Cover, to: *mut u8) -> u32 {
    let (mut at, mut end) = (to, 0);
    while let Some(run) = cover.run(end) {
        for mut value in [run.start - end, run.end - run.start] {
            loop {
                let (low, rest) = ((value & 0x7f) as u8, value >> 7);
                // SAFETY: numbers are no longer than what they count, see above.
                unsafe { at.write(if rest > 0 { low | 0x80 } else { low }) };
                at = at.wrapping_add(1);
                value = rest;
                if value == 0 {
                    break;
                }
            }
        }
        end = run.end;
    }
    (at.addr() - to.addr()) as u32
}

/// Runs that were written: where each begins in the chunk, and how many bytes it has.
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    end: u64,
    chunk: u64,
}

impl Runs<'_> {
    /// Runs that take so many bytes, of a chunk of so many.
    ///
    /// # Safety
    /// They are there, and stay while the result is used.
    pub(super) unsafe fn new(from: *const u8, bytes: u32, chunk: u64) -> Self {
        // SAFETY: the caller's promise.
        Self { bytes: unsafe { from_raw_parts(from, bytes as usize) }, end: 0, chunk }
    }

    /// The runs of a message that has nothing else.
    ///
    /// # Safety
    /// It has arrived, or was written, with its header in front of `of`, and stays while the result is used.
    pub(super) unsafe fn of_message(of: *mut u8, chunk: u64) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::new(of, header(of).runs, chunk) }
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift = (shift + 7).min(56);
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let (gap, length) = (self.number()?, self.number()?);
        let start = self.end + gap;
        self.end = start + length;
        assert!(gap <= self.chunk && length <= self.chunk && self.end <= self.chunk, "runs lie in their chunk");
        Some((start, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn runs_are_those_of_the_cover(
            ranges in prop::collection::vec((0..20_000_u64, 1..9000_u64), 0..9), dust: bool,
        ) {
            const CHUNK: u64 = 20_480;
            let mut cover = Cover::default();
            cover.clear(CHUNK).expect("memory");
            ranges.iter().for_each(|&(from, length)| cover.mark(from, (from + length).min(CHUNK)));
            if dust {
                (0..CHUNK).step_by(2).for_each(|byte| cover.mark(byte, byte + 1));
            }
            let mut written = vec![0_u8; CHUNK as usize + 1];
            // SAFETY: there is room.
            let bytes = unsafe { write_runs(&cover, written.as_mut_ptr()) };
            prop_assert!(bytes as usize <= written.len());
            // SAFETY: they were written.
            let told: Vec<_> = unsafe { Runs::new(written.as_ptr(), bytes, CHUNK) }.collect();
            let (mut wanted, mut from) = (vec![], 0);
            while let Some(run) = cover.run(from) {
                from = run.end;
                wanted.push((run.start, run.end - run.start));
            }
            prop_assert_eq!(told, wanted);
        }
    }
}

//! Blocks of several members as one message.

use crate::memory::reserve;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::{Buffer, unpack};

/// Bytes of a block's length.
const LENGTH: usize = size_of::<u64>();

/// The longest block that goes with others. A longer one travels by itself: it would be copied, and wait for
/// the others, for a packet less.
pub(crate) const BUNDLED: u64 = 2 << 10;

/// Memory with a number of blocks: their lengths, and then the data of each that is not longer than `most`.
/// The addresses of a bundle may be handed to members that read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bundle {
    base: *mut u8,
    blocks: usize,
    /// Bytes of the memory.
    room: u64,
    /// The longest block that is inside.
    most: u64,
}

/// A block of a bundle.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// Its data lies in the bundle.
    Inside {
        data: *const u8,
        /// Bytes that are there: all of them, unless somebody has sent more than there was room for.
        there: u64,
        length: u64,
    },
    /// It was too long, and travels by itself.
    Apart,
}

impl Content {
    /// Delivers a block that is inside.
    ///
    /// # Safety
    /// The bundle's memory is live.
    ///
    /// # Errors
    /// [`EngineError::Truncated`].
    pub(crate) unsafe fn deliver(&self, into: Buffer<'_>) -> Result<(), EngineError> {
        let Self::Inside { data, there, length } = *self else {
            return Ok(());
        };
        // SAFETY: the caller's promise.
        let delivered = unsafe { unpack(into, 0, data, there) };
        match delivered < length {
            true => Err(EngineError::Truncated { message: length, buffer: delivered }),
            false => Ok(()),
        }
    }
}

impl Bundle {
    /// Bytes that so many blocks with so much data take.
    pub(crate) fn bytes(blocks: usize, data: u64) -> u64 {
        (blocks * LENGTH) as u64 + data
    }

    /// A bundle of empty blocks in memory of `room` bytes.
    ///
    /// # Safety
    /// The memory has that many bytes, enough for the lengths, and is the caller's.
    pub(crate) unsafe fn at(base: *mut u8, room: u64, blocks: usize, most: u64) -> Self {
        // SAFETY: the caller's promise.
        unsafe { base.write_bytes(0, blocks * LENGTH) };
        Self { base, blocks, room, most }
    }

    /// A bundle of so many blocks with so much data, and its memory.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(crate) fn with_room(blocks: usize, data: u64, most: u64) -> Result<(Vec<u8>, Self), EngineError> {
        let bytes = Self::bytes(blocks, data);
        let mut memory: Vec<u8> = reserve(bytes as usize)?;
        // SAFETY: so much was reserved.
        let bundle = unsafe { Self::at(memory.as_mut_ptr(), bytes, blocks, most) };
        Ok((memory, bundle))
    }

    /// Where its memory begins.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Bytes of its memory.
    pub(crate) fn room(&self) -> u64 {
        self.room
    }

    /// All of it as a message.
    pub(crate) fn buffer(&self) -> Buffer<'static> {
        // SAFETY: the memory has so many bytes by [`Bundle::at`], and its owner keeps it until the message is complete.
        unsafe { Buffer::of_bytes(self.base, self.room) }
    }

    /// Writes the lengths, and calls `write` with each block that goes inside, where its data goes and how much of
    /// it has room.
    ///
    /// # Safety
    /// The memory is the caller's.
    pub(crate) unsafe fn fill(&self, lengths: impl Fn(usize) -> u64, mut write: impl FnMut(usize, *mut u8, u64)) {
        let mut at = Self::bytes(self.blocks, 0);
        for number in 0..self.blocks {
            let length = lengths(number);
            // SAFETY: `at` keeps within the room, which begins with the lengths.
            unsafe {
                self.base.add(number * LENGTH).cast::<u64>().write_unaligned(length);
                if length <= self.most {
                    let fitting = length.min(self.room - at);
                    write(number, self.base.add(at as usize), fitting);
                    at += fitting;
                }
            }
        }
    }

    /// The length of a block.
    ///
    /// # Safety
    /// The memory has the lengths.
    unsafe fn length(&self, number: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.base.add(number * LENGTH).cast::<u64>().read_unaligned() }
    }

    /// The blocks, in order.
    ///
    /// # Safety
    /// The memory has been filled, and nobody writes it.
    pub(crate) unsafe fn contents(&self) -> impl Iterator<Item = Content> + use<> {
        let this = *self;
        let mut at = Self::bytes(self.blocks, 0);
        (0..self.blocks).map(move |number| {
            // SAFETY: the caller's promise.
            let length = unsafe { this.length(number) };
            if length > this.most {
                return Content::Apart;
            }
            let data = this.base.wrapping_add(at as usize);
            // A sender that had more to send than there was room for has filled the room.
            let there = length.min(this.room - at);
            at += there;
            Content::Inside { data, there, length }
        })
    }
}

//! Blocks of several members as one message.

use crate::bytes::Bytes;
use cohort_core::EngineError;
use cohort_datatype::{Buffer, copy};
use core::cell::Cell;

/// Bytes of a block's length.
const LENGTH: usize = size_of::<u64>();

/// The longest block that goes with others. A longer one travels by itself: it would be copied, and wait for
/// the others, for a packet less.
pub(crate) const BUNDLED: u64 = 8 << 10;

/// The most bytes that a member may send in blocks that go with others in an all-to-all: they are copied twice.
const MEMBER_MOST: u64 = 256 << 10;

/// The longest block that goes with others in an all-to-all among so many members.
pub(crate) fn longest_of_all(members: usize) -> u64 {
    BUNDLED.min(MEMBER_MOST / members as u64)
}

/// The least of that for which one member of a node sends for all of them.
pub(crate) const BUNDLED_LEAST: u64 = 1 << 10;

/// Memory with a number of blocks: their lengths, and then the data of each that is not longer than `most`.
/// The addresses of a bundle may be handed to members that read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bundle {
    memory: Bytes,
    blocks: usize,
    /// The longest block that is inside.
    most: u64,
}

/// A block of a bundle.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// Its data lies in the bundle.
    Inside {
        /// The bytes that are there: all of them, unless somebody has sent more than there was room for.
        there: Bytes,
        length: u64,
    },
    /// It was too long, and travels by itself.
    Apart {
        /// Its bytes.
        length: u64,
    },
}

impl Content {
    /// Delivers a block that is inside.
    ///
    /// # Errors
    /// [`EngineError::Truncated`].
    pub(crate) fn deliver(&self, into: Buffer<'_>) -> Result<(), EngineError> {
        let Self::Inside { there, length } = *self else {
            return Ok(());
        };
        let delivered = copy(into, there.buffer(), 0, there.length());
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

    /// A bundle of empty blocks in memory that has room for the lengths.
    pub(crate) fn at(memory: Bytes, blocks: usize, most: u64) -> Self {
        (0..blocks).for_each(|number| memory.set_word((number * LENGTH) as u64, 0));
        Self::filled(memory, blocks, most)
    }

    /// The bundle that lies in some memory.
    pub(crate) fn filled(memory: Bytes, blocks: usize, most: u64) -> Self {
        Self { memory, blocks, most }
    }

    /// As much of its memory as has been filled.
    pub(crate) fn there(&self) -> Bytes {
        let inside = self.contents().map(|content| match content {
            Content::Inside { there, .. } => there.length(),
            Content::Apart { .. } => 0,
        });
        self.memory.part(0, Self::bytes(self.blocks, inside.sum()))
    }

    /// All of it as a message.
    pub(crate) fn buffer(&self) -> Buffer<'static> {
        self.memory.buffer()
    }

    /// Writes the lengths, and calls `write` with each block that goes inside, and where as much of its data goes as
    /// has room.
    pub(crate) fn fill(&self, lengths: impl Fn(usize) -> u64, mut write: impl FnMut(usize, Bytes)) {
        let mut at = Self::bytes(self.blocks, 0);
        for number in 0..self.blocks {
            let length = lengths(number);
            self.memory.set_word((number * LENGTH) as u64, length);
            if length <= self.most {
                let fitting = length.min(self.memory.length() - at);
                write(number, self.memory.part(at, fitting));
                at += fitting;
            }
        }
    }

    /// The blocks, in order, once they have been filled.
    pub(crate) fn contents(&self) -> impl Iterator<Item = Content> + use<> {
        let incoming = Incoming::new(*self);
        (0..self.blocks).map(move |number| incoming.next(number))
    }

    /// Whether a block travels by itself, once its length has been filled in.
    fn is_apart(&self, number: usize) -> bool {
        self.length(number) > self.most
    }

    fn length(&self, number: usize) -> u64 {
        self.memory.word((number * LENGTH) as u64)
    }
}

/// A bundle whose blocks are taken out one after the other.
pub(crate) struct Incoming {
    bundle: Bundle,
    /// Where the data of the next one begins.
    at: Cell<u64>,
}

impl Incoming {
    /// Nothing has been taken out of it.
    pub(crate) fn new(bundle: Bundle) -> Self {
        let at = Cell::new(Bundle::bytes(bundle.blocks, 0));
        Self { bundle, at }
    }

    /// Whether a block travels by itself, once the bundle has been filled.
    pub(crate) fn is_apart(&self, number: usize) -> bool {
        self.bundle.is_apart(number)
    }

    /// Takes out the next block, of this number, once the bundle has been filled.
    pub(crate) fn next(&self, number: usize) -> Content {
        let (memory, at, length) = (self.bundle.memory, self.at.get(), self.bundle.length(number));
        if self.is_apart(number) {
            return Content::Apart { length };
        }
        // A sender that had more to send than there was room for has filled the room.
        let there = memory.part(at, length.min(memory.length() - at));
        self.at.set(at + there.length());
        Content::Inside { there, length }
    }
}

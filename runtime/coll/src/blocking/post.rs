//! What members of a node post of their buffers, and how others receive it.

use super::round::{Posted, Round};
use crate::args::parts::{self, copy_small};
use crate::args::{Blocks, Layout};
use crate::data::{copy_whole, fills, unpack_inline, unpack_value};
use crate::members::{COPY_MAX, Entry, INLINE, SIDE_BYTES};
use cohort_core::EngineError;
use cohort_datatype::{Buffer, pack};

impl Round<'_> {
    /// Posts the data of `buffer` if it is small, else the buffer's address. Returns whether
    /// others will read the caller's memory.
    pub(crate) fn post_buffer(&self, buffer: &Buffer<'_>) -> bool {
        let (entry, exposed) = self.entry_with(buffer);
        self.publish(entry);
        exposed
    }

    /// [`Round::post_buffer`] of a member that need not wait for others: up to [`COPY_MAX`] bytes
    /// are copied, so that it can leave.
    pub(crate) fn post_copied(&self, buffer: &Buffer<'_>) -> bool {
        let (entry, exposed) = self.copied_entry(buffer);
        self.publish(entry);
        exposed
    }

    /// [`Round::post_copied`] of a root; `None`: another member has chosen a pool instead.
    pub(crate) fn post_copied_unless_pooled(&self, buffer: &Buffer<'_>) -> Option<bool> {
        let (entry, exposed) = self.copied_entry(buffer);
        self.publish_as_choice(entry).then_some(exposed)
    }

    /// Posts the data of `buffer`, at most [`COPY_MAX`] bytes.
    ///
    /// # Errors
    /// No memory; nothing is posted.
    pub(crate) fn post_data(&self, buffer: &Buffer<'_>) -> Result<(), EngineError> {
        let (entry, exposed) = self.copied_entry(buffer);
        if exposed {
            return Err(EngineError::OutOfMemory);
        }
        self.publish(entry);
        Ok(())
    }

    fn copied_entry(&self, buffer: &Buffer<'_>) -> (&Entry, bool) {
        let bytes = buffer.bytes();
        let fill = |out| {
            // SAFETY: the entry, or the side buffer, has room.
            unsafe { pack(*buffer, 0, out, bytes) };
        };
        let beside = || self.side_buffer(bytes, fill);
        let goes_beside = (INLINE + 1..=COPY_MAX).contains(&(bytes as usize));
        match goes_beside.then(beside).flatten() {
            Some(entry) => (entry, false),
            None => self.entry_with(buffer),
        }
    }

    fn entry_with(&self, buffer: &Buffer<'_>) -> (&Entry, bool) {
        let bytes = buffer.bytes();
        if bytes as usize > INLINE {
            return (self.address(buffer), true);
        }
        // SAFETY: the entry has room for INLINE bytes.
        let entry = self.inline(bytes, |out| unsafe {
            pack(*buffer, 0, out, bytes);
        });
        (entry, false)
    }

    /// Receives what `member` has posted with [`Round::post_buffer`] in this round.
    pub(crate) fn receive_buffer(&self, member: usize, destination: Buffer<'_>) -> Result<(), EngineError> {
        match self.posted(member) {
            Posted::Inline(data) => unpack_inline(destination, data),
            Posted::Address(buffer) => copy_whole(destination, *buffer),
        }
    }

    /// Receives what `member` has posted for all with [`Round::post_copied`] in this round: as much as there is room.
    ///
    /// # Errors
    /// [`EngineError::Truncated`], also when it is shorter.
    #[inline(always)]
    pub(crate) fn receive_value(&self, member: usize, destination: Buffer<'_>) -> Result<(), EngineError> {
        match self.posted::<Buffer<'_>>(member) {
            Posted::Inline(data) => unpack_value(destination, data),
            Posted::Address(buffer) => {
                copy_whole(destination, *buffer).and_then(|()| fills(buffer.bytes(), destination))
            }
        }
    }

    /// Posts the blocks for all members: their data if equal and in total no more than an entry holds, or than
    /// `copied_most` (at most what a side buffer holds), [copies](Round::copied_blocks) of short ones of any length,
    /// else their address. Returns whether others will read the caller's memory.
    pub(crate) fn post_blocks(&self, blocks: &Blocks<'_>, copied_most: usize) -> bool {
        let size = self.members();
        let Some(total) = blocks.equal_bytes(size) else {
            return self.post_varying(blocks);
        };
        let fill = |out: *mut u8| {
            if let Layout::Equal(first) = blocks.layout()
                && first.datatype().is_dense()
            {
                // They follow each other as they are.
                // SAFETY: the blocks are one run; there is room for the total.
                return unsafe { copy_small(first.base(), out, total as usize) };
            }
            let block = total / size as u64;
            for member in 0..size {
                let place = out.wrapping_add(member * block as usize);
                // SAFETY: there is room for the total.
                unsafe { pack(blocks.block(member), 0, place, block) };
            }
        };
        let entry = match total as usize {
            0..=INLINE => Some(self.inline(total, fill)),
            total_bytes if total_bytes <= copied_most => self.side_buffer(total, fill),
            _ => None,
        };
        self.publish(entry.unwrap_or_else(|| self.address(blocks)));
        entry.is_none()
    }

    /// [`Round::post_blocks`] of blocks of any length.
    fn post_varying(&self, blocks: &Blocks<'_>) -> bool {
        let copies = self.copied_blocks(blocks);
        self.publish(copies.unwrap_or_else(|| self.address(blocks)));
        copies.is_none()
    }

    /// The caller's entry with copies of the blocks for all others behind their lengths, there or in a side buffer, if
    /// that has room for them and their copy is worth it.
    fn copied_blocks(&self, blocks: &Blocks<'_>) -> Option<&Entry> {
        let (me, size) = (self.me(), self.members());
        let block = |member: usize| match member == me {
            true => Buffer::EMPTY,
            false => blocks.block(member),
        };
        let total = parts::bytes(size, self.copy_max() as u64, block)?;
        // SAFETY: there is room for so many bytes, and it is so aligned.
        self.parts(total as usize, |out| unsafe { parts::write(size, block, out) })
    }

    /// Longest data that the caller copies to a side buffer where each reader takes a share of it.
    pub(crate) fn copy_max(&self) -> usize {
        match self.is_crowded() {
            true => SIDE_BYTES,
            false => COPY_MAX,
        }
    }

    /// Receives the caller's block of what `member` has posted with [`Round::post_blocks`] in this round.
    ///
    /// # Errors
    /// [`EngineError::Truncated`].
    #[inline(always)]
    pub(crate) fn receive_block(&self, member: usize, destination: Buffer<'_>) -> Result<(), EngineError> {
        let me = self.me();
        match self.posted_or_else::<Blocks<'_>>(member) {
            Ok(Posted::Inline(data)) => {
                let block = data.len() / self.members();
                unpack_inline(destination, &data[me * block..(me + 1) * block])
            }
            Ok(Posted::Address(blocks)) => copy_whole(destination, Blocks::block(blocks, me)),
            Err(_) => unpack_inline(destination, self.part_of_me(member)),
        }
    }
}

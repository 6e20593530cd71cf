//! Blocks through which the data of a long message passes, piece by piece, while its sender is in a call.
//!
//! A single copy leaves the lines of the sender's buffer to both cores, and a program that fills the buffer again waits
//! for each of them. Here the sender copies a piece into a block of its own, and the receiver copies it out and takes
//! the block's lines, which are few and are used again and again. The program's buffer stays with its own core.
//!
//! The message is an RTS as any other. So whoever receives it may copy any piece straight from the sender's buffer,
//! at any time: it does so when the sender is late, and needs nothing of it. Nobody waits for anybody here.
//!
//! # Protocol
//! Pieces are numbered through all messages of the sender. A message has the pieces from `first` on; piece `n` passes
//! through block `n % BLOCKS`.
//! ```text
//! sender, in a call                            receiver, with the message
//! F1 number <= taken + BLOCKS? (Acquire)       T1 number < filled? (Acquire)
//! F2 writes the block                          T2 reads the block, writes to its lines
//! F3 filled = number + 1 (Release)             T3 taken = number + 1 (Release)
//! ```
//! * The receiver chooses when it has the message. Until it asks for the pipeline, by storing `first + 1` in `asked`,
//!   the
//!   sender fills the first piece only, so that it has not copied in vain; or all blocks, if it expects to be asked.
//!   What F1 sees of `asked` decides how much it fills, and nothing else: no order is needed.
//! * `first` is stored before the RTS is sent, which orders it, and is at least `filled` and `taken` of the messages
//!   before. So T1 says yes only of what F3 has said in this message.
//! * The sender leaves out pieces that it finds taken. At T1 of piece `n` the receiver has not taken `n`, so the sender
//!   can not have left it out: if `filled` is beyond `n`, F2 has written it.
//! * F2 of piece `n + BLOCKS` comes after T3 of `n` or of a later piece by F1, and so after T2 of `n`.
//! * A piece that the receiver copies itself has no T1 and T2. The sender may fill its block meanwhile; nobody reads it
//!   then, and the next F2 of that block is the sender's own.
//! * The receiver's last access is before it completes the request. Another message has the pipeline when the record of
//!   the send goes: its owner has seen it complete, or has withdrawn it before anybody took it. So one message at a
//!   time has the blocks. A rank has a few pipelines, for as many messages at a time.
//! * The sender's task reads the buffer in F2 only while the program has the request, and after it has seen that
//!   incomplete. Nobody but that task tells the program that the buffer is free again.

use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering};

/// Blocks of a sender; fewer in a model, which has more to explore with each.
const BLOCKS: u64 = if cfg!(loom) { 2 } else { 4 };

/// How far the two sides are.
#[repr(C)]
#[derive(Debug)]
struct Pace {
    /// The sender's part.
    sender: CacheLine<Filled>,
    /// The receiver's part.
    receiver: CacheLine<Taken>,
}

/// What the receiver writes and the sender reads.
#[repr(C)]
#[derive(Debug)]
struct Taken {
    /// Pieces before this one need no block any more.
    taken: AtomicU64,
    /// One more than the first piece of the message that is to pass through the blocks.
    asked: AtomicU64,
}

/// What the sender writes and the receiver reads.
#[repr(C)]
#[derive(Debug)]
struct Filled {
    /// The first piece of the message.
    first: AtomicU64,
    /// Pieces before this one are in their blocks, or were taken without.
    filled: AtomicU64,
}

impl Pace {
    fn new() -> Self {
        Self {
            sender: CacheLine(Filled { first: AtomicU64::new(0), filled: AtomicU64::new(0) }),
            receiver: CacheLine(Taken { taken: AtomicU64::new(0), asked: AtomicU64::new(0) }),
        }
    }

    /// Sender: a message begins, of which nobody knows yet.
    fn begin(&self, first: u64) {
        // Relaxed: the RTS's way orders it.
        self.sender.first.store(first, Ordering::Relaxed);
    }

    /// Receiver: the first piece of the message.
    fn first(&self) -> u64 {
        self.sender.first.load(Ordering::Relaxed)
    }

    /// Receiver: the message that begins with this piece is to pass through the blocks.
    fn ask(&self, first: u64) {
        // Relaxed: it says how much is filled, not what is there.
        self.receiver.asked.store(first + 1, Ordering::Relaxed);
    }

    /// F1: the piece to fill next, from `next` on, if there is a free block for it. Of the messages before `first` no
    /// piece is on its way. `ahead`: the sender does not wait until it is asked.
    #[inline]
    fn to_fill(&self, first: u64, next: u64, ahead: bool) -> Option<u64> {
        let taken = self.receiver.taken.load(Ordering::Acquire).max(first);
        let is_asked = ahead || self.receiver.asked.load(Ordering::Relaxed) == first + 1;
        let most = if is_asked { taken + BLOCKS } else { first + 1 };
        let next = next.max(taken);
        (next < most).then_some(next)
    }

    /// F3: a piece is in its block.
    #[inline]
    fn fill(&self, number: u64) {
        self.sender.filled.store(number + 1, Ordering::Release);
    }

    /// T1: whether a piece, the next of the message, is in its block.
    #[inline]
    fn is_filled(&self, number: u64) -> bool {
        number < self.sender.filled.load(Ordering::Acquire)
    }

    /// T3: a piece has been received, from its block or not.
    #[inline]
    fn take(&self, number: u64) {
        self.receiver.taken.store(number + 1, Ordering::Release);
    }
}

#[cfg(not(loom))]
pub(crate) use blocks::{LONGEST, Pieces, Pipeline, SHORTEST, Sending, piece};

#[cfg(not(loom))]
mod blocks {
    use super::{BLOCKS, Pace};
    use cohort_alloc::Heap;
    use cohort_base::sync::pause;
    use cohort_core::record::RecordRef;
    use cohort_core::request::Request;
    use cohort_datatype::copy_bytes;
    use core::cell::UnsafeCell;
    use core::ptr::null;

    /// Bytes of a piece, and of a block.
    const PIECE: usize = 16 << 10;

    /// The shortest message that is sent so: of one that fits in a block nothing would be under way at both sides.
    pub(crate) const SHORTEST: u64 = PIECE as u64 + 1;

    /// The longest message that is sent so. Of longer ones sender and receiver copy half each, and most of the buffer
    /// has left the core's own cache when the program comes to fill it again.
    pub(crate) const LONGEST: u64 = 512 << 10;

    /// How often the receiver looks for a piece before it takes the rest of the message itself: some 10 us, in which
    /// a sender that is in its call has filled several blocks.
    const PATIENCE: u32 = 400;

    /// What a sender and the receiver of its message share.
    #[repr(C, align(64))]
    pub(crate) struct Pipeline {
        pace: Pace,
        blocks: [UnsafeCell<[u8; PIECE]>; BLOCKS as usize],
    }

    impl Pipeline {
        /// Makes one; `None` when memory is short.
        #[cold]
        fn make(heap: &Heap) -> Option<RecordRef<Self>> {
            // SAFETY: made under the claim, which allows the heap's use.
            let pipeline = unsafe { heap.alloc(size_of::<Self>(), align_of::<Self>())? }.cast::<Self>();
            // SAFETY: a fresh block that is large enough; the blocks' content does not matter. It is never freed.
            unsafe {
                (&raw mut (*pipeline.as_ptr()).pace).write(Pace::new());
                Some(RecordRef::new(pipeline))
            }
        }

        /// The block of a piece.
        fn block(&self, number: u64) -> *mut u8 {
            self.blocks[(number % BLOCKS) as usize].get().cast()
        }
    }

    /// Messages of a rank that pass through pipelines at a time: as many as a grid's neighbours in two dimensions.
    const PIPELINES: usize = 4;

    /// A pipeline of a rank, made when it is first needed and never freed, and the message that has it.
    #[derive(Debug)]
    struct Slot {
        pipeline: Option<RecordRef<Pipeline>>,
        /// The send whose message has the pipeline.
        of: Option<RecordRef<Request>>,
        data: *const u8,
        bytes: u64,
        first: u64,
        next: u64,
        /// Whether blocks are filled before the receiver asks for them.
        ahead: bool,
    }

    impl Slot {
        fn is_of(&self, send: &Request) -> bool {
            self.of.is_some_and(|of| core::ptr::eq(of.as_ptr(), send))
        }

        const NONE: Self = Self { pipeline: None, of: None, data: null(), bytes: 0, first: 0, next: 0, ahead: false };

        /// Fills the blocks that are free. Returns the bytes copied.
        ///
        /// # Safety
        /// By the sender's own task; a message has the pipeline.
        unsafe fn fill(&mut self) -> u64 {
            let end = self.first + self.bytes.div_ceil(PIECE as u64);
            let (Some(pipeline), Some(of)) = (self.pipeline, self.of) else {
                return 0;
            };
            if self.next >= end || of.is_complete() {
                return 0;
            }
            let mut copied = 0;
            while self.next < end
                && let Some(number) = pipeline.pace.to_fill(self.first, self.next, self.ahead)
                && number < end
            {
                let from = (number - self.first) * PIECE as u64;
                let length = (self.bytes - from).min(PIECE as u64);
                // SAFETY: by F1 nobody reads the block. The buffer is valid: the send was not complete above, and if it
                // is now, only this task could tell the program.
                unsafe { copy_bytes(self.data.add(from as usize), pipeline.block(number), length as usize) };
                pipeline.pace.fill(number);
                self.next = number + 1;
                copied += length;
            }
            copied
        }
    }

    /// The pipelines of a rank.
    #[derive(Debug)]
    pub(crate) struct Sending {
        slots: [Slot; PIPELINES],
        /// Slots with a message.
        count: u32,
    }

    impl Sending {
        /// No message yet.
        pub(crate) const NONE: Self = Self { slots: [Slot::NONE; PIPELINES], count: 0 };

        /// Whether no slot has a message.
        pub(crate) fn is_empty(&self) -> bool {
            self.count == 0
        }

        /// Gives a pipeline to a send of `bytes` bytes at `data`, whose RTS has not been sent. `None`: all have
        /// messages, or memory is short.
        ///
        /// # Safety
        /// The data is there until the send is complete, or [`Sending::leave`]; [`Sending::end`] comes before the
        /// record of the send is freed.
        pub(crate) unsafe fn begin(
            &mut self,
            heap: &Heap,
            of: RecordRef<Request>,
            (data, bytes): (*const u8, u64),
            ahead: bool,
        ) -> Option<RecordRef<Pipeline>> {
            let slot = self.slots.iter_mut().find(|slot| slot.of.is_none())?;
            let pipeline = match slot.pipeline {
                Some(pipeline) => pipeline,
                None => Pipeline::make(heap)?,
            };
            slot.pipeline = Some(pipeline);
            slot.first += slot.bytes.div_ceil(PIECE as u64);
            (slot.of, slot.data, slot.bytes) = (Some(of), data, bytes);
            (slot.next, slot.ahead) = (slot.first, ahead);
            self.count += 1;
            pipeline.pace.begin(slot.first);
            Some(pipeline)
        }

        /// The program gives up the handle of a send that is not complete: nobody reads the buffer for it any more.
        #[cold]
        pub(crate) fn leave(&mut self, of: &Request) {
            if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_of(of)) {
                slot.next = u64::MAX;
            }
        }

        /// The record of a send goes, which is complete or withdrawn: another one may have its pipeline.
        #[inline]
        pub(crate) fn end(&mut self, of: &Request) {
            if self.count == 0 {
                return;
            }
            if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_of(of)) {
                slot.of = None;
                self.count -= 1;
            }
        }

        /// Whether a message has a pipeline.
        #[inline]
        pub(crate) fn is_under_way(&self) -> bool {
            self.count != 0
        }

        /// Fills the blocks that are free. Returns the bytes copied.
        ///
        /// # Safety
        /// By the sender's own task, the only one of the rank that calls.
        pub(crate) unsafe fn fill(&mut self) -> u64 {
            let taken = self.slots.iter_mut().filter(|slot| slot.of.is_some());
            // SAFETY: the caller's promise.
            taken.map(|slot| unsafe { slot.fill() }).sum()
        }
    }

    /// What the receiver of such a message has: where it is.
    pub(crate) struct Pieces {
        pipeline: RecordRef<Pipeline>,
        first: u64,
        number: u64,
        patience: u32,
    }

    impl Pieces {
        /// The pieces of a message that was taken, of which none was received. Asks the sender for them.
        pub(crate) fn of(pipeline: RecordRef<Pipeline>) -> Self {
            let first = pipeline.pace.first();
            pipeline.pace.ask(first);
            Self { pipeline, first, number: first, patience: PATIENCE }
        }

        /// Where the next piece begins in the message.
        pub(crate) fn from(&self) -> u64 {
            (self.number - self.first) * PIECE as u64
        }

        /// The next piece in its block, when the sender has filled it; `None` if it is late, and then the caller
        /// copies the piece itself. `meanwhile`: what the caller does while it looks for it.
        /// It says how much patience that takes.
        pub(crate) fn next(&mut self, mut meanwhile: impl FnMut() -> u32) -> Option<*mut u8> {
            while !self.pipeline.pace.is_filled(self.number) {
                self.patience = self.patience.checked_sub(meanwhile())?;
                pause();
            }
            Some(self.pipeline.block(self.number))
        }

        /// The next piece has been received.
        pub(crate) fn took(&mut self) {
            self.pipeline.pace.take(self.number);
            self.number += 1;
        }
    }

    /// Bytes of the piece that begins at `from`, in a message of `bytes`.
    pub(crate) fn piece(from: u64, bytes: u64) -> u64 {
        (bytes - from).min(PIECE as u64)
    }
}

#[cfg(test)]
mod tests;

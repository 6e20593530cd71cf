//! What the two sides of a partitioned send share, and how its partitions are copied.

use super::Partitions;
use super::data::{Destination, copy_plain};
use crate::rounds::Rounds;
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicU32, Ordering, fence};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use cohort_core::rank::Rank;
use cohort_datatype as datatype;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// What the two sides share.
#[derive(Debug)]
pub(super) struct Channel {
    references: AtomicU32,
    pub(super) rounds: Rounds,
    /// A state per partition of the sender.
    states: *mut AtomicU32,
    pub(super) source: Partitions,
    pub(super) sender: &'static Rank,
    pub(super) envelope: Envelope,
    pub(super) destination: UnsafeCell<Option<Destination>>,
}

impl Channel {
    /// A channel with a reference for either side; `None` when memory is short.
    pub(super) fn make(claim: &mut Claim<'_>, source: Partitions, envelope: Envelope) -> Option<NonNull<Self>> {
        let count = source.partitions as usize;
        let states = claim.alloc(count * size_of::<AtomicU32>())?.cast::<AtomicU32>();
        let room = claim.alloc_aligned(size_of::<Self>(), align_of::<Self>());
        let Some(channel) = room.map(NonNull::cast::<Self>) else {
            // SAFETY: it came from this heap and nobody knows it.
            unsafe { claim.free_local(states.cast()) };
            return None;
        };
        // SAFETY: fresh blocks of the right sizes.
        unsafe {
            for partition in 0..count {
                states.add(partition).write(AtomicU32::new(0));
            }
            channel.write(Self {
                references: AtomicU32::new(2),
                rounds: Rounds::new(),
                states: states.as_ptr(),
                source,
                sender: claim.rank().node().rank(claim.rank().id()),
                envelope,
                destination: UnsafeCell::new(None),
            });
        }
        Some(channel)
    }

    #[inline(always)]
    pub(super) fn state(&self, partition: u32) -> &AtomicU32 {
        assert!(partition < self.source.partitions, "no such partition");
        // SAFETY: there is one state per partition.
        unsafe { &*self.states.add(partition as usize) }
    }

    /// Copies a partition that the caller has taken. Returns the receiver.
    ///
    /// # Safety
    /// The receiver has opened the round, so its part is described.
    #[inline(always)]
    pub(super) unsafe fn copy(&self, partition: u32) -> &'static Rank {
        // SAFETY: the caller's promise; nobody writes the description any more.
        let destination = unsafe { (*self.destination.get()).as_ref() };
        let Some(destination) = destination else {
            unreachable!("a round was opened without a buffer");
        };
        let receiver = destination.rank;
        let bytes = self.source.bytes();
        let from = bytes * u64::from(partition);
        if destination.is_plain {
            let (target, source) = (&destination.data.first, &self.source.first);
            let (target, source) = (target.as_buffer().base(), source.as_buffer().base());
            // SAFETY: one run of bytes each, and all of the sender's fits; both sides keep their data until the end of
            // the round, which comes after this copy.
            unsafe { copy_plain(source, target, (from as usize, bytes as usize)) };
        } else {
            self.copy_parts(destination, from, bytes);
        }
        receiver
    }

    /// Copies so many bytes, from this one on, whatever their types.
    #[inline(never)]
    fn copy_parts(&self, destination: &Destination, from: u64, bytes: u64) {
        let to = (from + bytes).min(destination.data.all().bytes());
        if from < to {
            let (target, source) = (destination.data.all(), self.source.all());
            datatype::copy(target, source, from, to);
        }
    }

    /// Copies a partition that somebody else than the sender has taken in `round`.
    ///
    /// # Safety
    /// As for [`Channel::copy`].
    pub(super) unsafe fn copy_for_sender(&self, partition: u32, round: u32) {
        // SAFETY: the caller's promise.
        let receiver = unsafe { self.copy(partition) };
        let (sender, state) = (self.sender, self.state(partition));
        // After the last copy either side may let go of the channel.
        if self.rounds.finish(state, round, self.source.partitions) {
            sender.wake();
            receiver.wake();
        }
    }

    /// The receiver of a round that is over, or was opened.
    pub(super) fn receiver(&self) -> Option<&'static Rank> {
        // SAFETY: it was described before the round was opened, and nobody writes the description any more.
        let destination = unsafe { (*self.destination.get()).as_ref() };
        destination.map(|destination| destination.rank)
    }

    /// Takes one more reference, to be given back by [`Channel::release`]; the caller has one.
    pub(super) fn keep(&self) {
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives one reference back.
    ///
    /// # Safety
    /// The caller has it, and does not use it any more.
    pub(super) unsafe fn release(channel: NonNull<Self>) {
        // SAFETY: the reference keeps the channel; after the last one nobody uses it.
        unsafe {
            if channel.as_ref().references.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            // Pairs with the Release of the other side.
            fence(Ordering::Acquire);
            Heap::free(NonNull::new_unchecked(channel.as_ref().states.cast()));
            channel.drop_in_place();
            Heap::free(channel.cast());
        }
    }
}

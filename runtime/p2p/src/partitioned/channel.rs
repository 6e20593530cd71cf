//! What the two sides of a partitioned send share, and how its partitions are copied.

use super::Partitions;
use super::data::{Destination, copy_plain};
use crate::rounds::Rounds;
use cohort_alloc::Heap;
use cohort_base::sync::atomic::{AtomicU32, Ordering, fence};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use cohort_core::rank::Rank;
use cohort_core::rank_box::RankBox;
use cohort_core::record::RecordRef;
use cohort_datatype as datatype;
use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ops::Deref;

/// What the two sides share.
#[derive(Debug)]
pub(super) struct Channel {
    references: AtomicU32,
    pub(super) rounds: Rounds,
    /// A state per partition of the sender.
    states: RankBox<[AtomicU32]>,
    pub(super) source: Partitions,
    pub(super) sender: &'static Rank,
    pub(super) envelope: Envelope,
    pub(super) destination: UnsafeCell<Option<Destination>>,
}

/// A reference to a channel, which is gone with the last one.
#[derive(Debug)]
pub(super) struct ChannelRef(RecordRef<Channel>);

impl ChannelRef {
    /// The channel, with this reference.
    pub(super) fn into_raw(self) -> RecordRef<Channel> {
        ManuallyDrop::new(self).0
    }

    /// # Safety
    /// The reference is the caller's to give: that of [`ChannelRef::into_raw`].
    pub(super) unsafe fn from_raw(channel: RecordRef<Channel>) -> Self {
        Self(channel)
    }

    /// The channel, for as long as the reference is kept.
    pub(super) fn record(&self) -> RecordRef<Channel> {
        self.0
    }
}

impl Clone for ChannelRef {
    fn clone(&self) -> Self {
        self.0.references.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Deref for ChannelRef {
    type Target = Channel;

    #[inline(always)]
    fn deref(&self) -> &Channel {
        &self.0
    }
}

impl Drop for ChannelRef {
    fn drop(&mut self) {
        if self.0.references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // Pairs with the Release of the other side.
        fence(Ordering::Acquire);
        // SAFETY: it was the last reference, and the block came from a rank's heap.
        unsafe {
            self.0.as_ptr().drop_in_place();
            Heap::free(self.0.as_non_null().cast());
        }
    }
}

impl Channel {
    /// A channel with a reference for either side; `None` when memory is short.
    pub(super) fn make(claim: &mut Claim<'_>, source: Partitions, envelope: Envelope) -> Option<[ChannelRef; 2]> {
        let states = RankBox::slice(claim, source.partitions as usize, |_, _| Ok(AtomicU32::new(0))).ok()?;
        let fresh = Self {
            references: AtomicU32::new(2),
            rounds: Rounds::new(),
            states,
            source,
            sender: claim.rank().forever(),
            envelope,
            destination: UnsafeCell::new(None),
        };
        let channel = claim.alloc_aligned(size_of::<Self>(), align_of::<Self>())?.cast::<Self>();
        // SAFETY: a fresh block of the right size and alignment, with two references.
        let channel = unsafe {
            channel.write(fresh);
            RecordRef::new(channel)
        };
        Some([ChannelRef(channel), ChannelRef(channel)])
    }

    #[inline(always)]
    pub(super) fn state(&self, partition: u32) -> &AtomicU32 {
        let Some(state) = self.states.get(partition as usize) else {
            panic!("no such partition");
        };
        state
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
}

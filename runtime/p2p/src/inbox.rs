//! The two ends of the ways between ranks: where a receiver finds the rings that its senders have
//! made, and what a sender keeps for each receiver.
//!
//! A sender stores its ring in the table first and then its number in the list, so that the receiver,
//! which polls the list, finds every ring. A wait that is about to sleep looks again
//! behind its heavy barrier, as for messages.

use crate::ring::{Header, Outlet, Ring};
use cohort_base::LocalRank;
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use cohort_core::record::RecordRef;
use core::cell::Cell;

/// Where a rank's senders show it their rings.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The ring of each sender, or null; `node.capacity()` entries.
    rings: *const AtomicPtr<Ring>,
    /// Senders, plus one, in the order in which they came; 0 where one is about to be written.
    senders: *const AtomicU32,
    count: CacheLine<AtomicU32>,
    size: u32,
}

// SAFETY: the tables are of atomics and live as long as the node.
unsafe impl Sync for Inbox {}

impl Inbox {
    /// An inbox over zeroed tables of `size` entries.
    ///
    /// # Safety
    /// The tables are zero, live as long as the inbox, and are used by nobody else.
    pub(crate) unsafe fn new(rings: *const AtomicPtr<Ring>, senders: *const AtomicU32, size: u32) -> Self {
        Self { rings, senders, count: CacheLine(AtomicU32::new(0)), size }
    }

    /// Shows the rank the ring of one more sender. By the sender, once.
    pub(crate) fn add(&self, sender: LocalRank, ring: &Ring) {
        // SAFETY: senders are below `size`, and each adds one ring.
        unsafe {
            let slot = &*self.rings.add(sender as usize);
            // Release pairs with the Acquire in `ring`: zeroed cells first.
            slot.store(core::ptr::from_ref(ring).cast_mut(), Ordering::Release);
            let place = self.count.fetch_add(1, Ordering::Relaxed);
            // Release pairs with the Acquire in `sender`.
            (*self.senders.add(place as usize)).store(sender + 1, Ordering::Release);
        }
    }

    /// The ring of one sender, once it has one.
    #[inline]
    pub(crate) fn ring(&self, sender: LocalRank) -> Option<&Ring> {
        debug_assert!(sender < self.size);
        // SAFETY: rings live as long as the node; Acquire pairs with the Release in `add`.
        unsafe { (*self.rings.add(sender as usize)).load(Ordering::Acquire).as_ref() }
    }

    /// The rank's end of the ring of one sender. For the holder of the rank's claim, who is the consumer.
    #[inline]
    pub(crate) fn outlet(&self, sender: LocalRank) -> Option<Outlet<'_>> {
        // SAFETY: the holder of the claim uses one end at a time.
        self.ring(sender).map(|ring| unsafe { ring.outlet() })
    }

    /// Senders that have rings, at most.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// The sender that came in this place, unless it is just coming.
    #[inline]
    pub(crate) fn sender(&self, place: u32) -> Option<LocalRank> {
        debug_assert!(place < self.size);
        // SAFETY: places are below the count, which is at most `size`.
        let sender = unsafe { (*self.senders.add(place as usize)).load(Ordering::Acquire) };
        sender.checked_sub(1)
    }
}

/// A message that waits for room; its payload lies behind it.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) header: Header,
    pub(crate) next: Cell<Option<RecordRef<Self>>>,
}

/// The messages to one receiver. All-zero memory is one that was never used.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) ring: Cell<Option<&'static Ring>>,
    pub(crate) first: Cell<Option<RecordRef<Waiting>>>,
    pub(crate) last: Cell<Option<RecordRef<Waiting>>>,
    /// Messages that wait.
    pub(crate) waiting: Cell<u32>,
    /// RTS messages put into the ring so far, modulo 2^32.
    pub(crate) rts_count: Cell<u32>,
    /// The next receiver with waiting messages, plus one; 0 at the end.
    pub(crate) next_receiver: Cell<u32>,
    /// Cells that were in the ring so far, and that the rank had taken of the receiver's, when it last took many of
    /// those in one turn.
    pub(crate) at_many: Cell<(u64, u64)>,
}

impl Outbox {
    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.first.get().is_none()
    }

    /// The ring, if it is open and nothing waits for room in it.
    #[inline(always)]
    pub(crate) fn free_ring(&self) -> Option<&'static Ring> {
        self.ring.get().filter(|_| self.is_free())
    }
}

//! The links of one rank: a hash table in its heap, keyed by the peer's number, that grows with the peers
//! it talks with. A job may have hundreds of thousands of ranks; most pairs never exchange a packet.
//!
//! A slot is the address of a link, or null; the key is in the link, which whoever looks it up is about to
//! use. Links are never unmade, so there is no deletion: linear probing from the key's own slot ends at the
//! link or at a null. At most half of the slots are used.

use crate::link::Link;
use cohort_base::Peer;
use cohort_core::record::RecordRef;
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// Slots of the smallest table.
const FEWEST: usize = 8;

/// The links of one rank. Only the holder of its claim uses them.
#[derive(Debug)]
pub(crate) struct LinkTable {
    /// A power of two of slots; null until there is a link.
    slots: *mut Option<RecordRef<Link>>,
    count: usize,
    used: usize,
    /// The link that was made last; each leads to the one made before it.
    newest: Option<RecordRef<Link>>,
}

impl LinkTable {
    pub(crate) const EMPTY: Self = Self { slots: null_mut(), count: 0, used: 0, newest: None };

    /// The link to a peer, if there is one.
    #[inline]
    pub(crate) fn find(&self, peer: Peer) -> Option<RecordRef<Link>> {
        if self.slots.is_null() {
            return None;
        }
        let mut index = self.home(peer);
        while let Some(link) = self.slot(index) {
            if link.peer == peer {
                return Some(link);
            }
            index = (index + 1) & (self.count - 1);
        }
        None
    }

    /// What is in a slot of the table.
    #[inline]
    fn slot(&self, index: usize) -> Option<RecordRef<Link>> {
        debug_assert!(index < self.count);
        // SAFETY: indexes are masked, and all slots were written.
        unsafe { *self.slots.add(index) }
    }

    /// The slot where looking for a peer begins. Multiplication by the golden ratio spreads peers that are
    /// a constant apart, as the ranks of one place on each node are.
    #[inline]
    fn home(&self, peer: Peer) -> usize {
        let spread = u64::from(peer.index()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (spread >> 32) as usize & (self.count - 1)
    }

    /// Bytes of the room that the table needs before one more link fits, if it does not fit yet.
    pub(crate) fn growth(&self) -> Option<usize> {
        let is_full = (self.used + 1) * 2 > self.count;
        is_full.then(|| (self.count * 2).max(FEWEST) * size_of::<*mut Link>())
    }

    /// Moves the table to fresh room. Returns the old room, which nobody uses any more.
    ///
    /// # Safety
    /// The room has the bytes that [`LinkTable::growth`] asked for, and is nobody else's.
    pub(crate) unsafe fn move_to(&mut self, room: NonNull<u8>) -> Option<NonNull<u8>> {
        let old = NonNull::new(self.slots.cast());
        self.count = (self.count * 2).max(FEWEST);
        self.slots = room.as_ptr().cast();
        // SAFETY: the caller's promise.
        unsafe { self.slots.write_bytes(0, self.count) };
        for link in self.iter() {
            self.place(link);
        }
        old
    }

    /// Adds a link to a peer that has none, for which there is room.
    pub(crate) fn add(&mut self, link: RecordRef<Link>) {
        assert!(self.growth().is_none(), "no room for a link");
        link.earlier.set(self.newest);
        self.newest = Some(link);
        self.used += 1;
        self.place(link);
    }

    fn place(&mut self, link: RecordRef<Link>) {
        let mut index = self.home(link.peer);
        while self.slot(index).is_some() {
            index = (index + 1) & (self.count - 1);
        }
        // SAFETY: the index is masked.
        unsafe { *self.slots.add(index) = Some(link) };
    }

    /// All links, also while more are made: those are left out.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RecordRef<Link>> + use<> {
        core::iter::successors(self.newest, |link| link.earlier.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_bridge::Bridge;
    use std::boxed::Box;
    use std::vec::Vec;

    /// A table of the links to these peers, and the bytes that it takes.
    fn table(peers: impl Iterator<Item = u32>) -> (LinkTable, usize) {
        let (mut links, mut bytes) = (LinkTable::EMPTY, 0);
        let nothing = Box::leak(Box::new(Bridge::new((0, 0), 0, &[], &[])));
        for peer in peers {
            if let Some(size) = links.growth() {
                bytes = size;
                let room = Vec::<u64>::with_capacity(size / 8).leak().as_mut_ptr();
                // SAFETY: fresh room of that size.
                unsafe { links.move_to(NonNull::new(room.cast()).unwrap()) };
            }
            let link = Box::leak(Box::new(Link::to(Peer::of_index(peer), peer, nothing)));
            // SAFETY: the link is leaked.
            links.add(unsafe { RecordRef::new(NonNull::from(link)) });
        }
        (links, bytes)
    }

    #[test]
    fn every_link_is_found_and_no_other() {
        // The ranks of one place on each node of a large job, and their neighbours.
        for stride in [1, 3, 64, 128, 4096] {
            let (links, _) = table((0..1000).map(|index| 64 + index * stride));
            let found = |peer| {
                let link = links.find(Peer::of_index(peer));
                link.map(|link| link.peer.index())
            };
            for index in 0..1000 {
                let peer = 64 + index * stride;
                assert_eq!(found(peer), Some(peer));
                if stride > 1 {
                    assert_eq!(found(peer + 1), None);
                }
            }
            assert_eq!(found(63), None);
            assert_eq!(links.iter().count(), 1000);
        }
        assert!(LinkTable::EMPTY.find(Peer::of_index(5)).is_none());
    }

    #[test]
    fn memory_goes_with_the_links_and_not_with_the_job() {
        let (_, few) = table((0..14).map(|doubling| 1 << doubling));
        assert_eq!(few, 32 * size_of::<*mut Link>());
        let (_, many) = table((0..1000).map(|index| index * 640));
        assert_eq!(many, 2048 * size_of::<*mut Link>());
    }

    #[test]
    fn probes_are_short() {
        for stride in [1, 64, 640] {
            let (links, _) = table((0..10_000).map(|index| index * stride));
            let far = |link: RecordRef<Link>| {
                let mut slot = links.home(link.peer);
                let mut steps = 0;
                while links.slot(slot) != Some(link) {
                    slot = (slot + 1) & (links.count - 1);
                    steps += 1;
                }
                steps
            };
            let steps: u32 = links.iter().map(far).sum();
            assert!(steps < 10_000, "{steps} steps beside 10000, stride {stride}");
        }
    }
}

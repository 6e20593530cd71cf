//! The blocks that a rank's C library has given out, as `libcohort_blocks.so` notes them for the checker.
//!
//! A bit for each 16 bytes of the address space says whether a block begins there, and a word how long it is. Both lie
//! in tables of 64 MiB each, which are made when the first block in them is. Blocks are noted by the threads of one
//! rank, and looked up by the same ones; what another thread gives back meanwhile is seen or not. So nothing here is
//! read but the tables: a block may be unmapped at any time.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Bytes that a bit stands for.
const GRAIN: usize = 16;
/// Bytes of address space of a table, as a power of two.
const REGION_BITS: usize = 26;
/// Tables that there may be.
const REGIONS: usize = 1 << (cohort_arch::ADDRESS_BITS as usize - REGION_BITS);
const GRAINS: usize = (1 << REGION_BITS) / GRAIN;
/// Tables below that of an address in which the beginning of its block is looked for: blocks of up to 16 GiB.
const BELOW: usize = 256;

/// In a length: somebody wants to know when the block is freed.
const WATCHED: u32 = 1 << 30;
/// In a length: it counts pages, rounded up.
const LONG: u32 = 1 << 31;
const LONG_UNIT: usize = 4096;

/// The table of a part of the address space.
#[repr(C)]
pub struct Region {
    /// A bit for each word of `begins` that is not 0, or was not.
    summary: [AtomicU64; GRAINS / 64 / 64],
    begins: [AtomicU64; GRAINS / 64],
    lengths: [AtomicU32; GRAINS],
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub start: usize,
    /// The bytes that were asked for; those of more than 1 GiB rounded up to pages.
    pub bytes: usize,
}

impl Block {
    /// The byte behind it.
    #[must_use]
    pub const fn end(self) -> usize {
        self.start.saturating_add(self.bytes)
    }

    /// Whether it has the byte at an address. Any block has the place where it begins.
    #[must_use]
    pub const fn has(self, address: usize) -> bool {
        address == self.start || (address > self.start && address < self.end())
    }
}

/// A block that was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// What it was.
    pub block: Block,
    /// The address behind the call that has freed it.
    pub by: usize,
    /// Its memory may have gone back to the kernel, and be used for something else.
    pub is_mapping: bool,
}

/// A place for a freed block, of a list that begins again when it is full.
struct Slot {
    start: AtomicUsize,
    bytes: AtomicUsize,
    by: AtomicUsize,
    is_mapping: AtomicU32,
}

impl Slot {
    const fn new() -> Self {
        let (start, bytes, by) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        Self { start, bytes, by, is_mapping: AtomicU32::new(0) }
    }
}

/// The newest freed blocks.
struct List<const ROOM: usize> {
    slots: [Slot; ROOM],
    count: AtomicU64,
}

impl<const ROOM: usize> List<ROOM> {
    const fn new() -> Self {
        Self { slots: [const { Slot::new() }; ROOM], count: AtomicU64::new(0) }
    }

    fn push(&self, freed: Freed) {
        // Relaxed throughout: what matters is what the same thread has freed, or one that it has waited for.
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let slot = &self.slots[number as usize % ROOM];
        slot.start.store(freed.block.start, Ordering::Relaxed);
        slot.bytes.store(freed.block.bytes, Ordering::Relaxed);
        slot.by.store(freed.by, Ordering::Relaxed);
        slot.is_mapping.store(freed.is_mapping.into(), Ordering::Relaxed);
    }

    /// The newest that fits, among those behind the first `since`.
    fn find(&self, since: u64, fits: impl Fn(&Freed) -> bool) -> Option<Freed> {
        let count = self.count.load(Ordering::Relaxed);
        let since = since.max(count.saturating_sub(ROOM as u64));
        (since..count).rev().find_map(|number| {
            let slot = &self.slots[number as usize % ROOM];
            let (start, bytes) = (slot.start.load(Ordering::Relaxed), slot.bytes.load(Ordering::Relaxed));
            let by = slot.by.load(Ordering::Relaxed);
            let is_mapping = slot.is_mapping.load(Ordering::Relaxed) != 0;
            let freed = Freed { block: Block { start, bytes }, by, is_mapping };
            Some(freed).filter(&fits)
        })
    }
}

/// All blocks of a rank. Zeros are the value without any.
pub struct Blocks {
    regions: [AtomicPtr<Region>; REGIONS],
    freed: List<1024>,
    watched: List<4096>,
}

impl Blocks {
    /// None.
    #[expect(clippy::new_without_default, reason = "too large for a stack")]
    #[must_use]
    pub const fn new() -> Self {
        Self { regions: [const { AtomicPtr::new(null_mut()) }; REGIONS], freed: List::new(), watched: List::new() }
    }

    fn region(&self, number: usize) -> Option<&Region> {
        let region = self.regions.get(number)?.load(Ordering::Acquire);
        // SAFETY: NULL, or what `make` has given, which stays.
        unsafe { region.as_ref() }
    }

    /// The table of an address, which `make` makes if there is none: zeros that stay.
    fn made(&self, address: usize, make: fn(usize) -> Option<NonNull<u8>>) -> Option<&Region> {
        let number = address >> REGION_BITS;
        if let Some(region) = self.region(number) {
            return Some(region);
        }
        // An address of which nothing is noted takes no memory either.
        let place = self.regions.get(number)?;
        let made = make(size_of::<Region>())?.cast::<Region>().as_ptr();
        // Two threads may make one at once; that of the second is not used, and costs no memory. Release pairs with
        // the Acquire above.
        let _ = place.compare_exchange(null_mut(), made, Ordering::Release, Ordering::Relaxed);
        self.region(number)
    }

    /// A block was given out.
    pub fn add(&self, block: Block, make: fn(usize) -> Option<NonNull<u8>>) {
        let Some(region) = self.made(block.start, make) else {
            return;
        };
        let grain = grain(block.start);
        region.lengths[grain].store(encode(block.bytes), Ordering::Relaxed);
        region.begins[grain / 64].fetch_or(1 << (grain % 64), Ordering::Relaxed);
        let (word, bit) = (grain / 64 / 64, 1 << (grain / 64 % 64));
        if region.summary[word].load(Ordering::Relaxed) & bit == 0 {
            region.summary[word].fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The block that begins here, if it is known, is to be freed: it is one no more. Whether it is watched.
    pub fn take(&self, start: usize) -> Option<(Block, bool)> {
        let region = self.region(start >> REGION_BITS)?;
        let grain = grain(start);
        let bit = 1 << (grain % 64);
        let word = &region.begins[grain / 64];
        if !start.is_multiple_of(GRAIN) || word.load(Ordering::Relaxed) & bit == 0 {
            return None;
        }
        word.fetch_and(!bit, Ordering::Relaxed);
        let length = region.lengths[grain].load(Ordering::Relaxed);
        Some((Block { start, bytes: decode(length) }, length & WATCHED != 0))
    }

    /// A block that was taken is freed.
    pub fn note_freed(&self, freed: Freed, is_watched: bool) {
        self.freed.push(freed);
        if is_watched {
            self.watched.push(freed);
        }
    }

    /// The block that has this byte.
    #[must_use]
    pub fn find(&self, address: usize) -> Option<Block> {
        let number = address >> REGION_BITS;
        let mut below = Some(grain(address));
        for number in (number.saturating_sub(BELOW)..=number).rev() {
            let found = self.region(number).and_then(|region| region.last(below.unwrap_or(GRAINS - 1)));
            if let (Some(region), Some(grain)) = (self.region(number), found) {
                let start = (number << REGION_BITS) + grain * GRAIN;
                let bytes = decode(region.lengths[grain].load(Ordering::Relaxed));
                return Some(Block { start, bytes }).filter(|block| block.has(address));
            }
            below = None;
        }
        None
    }

    /// Has frees of a block noted that nobody forgets soon.
    pub fn watch(&self, start: usize) {
        if let Some(region) = self.region(start >> REGION_BITS) {
            region.lengths[grain(start)].fetch_or(WATCHED, Ordering::Relaxed);
        }
    }

    /// How many watched blocks were freed.
    #[must_use]
    pub fn watched_count(&self) -> u64 {
        self.watched.count.load(Ordering::Relaxed)
    }

    /// Whether a watched block was freed, behind the first `since` of them.
    #[must_use]
    pub fn was_freed(&self, block: Block, since: u64) -> Option<Freed> {
        self.watched.find(since, |freed| freed.block.start == block.start)
    }

    /// The newest freed block that had this byte.
    #[must_use]
    pub fn freed_with(&self, address: usize) -> Option<Freed> {
        self.freed.find(0, |freed| freed.block.has(address))
    }
}

impl Region {
    /// The last block that begins at this grain or before.
    fn last(&self, grain: usize) -> Option<usize> {
        let upto = |bit: usize| u64::MAX >> (63 - bit);
        let own = grain / 64;
        let word = self.begins[own].load(Ordering::Relaxed) & upto(grain % 64);
        if word != 0 {
            return Some(own * 64 + highest(word));
        }
        let mut limit = own.checked_sub(1)?;
        loop {
            let summary = self.summary[limit / 64].load(Ordering::Relaxed) & upto(limit % 64);
            if summary == 0 {
                limit = (limit / 64 * 64).checked_sub(1)?;
                continue;
            }
            let place = limit / 64 * 64 + highest(summary);
            let word = self.begins[place].load(Ordering::Relaxed);
            if word != 0 {
                return Some(place * 64 + highest(word));
            }
            limit = place.checked_sub(1)?;
        }
    }
}

/// Which of a table's grains an address is in.
const fn grain(address: usize) -> usize {
    (address & ((1 << REGION_BITS) - 1)) / GRAIN
}

const fn highest(word: u64) -> usize {
    63 - word.leading_zeros() as usize
}

const fn encode(bytes: usize) -> u32 {
    if bytes < WATCHED as usize { bytes as u32 } else { bytes.div_ceil(LONG_UNIT) as u32 | LONG }
}

const fn decode(length: u32) -> usize {
    let number = (length & !(LONG | WATCHED)) as usize;
    if length & LONG == 0 { number } else { number * LONG_UNIT }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::alloc::{Layout, alloc_zeroed};
    use std::boxed::Box;

    fn make(bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: a valid layout that is not empty.
        NonNull::new(unsafe { alloc_zeroed(Layout::from_size_align(bytes, 64).expect("valid")) })
    }

    fn none() -> Box<Blocks> {
        // SAFETY: zeros are the value without blocks.
        unsafe { Box::<Blocks>::new_zeroed().assume_init() }
    }

    #[test]
    fn blocks_are_found_by_their_bytes() {
        let blocks = none();
        let long = Block { start: 0x7f00_0000_0010, bytes: 300 << 20 };
        let all = [Block { start: 0x1000, bytes: 20 }, Block { start: 0x1020, bytes: 0 }, long];
        all.into_iter().for_each(|block| blocks.add(block, make));
        assert_eq!(blocks.find(0x1013), Some(all[0]));
        assert_eq!(blocks.find(0x1014), None);
        assert_eq!(blocks.find(0x1020), Some(all[1]));
        assert_eq!(blocks.find(0xfff), None);
        assert_eq!(blocks.find(0x5000), None);
        assert_eq!(blocks.find(long.end() - 1), Some(long));
        assert_eq!(blocks.find(long.end()), None);
    }

    #[test]
    fn freed_blocks_are_known_for_a_while() {
        let blocks = none();
        let block = Block { start: 0x4000, bytes: 64 };
        let free = |by| {
            blocks.add(block, make);
            if by == 7 {
                blocks.watch(block.start);
            }
            let (taken, is_watched) = blocks.take(block.start).expect("is there");
            blocks.note_freed(Freed { block: taken, by, is_mapping: false }, is_watched);
        };
        free(7);
        (0..5000).for_each(|_| free(8));
        assert_eq!(blocks.take(block.start), None);
        assert_eq!(blocks.find(0x4000), None);
        assert_eq!(blocks.freed_with(0x4020).map(|freed| freed.by), Some(8));
        assert_eq!(blocks.was_freed(block, 0).map(|freed| freed.by), Some(7));
        assert_eq!(blocks.was_freed(block, blocks.watched_count()), None);
    }

    #[test]
    fn lengths_have_their_room() {
        for bytes in [0, 1, (1 << 30) - 1] {
            assert_eq!(decode(encode(bytes) | WATCHED), bytes);
        }
        assert_eq!(decode(encode((5 << 30) + 1)), (5 << 30) + 4096);
    }
}

//! Memory of this node's ranks that other nodes may read and write.
//!
//! A key is the index of an entry and the entry's generation, so a key of a region that was withdrawn, or one that
//! nobody gave out, finds nothing. Keys come over connections whose other end has proved itself only.

use cohort_base::lock::FutexLock;

/// One region, or a free entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Raised whenever the entry is freed.
    generation: u32,
    /// First byte and length, if it is in use.
    memory: Option<(usize, usize)>,
}

#[derive(Debug, Default)]
struct Table {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

/// The regions of a node.
#[derive(Debug)]
pub struct Regions {
    table: FutexLock<Table>,
    /// Where generations begin: not to be guessed.
    first: u32,
}

impl Regions {
    /// No regions; `seed` is a random number.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self { table: FutexLock::default(), first: seed }
    }

    /// Takes a region in; its key.
    pub fn add(&self, start: usize, length: usize) -> u64 {
        let mut table = self.table.lock();
        let memory = Some((start, length));
        if let Some(index) = table.free.pop() {
            let entry = &mut table.entries[index as usize];
            entry.memory = memory;
            return key(index, entry.generation);
        }
        let index = table.entries.len() as u32;
        let generation = self.first.wrapping_add(index.wrapping_mul(0x9e37_79b9));
        table.entries.push(Entry { generation, memory });
        key(index, generation)
    }

    /// Ends a region.
    pub fn remove(&self, key: u64) {
        let mut table = self.table.lock();
        let index = key as u32;
        if let Some(entry) = table.entries.get_mut(index as usize)
            && entry.generation == (key >> 32) as u32
            && entry.memory.take().is_some()
        {
            entry.generation = entry.generation.wrapping_add(1);
            table.free.push(index);
        }
    }

    /// First byte of `length` bytes from `offset` on in a region; none if the key is of no region or they are not in
    /// it.
    #[must_use]
    pub fn find(&self, key: u64, offset: u64, length: u64) -> Option<usize> {
        let table = self.table.lock();
        let entry = table.entries.get(key as u32 as usize)?;
        let (start, whole) = entry.memory?;
        let fits = entry.generation == (key >> 32) as u32 && offset.checked_add(length)? <= whole as u64;
        fits.then_some(start + usize::try_from(offset).ok()?)
    }
}

fn key(index: u32, generation: u32) -> u64 {
    u64::from(index) | u64::from(generation) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_own_region_while_it_lasts() {
        let regions = Regions::new(17);
        let (first, second) = (regions.add(1000, 10), regions.add(5000, 1));
        assert_eq!(regions.find(first, 3, 7), Some(1003));
        assert_eq!(regions.find(first, 3, 8), None);
        assert_eq!(regions.find(first, u64::MAX, 1), None);
        assert_eq!(regions.find(second, 0, 1), Some(5000));
        regions.remove(first);
        regions.remove(first);
        assert_eq!(regions.find(first, 0, 1), None);
        let again = regions.add(7000, 10);
        assert_eq!((again as u32, regions.find(first, 0, 1)), (first as u32, None));
        assert_eq!(regions.find(again, 9, 1), Some(7009));
        for guess in 0..1000 {
            assert_eq!(regions.find(guess, 0, 1), None);
        }
    }
}

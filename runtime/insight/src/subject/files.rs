//! What is counted of a rank's files (`COHORT_STATS`).

use super::sum::Sum;
use alloc::string::String;

/// Bytes up to which calls are in each class of sizes but the last one, as Darshan has them.
pub const SIZES: [u64; 9] = [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];

/// Reads or writes of a file. Times are in ticks.
#[derive(Debug, Default)]
pub struct Moved {
    /// Calls.
    pub count: Sum,
    /// How long they took.
    pub time: Sum,
    /// What they moved.
    pub bytes: Sum,
    /// How many moved so much, by [`SIZES`].
    pub sizes: [Sum; SIZES.len() + 1],
}

impl Moved {
    /// Counts a call.
    pub fn add(&self, time: u64, bytes: u64) {
        self.count.add(1);
        self.time.add(time);
        self.bytes.add(bytes);
        self.sizes[SIZES.partition_point(|&most| most < bytes)].add(1);
    }
}

/// What was done to one file, or to one name that was opened again and again.
#[derive(Debug)]
pub struct FileTally {
    /// Neutral handle while it is open, else 0.
    pub handle: u32,
    /// Its name.
    pub name: String,
    /// Those who have opened it.
    pub members: u32,
    /// How often it was opened.
    pub opens: Sum,
    /// All calls.
    pub count: Sum,
    /// Ticks in them.
    pub time: Sum,
    /// Reads.
    pub read: Moved,
    /// Writes.
    pub written: Moved,
}

impl FileTally {
    /// Nothing counted.
    #[must_use]
    pub fn new(handle: u32, name: String, members: u32) -> Self {
        let (read, written) = (Moved::default(), Moved::default());
        let [opens, count, time] = [(); 3].map(|()| Sum::default());
        Self { handle, name, members, opens, count, time, read, written }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_sorted_by_their_bytes() {
        let moved = Moved::default();
        for bytes in [0, 100, 101, 1024, 1 << 30, (1 << 30) + 1] {
            moved.add(1, bytes);
        }
        let sizes: alloc::vec::Vec<u64> = moved.sizes.iter().map(Sum::get).collect();
        assert_eq!(sizes, [2, 2, 0, 0, 0, 0, 0, 0, 1, 1]);
    }
}

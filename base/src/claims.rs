//! Who has mapped memory at an address of its own choice, in an address space that several ranks share.
//!
//! Programs do so whose data holds addresses: images of a Lisp, symmetric heaps, some collectors. In an address space
//! of their own the address is free in each process; here only the first rank finds it so. The kernel would give it to
//! the next one all the same (`MAP_FIXED`).
//!
//! A rank notes the range before it maps, asks the kernel for memory that nobody has, and then settles the row. If the
//! kernel refuses, whoever has the range has noted it earlier. Rows that are not settled yet are waited for, not for
//! long: two ranks that both have such a row and were both refused are in each other's way in any case.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Ranges that are noted at most; those behind are not guarded.
const ROWS: usize = 4096;

/// The row is being written or given up.
const BUSY: u32 = u32::MAX;

/// Added to the owner of a row that is not settled.
const OPEN: u32 = 1 << 31;

/// How often a row is looked at that is not settled.
const LOOKS: usize = 10_000;

/// One range, of the rank `owner - 1`; 0 is nobody.
struct Row {
    owner: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
}

/// The ranges of all ranks of a node.
pub struct Claims {
    rows: [Row; ROWS],
    /// Rows behind have never been used.
    used: AtomicUsize,
}

/// A row that is not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open(usize);

impl Claims {
    /// No range.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rows: [const {
                Row {
                    owner: AtomicU32::new(0),
                    start: AtomicUsize::new(0),
                    end: AtomicUsize::new(0),
                }
            }; ROWS],
            used: AtomicUsize::new(0),
        }
    }

    fn rows(&self) -> &[Row] {
        &self.rows[..self.used.load(Ordering::Acquire).min(ROWS)]
    }

    /// Notes that a rank is about to map this range; `None` if there is no room.
    #[must_use]
    pub fn begin(&self, rank: u32, start: usize, end: usize) -> Option<Open> {
        let take = |row: &Row| {
            let taken = row
                .owner
                .compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed);
            taken.is_ok()
        };
        let index = self.rows.iter().position(take)?;
        self.used.fetch_max(index + 1, Ordering::AcqRel);
        let row = &self.rows[index];
        row.start.store(start, Ordering::Relaxed);
        row.end.store(end, Ordering::Relaxed);
        // Sequentially consistent with the kernel's calls that follow: release for those who read the range.
        row.owner.store((rank + 1) | OPEN, Ordering::SeqCst);
        Some(Open(index))
    }

    /// The range is mapped, or is not.
    pub fn settle(&self, open: Open, is_mapped: bool) {
        let owner = &self.rows[open.0].owner;
        let settled = if is_mapped {
            owner.load(Ordering::Relaxed) & !OPEN
        } else {
            0
        };
        owner.store(settled, Ordering::Release);
    }

    /// Whether a single range of this rank holds all of that.
    #[must_use]
    pub fn covers(&self, rank: u32, start: usize, end: usize) -> bool {
        self.rows().iter().any(|row| {
            row.owner.load(Ordering::Acquire) == rank + 1
                && row.start.load(Ordering::Relaxed) <= start
                && end <= row.end.load(Ordering::Relaxed)
        })
    }

    /// Another rank that has some of that range.
    #[must_use]
    pub fn other(&self, rank: u32, start: usize, end: usize) -> Option<u32> {
        self.rows().iter().find_map(|row| {
            for _ in 0..LOOKS {
                let owner = row.owner.load(Ordering::Acquire);
                let is_apart = || {
                    row.end.load(Ordering::Relaxed) <= start
                        || end <= row.start.load(Ordering::Relaxed)
                };
                if owner == 0 || owner & !OPEN == rank + 1 || (owner != BUSY && is_apart()) {
                    return None;
                }
                if owner & OPEN == 0 {
                    return Some(owner - 1);
                }
                core::hint::spin_loop();
            }
            Some((row.owner.load(Ordering::Acquire) & !OPEN).saturating_sub(1))
        })
    }

    /// A rank has unmapped this range.
    pub fn give_up(&self, rank: u32, start: usize, end: usize) {
        for row in self.rows() {
            let taken =
                row.owner
                    .compare_exchange(rank + 1, BUSY, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_err() {
                continue;
            }
            let (first, last) = (
                row.start.load(Ordering::Relaxed),
                row.end.load(Ordering::Relaxed),
            );
            let mut owner = rank + 1;
            match (start <= first, last <= end) {
                (true, true) => owner = 0,
                (true, false) if end > first => row.start.store(end, Ordering::Relaxed),
                (false, true) if start < last => row.end.store(start, Ordering::Relaxed),
                // A hole in the middle stays noted: nobody else is likely to find it.
                _ => {}
            }
            row.owner.store(owner, Ordering::Release);
        }
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn ranges_belong_to_whoever_mapped_them() {
        static CLAIMS: Claims = Claims::new();
        let note = |rank, start, end, is_mapped| {
            let open = CLAIMS.begin(rank, start, end).expect("room");
            CLAIMS.settle(open, is_mapped);
        };
        note(0, 100, 200, true);
        note(1, 150, 160, false);
        assert!(CLAIMS.covers(0, 120, 130) && !CLAIMS.covers(1, 150, 160));
        assert_eq!(CLAIMS.other(1, 190, 300), Some(0));
        assert_eq!(CLAIMS.other(1, 200, 300), None);
        assert_eq!(CLAIMS.other(0, 0, 1000), None);
        CLAIMS.give_up(1, 100, 200);
        assert_eq!(CLAIMS.other(1, 190, 300), Some(0));
        CLAIMS.give_up(0, 180, 400);
        assert_eq!(CLAIMS.other(1, 180, 300), None);
        CLAIMS.give_up(0, 0, 110);
        assert_eq!(
            (CLAIMS.other(2, 0, 110), CLAIMS.other(2, 0, 111)),
            (None, Some(0))
        );
        CLAIMS.give_up(0, 110, 180);
        assert_eq!(CLAIMS.other(1, 0, 1000), None);
    }

    #[test]
    fn a_row_that_is_never_settled_is_somebodys() {
        let claims = std::boxed::Box::leak(std::boxed::Box::new(Claims::new()));
        let open = claims.begin(3, 10, 20);
        assert!(open.is_some());
        assert_eq!(claims.other(1, 0, 15), Some(3));
    }
}

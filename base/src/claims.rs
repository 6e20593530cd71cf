//! Who has mapped memory at an address of its own choice, in an address space that several ranks share.
//!
//! Programs do so whose data holds addresses: images of a Lisp, symmetric heaps, some collectors. In an address space
//! of their own the address is free in each process; here only the first rank finds it so. The kernel would give it to
//! the next one all the same (`MAP_FIXED`).
//!
//! # The protocol
//!
//! A row is one range of one rank. Its `owner` says in which state it is:
//!
//! | owner | state | who may change it |
//! |---|---|---|
//! | 0 | free | anybody: to *written* |
//! | rank, `OPEN`, `WRITING` | written: its range is being set, nothing is mapped for it | who took it: to *open* |
//! | rank, `OPEN` | open: the kernel is being asked for memory that nobody has | the same: to *settled* or *free* |
//! | rank | settled: the rank has mapped the range | a thread of the rank: to *leaving* |
//! | rank, `LEAVING` | the rank unmaps some of it | the same thread: to *settled* or *free* |
//!
//! 1. Who maps (*M*) takes a row, sets its range, opens it, and then asks the kernel for the range if nobody has it.
//! 2. If the kernel gives it, M settles the row. If not, M looks at all rows of other ranks: one that overlaps and is
//!    settled is whose memory it is. One that is open or leaving is waited for, not for long.
//! 3. If there is none, M asks the kernel again, since whoever had it may have left between the refusal and the look.
//!    When it is refused [`TRIES`] times and nobody has a row, it is M's own memory, or some that the kernel has chosen
//!    the place of.
//! 4. Who unmaps marks its rows *leaving*, has the kernel unmap the range, and then shortens or frees them.
//!
//! # Why it holds
//!
//! *No memory of another rank is taken*: let M be refused since the range is rank A's at that moment. A's row was open
//! before A asked the kernel, and it is freed only after A's call to unmap. The kernel's calls are in one order, A's
//! mapping before M's refusal, so M's look sees the row open or later. If M finds it open, settled or leaving to the
//! end, A is named. If M finds it free, or another's by now, A has unmapped the range since the refusal, and M asks
//! again. Only a range that changes hands as often as M asks, each time just then, would be missed.
//!
//! *Written rows need no look*: nothing has been mapped for them. *A range and its owner are of one time*: a row
//! changes its range only while it is written or leaving; M reads owner, range and owner, and begins anew if the owner
//! has changed. Range stores are releases and range loads acquires, so who reads a new range sees the owner that came
//! before it.
//!
//! *Nobody unmaps what is another's by now*: a rank's rows stay until the kernel has unmapped the range, so M, which is
//! refused before, waits for or names that rank, and takes nothing.
//!
//! `models` has loom try this with a kernel of one lock.

use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::sync::pause;

/// Ranges that are noted at most; those behind are not guarded.
const ROWS: usize = if cfg!(loom) { 3 } else { 4096 };

/// Added to the owner of a row that is not settled.
const OPEN: u32 = 1 << 31;

/// Added to that while the range is being written.
const WRITING: u32 = 1 << 30;

/// Added to the owner of a row whose range is being unmapped.
const LEAVING: u32 = 1 << 29;

/// What is left is the rank's number and one.
const WHOSE: u32 = LEAVING - 1;

/// How often a row is looked at that is not settled.
const LOOKS: usize = 10_000;

/// How often the kernel is asked for a range that it refuses and nobody has noted.
const TRIES: usize = 3;

/// One range, of the rank `owner - 1`; 0 is nobody.
struct Row {
    owner: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Row {
    fn is_apart(&self, start: usize, end: usize) -> bool {
        // They pair with the releases of `set`.
        self.end.load(Ordering::Acquire) <= start || end <= self.start.load(Ordering::Acquire)
    }

    /// By who has the row, written or leaving.
    fn set(&self, start: usize, end: usize) {
        // Whoever sees one of them sees that the row is written or leaving.
        self.start.store(start, Ordering::Release);
        self.end.store(end, Ordering::Release);
    }

    /// Whose memory this range is by this row, if it is another rank's.
    fn other(&self, rank: u32, start: usize, end: usize) -> Option<u32> {
        let mut looks = 0;
        loop {
            // Pairs with the releases of all who change it.
            let owner = self.owner.load(Ordering::Acquire);
            let whose = owner & WHOSE;
            if whose == 0 || whose == rank + 1 || owner & WRITING != 0 {
                return None;
            }
            let is_apart = self.is_apart(start, end);
            if self.owner.load(Ordering::Acquire) == owner {
                if is_apart {
                    return None;
                }
                if owner & (OPEN | LEAVING) == 0 || looks >= LOOKS {
                    return Some(whose - 1);
                }
            }
            looks += 1;
            pause();
        }
    }
}

/// The ranges of all ranks of a node, and what is told of their address space.
pub struct Claims {
    rows: [Row; ROWS],
    /// Rows behind have never been used.
    used: AtomicUsize,
    /// Bits of what has been told.
    told: AtomicU32,
}

/// A row that is not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open(usize);

/// What the kernel says to one who asks for a range that nobody may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is mapped.
    Mapped,
    /// Somebody has some of it.
    Taken,
    /// It cannot be mapped for another reason.
    Failed,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel's last answer stands.
    Answered,
    /// This rank of the node has it.
    Of(u32),
    /// Somebody has it, and no rank has noted that it chose the address.
    Unnoted,
}

impl Claims {
    /// No range.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rows: [const { Row { owner: AtomicU32::new(0), start: AtomicUsize::new(0), end: AtomicUsize::new(0) } };
                ROWS],
            used: AtomicUsize::new(0),
            told: AtomicU32::new(0),
        }
    }

    /// No range.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            rows: core::array::from_fn(|_| Row {
                owner: AtomicU32::new(0),
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
            }),
            used: AtomicUsize::new(0),
            told: AtomicU32::new(0),
        }
    }

    /// Whether a line of this number, below 32, has not been told yet. The caller tells it then. By any rank.
    pub fn tells(&self, line: u32) -> bool {
        let bit = 1 << line;
        self.told.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    fn rows(&self) -> &[Row] {
        // Pairs with the release of `begin`: a row that is open is counted.
        &self.rows[..self.used.load(Ordering::Acquire).min(ROWS)]
    }

    /// Notes a range, asks the kernel for it, and settles the row; nothing but the asking if there is no row left.
    pub fn map(&self, rank: u32, (start, end): (usize, usize), mut ask: impl FnMut() -> Answer) -> Verdict {
        let Some(open) = self.begin(rank, start, end) else {
            return match ask() {
                Answer::Taken => Verdict::Unnoted,
                _ => Verdict::Answered,
            };
        };
        for _ in 0..TRIES {
            let answer = ask();
            if answer != Answer::Taken {
                self.settle(open, answer == Answer::Mapped);
                return Verdict::Answered;
            }
            if let Some(other) = self.other(rank, start, end) {
                self.settle(open, false);
                return Verdict::Of(other);
            }
        }
        self.settle(open, false);
        Verdict::Unnoted
    }

    /// Notes that a rank is about to map this range; `None` if there is no room.
    fn begin(&self, rank: u32, start: usize, end: usize) -> Option<Open> {
        let written = (rank + 1) | OPEN | WRITING;
        let take = |row: &Row| {
            let taken = row.owner.compare_exchange(0, written, Ordering::Acquire, Ordering::Relaxed);
            taken.is_ok()
        };
        let index = self.rows.iter().position(take)?;
        self.used.fetch_max(index + 1, Ordering::AcqRel);
        let row = &self.rows[index];
        row.set(start, end);
        // Before the kernel is asked, whose calls are in one order.
        row.owner.store((rank + 1) | OPEN, Ordering::SeqCst);
        Some(Open(index))
    }

    /// The range is mapped, or is not.
    fn settle(&self, open: Open, is_mapped: bool) {
        let owner = &self.rows[open.0].owner;
        let settled = if is_mapped { owner.load(Ordering::Relaxed) & WHOSE } else { 0 };
        owner.store(settled, Ordering::Release);
    }

    /// Whether a single range of this rank holds all of that.
    #[must_use]
    pub fn covers(&self, rank: u32, start: usize, end: usize) -> bool {
        self.rows().iter().any(|row| {
            row.owner.load(Ordering::Acquire) == rank + 1
                && row.start.load(Ordering::Acquire) <= start
                && end <= row.end.load(Ordering::Acquire)
                && row.owner.load(Ordering::Acquire) == rank + 1
        })
    }

    /// Another rank that has some of that range.
    fn other(&self, rank: u32, start: usize, end: usize) -> Option<u32> {
        let mut rows = self.rows().iter();
        rows.find_map(|row| row.other(rank, start, end))
    }

    /// Unmaps a range of a rank by `unmap`, which says whether that was done.
    pub fn unmap(&self, rank: u32, range: (usize, usize), unmap: impl FnOnce() -> bool) {
        self.unmap_some(rank, range, || unmap().then_some(range));
    }

    /// Unmaps some of a range of a rank by `unmap`, which says what.
    pub fn unmap_some(&self, rank: u32, (start, end): (usize, usize), unmap: impl FnOnce() -> Option<(usize, usize)>) {
        for row in self.rows() {
            for _ in 0..LOOKS {
                let owner = row.owner.load(Ordering::Acquire);
                if owner & WHOSE != rank + 1 || owner & OPEN != 0 || row.is_apart(start, end) {
                    break;
                }
                let leaving = owner | LEAVING;
                // A row that is leaving already: another thread of the rank unmaps some of it.
                if owner & LEAVING == 0
                    && row.owner.compare_exchange(owner, leaving, Ordering::Acquire, Ordering::Relaxed).is_ok()
                {
                    break;
                }
                pause();
            }
        }
        let unmapped = unmap();
        let leaving = (rank + 1) | LEAVING;
        for row in self.rows() {
            if row.owner.load(Ordering::Acquire) != leaving || row.is_apart(start, end) {
                continue;
            }
            let unmapped = unmapped.filter(|&(start, end)| !row.is_apart(start, end));
            let is_left = unmapped.is_none_or(|unmapped| self.shorten(row, rank, unmapped));
            let owner = if is_left { rank + 1 } else { 0 };
            row.owner.store(owner, Ordering::Release);
        }
    }

    /// Takes a range out of that of a row that is leaving; whether something is left.
    fn shorten(&self, row: &Row, rank: u32, (start, end): (usize, usize)) -> bool {
        // Only this thread changes them.
        let first = row.start.load(Ordering::Relaxed);
        let last = row.end.load(Ordering::Relaxed);
        match (start <= first, last <= end) {
            (true, true) => return false,
            (true, false) => row.set(end, last),
            (false, true) => row.set(first, start),
            (false, false) => {
                if let Some(open) = self.begin(rank, end, last) {
                    self.settle(open, true);
                }
                row.set(first, start);
            }
        }
        true
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;

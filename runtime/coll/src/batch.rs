//! Where members begin nonblocking collectives of a few bytes without waiting for each other.
//!
//! The operations of a communicator meet in *rows*, [`ROWS`] of which are a batch. Batches form a chain
//! ([`crate::meeting`]): the *n*-th operation of each member belongs to the *n*-th row, and its memory is made once for
//! all operations of the batch. A row is used once, so nobody waits for room in it.
//!
//! # One row
//! Each member has an entry in the row: a word and a few bytes of data.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | the member has not come |
//! | [`SMALL`], and what all must agree on | its data is in the entry, or where the entry says (`long`) |
//! | [`LARGE`], and the kind of operation | it waits at the row's own meeting, as all do for larger operations |
//!
//! ```text
//! member that posts                      member that awaits posts
//! P1 writes its data
//! P2 entry.word = SMALL | ... (Release)  A1 sees the word (Acquire)
//! P3 fence, or a light barrier           A2 reads the data
//! P4 wakes whom it may have to
//! ```
//! * An entry is written once, so A1 pairs with P2 and A2 reads what P1 wrote.
//! * Who wakes whom is as in [`crate::board`], with its proof: the last of a full fence between P2 and a look at all
//!   words.
//!
//! # Members that disagree
//! MPI demands that all members pass equally many bytes, so all are small or none is. In a wrong program they may not
//! agree. Where each awaits the posts of all, all that are small see a word [`LARGE`]; they come to the row's meeting
//! with nothing, for the others' sake, and fail. Where a root alone gives data, its word is a choice: a member that is
//! large puts [`LARGE`] there before it goes to the meeting, the root its post, and both by a swap of 0. So either the
//! root comes to the meeting too, or all take what it has posted.
//!
//! A sender of a small reduce or gather leaves when it has posted, and comes to no meeting, where members wait that are
//! large. So either they or it find that out, and one *stands in* for it there: comes with nothing, in its place.
//!
//! ```text
//! sender                                  member that is large
//! S1 entry.word = SMALL | ...             X1 comes to the meeting, own entry.word = LARGE | ...
//! S2 fence                                X2 fence
//! S3 a word with LARGE? stands in         X3 words of senders that have left? stands in
//! ```
//! * Of S3 and X3 at least one sees the other's word, whoever the member is, since the fences are between the stores
//!   and the looks. Where both do, or several members, the one stands in that adds [`STOOD_IN`] to the sender's word.
//! * There is a meeting for S3, since X1 makes it first. A member that chooses [`LARGE`] for a root's entry has not
//!   come to the meeting yet: if there is none, the sender goes, and that member does X3 later.
//!
//! # Blocks of any length
//! Here a right program has members that are small beside others that are large, since none knows what all give. Then
//! every member that is small is stood in for, by S3 or X3, with the data that it has posted and with the arguments
//! that it keeps beside them (`long`), also one that stays. So the meeting gets all its members by the calls that begin
//! the operation alone, and who stays finds [`STOOD_IN`] at its own entry, or puts it there, and waits for the end of
//! the meeting. Nobody comes to it from such a row but by that mark: a member comes once.
//! * Data and arguments of a member that stays are there until the meeting is over, as its own operation is. A sender's
//!   are not, so they are copied by whoever comes for it.

use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering, fence};
use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// Operations of a batch.
pub(crate) const ROWS: usize = 8;

/// Bytes that an entry carries.
pub(crate) const ROOM: usize = 48;

/// Alignment of memory beside entries.
pub(crate) const SIDE_ALIGN: usize = 64;

/// Mark of a word of a member whose data is in its entry.
pub(crate) const SMALL: u64 = 1;

/// Mark of a word of a member that waits at the row's meeting.
pub(crate) const LARGE: u64 = 2;

/// Mark beside [`SMALL`]: somebody comes to the row's meeting in the member's place, since it has left, or since it has
/// posted in an operation of blocks of any length.
pub(crate) const STOOD_IN: u64 = 4;

/// What one member posts in one row: a cache line, and memory of the batch's for longer data. All-zero memory is one of
/// a member that has not come.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Entry {
    word: AtomicU64,
    /// Where the data is, if it is longer than the entry; and what the member keeps for others, behind it or alone.
    long: UnsafeCell<*mut u8>,
    data: UnsafeCell<[u64; ROOM / 8]>,
}

/// One member's part of a batch: an entry for each row, and what else it needs.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Lane<O> {
    entries: [Entry; ROWS],
    rest: CacheLine<O>,
}

// SAFETY: entries are lent to one writer and then to readers.
unsafe impl Sync for Entry {}
// SAFETY: as above.
unsafe impl Send for Entry {}

impl Entry {
    /// P1 and P2: posts what `fill` writes, with a word that is not 0: at most [`ROOM`] bytes, or what `long` has room
    /// for.
    ///
    /// # Safety
    /// The caller is the member, which has not posted in this row. Who reads the data finds it at `long` until then.
    #[inline]
    pub(crate) unsafe fn post(&self, word: u64, long: Option<NonNull<u8>>, fill: impl FnOnce(*mut u8)) {
        // SAFETY: the caller's promise.
        unsafe { self.write(long, fill) };
        self.word.store(word, Ordering::Release);
    }

    /// P1.
    ///
    /// # Safety
    /// As for [`Entry::post`].
    #[inline(always)]
    unsafe fn write(&self, long: Option<NonNull<u8>>, fill: impl FnOnce(*mut u8)) {
        match long {
            None => fill(self.data.get().cast()),
            Some(long) => {
                // SAFETY: nobody reads before P2.
                unsafe { *self.long.get() = long.as_ptr() };
                fill(long.as_ptr());
            }
        }
    }

    /// Before P1: where others find what the member keeps for them, beside data that is in the entry.
    ///
    /// # Safety
    /// As for [`Entry::post`].
    pub(crate) unsafe fn keep(&self, long: NonNull<u8>) {
        // SAFETY: nobody reads before P2.
        unsafe { *self.long.get() = long.as_ptr() };
    }

    /// Where data of at most [`ROOM`] bytes will be.
    pub(crate) fn room(&self) -> *mut u8 {
        self.data.get().cast()
    }

    /// What [`Entry::keep`] was told, behind the member's word.
    pub(crate) fn kept(&self) -> *mut u8 {
        // SAFETY: the member wrote it before its word.
        unsafe { *self.long.get() }
    }

    /// Puts a word there that says that the member has no data here.
    pub(crate) fn mark(&self, word: u64) {
        self.word.store(word, Ordering::Release);
    }

    /// The same as [`Entry::post`] of a root: `false` if another member has chosen [`LARGE`].
    ///
    /// # Safety
    /// As for [`Entry::post`].
    #[inline]
    pub(crate) unsafe fn post_unless_large(
        &self,
        word: u64,
        long: Option<NonNull<u8>>,
        fill: impl FnOnce(*mut u8),
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.write(long, fill) };
        self.choose(word)
    }

    /// Chooses a word with [`LARGE`] at the root's entry; `false` if the root has posted.
    pub(crate) fn choose_large(&self, word: u64) -> bool {
        // Mostly somebody has, and to look takes no locked instruction.
        self.word() & LARGE != 0 || self.choose(word) || self.word() & LARGE != 0
    }

    /// Puts a word there if there is none.
    #[inline]
    fn choose(&self, word: u64) -> bool {
        let swap = (self.word).compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
        swap.is_ok()
    }

    /// S3 and X3: whether the caller is the one that comes to the meeting in the place of the member, which has posted.
    pub(crate) fn stand_in(&self) -> bool {
        let word = self.word();
        let swap = |to| (self.word).compare_exchange(word, to, Ordering::AcqRel, Ordering::Relaxed);
        word & (SMALL | STOOD_IN) == SMALL && swap(word | STOOD_IN).is_ok()
    }

    /// A1: the word, or 0.
    #[inline]
    pub(crate) fn word(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }

    /// A2: where the data is, of so many bytes, behind a word with [`SMALL`].
    #[inline]
    pub(crate) fn data(&self, bytes: u64) -> *const u8 {
        match bytes <= ROOM as u64 {
            true => self.data.get().cast(),
            // SAFETY: the member wrote it before its word.
            false => unsafe { *self.long.get() },
        }
    }
}

impl<O> Lane<O> {
    /// The member's entry in a row.
    #[inline]
    pub(crate) fn entry(&self, row: usize) -> &Entry {
        &self.entries[row]
    }

    /// What it has besides entries.
    #[inline]
    pub(crate) fn rest(&self) -> &O {
        &self.rest
    }
}

/// P3 of a member of three or more, and whether it sees the posts of all.
#[inline]
pub(crate) fn is_last<'a>(mut entries: impl Iterator<Item = &'a Entry>) -> bool {
    fence(Ordering::SeqCst);
    entries.all(|it| it.word() != 0)
}

#[cfg(test)]
mod tests;

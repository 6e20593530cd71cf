//! Prefixes that members of a scan leave beside their operands, for those behind them.
//!
//! Where ranks outnumber CPUs, members of a scan mostly come one after the other. Who comes when the member before it
//! has completed the round takes its prefix, and looks at one entry in place of one for each member before it. Who
//! comes sooner folds operands, from the last prefix that is there on. Either way the fold goes from the first operand
//! to the last one, and gives the same bits.
//!
//! Of an operand of at most [`PREFIXED_MAX`] bytes the entry has, one behind the other: the operand, in whole words; a
//! word that says whether there is a prefix; the prefix. The owner writes the last two between its post and
//! its completion of the round (Release), so who finds the round completed (Acquire) may read them, and nobody reads
//! them before. All members of a crowded group post so, whatever their operation, and the label and the length in the
//! entry say that this is such a post. There is no prefix at a member that has found operands of different lengths.
//! Members whose operand is longer sleep until they are told of posts: where some do, who posts tells them.

use super::{Round, has_completed};
use crate::members::{Entry, INLINE};
use crate::picture::Deed;
use cohort_datatype::{Buffer, pack};

const WORD: usize = size_of::<u64>();

/// Longest operand that has room for a prefix beside it, in whole words.
pub(crate) const PREFIXED_MAX: u64 = ((INLINE - WORD) / 2 / WORD * WORD) as u64;

/// What a member has left: the fold of its operand and those before it.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    pub(crate) member: usize,
    pub(crate) prefix: *const u8,
}

impl Round<'_> {
    /// Posts an operand of at most [`PREFIXED_MAX`] bytes. [`Round::leave_prefix`] follows, unless the caller is the
    /// last member.
    pub(crate) fn post_operand(&self, operand: &Buffer<'_>) {
        let bytes = operand.bytes();
        debug_assert!(bytes <= PREFIXED_MAX);
        // SAFETY: the entry has room for INLINE bytes.
        self.publish(self.inline(bytes, |out| unsafe {
            pack(*operand, 0, out, bytes);
        }));
    }

    /// What `member` has left, of operands of so many bytes.
    fn left_by(&self, member: usize, bytes: usize) -> Option<Left> {
        if !has_completed(&self.slots[member], self.round) || !self.has_posted(member) {
            return None;
        }
        let entry = self.slots[member].made_entry(self.round);
        // SAFETY: the member has posted and completed, and overwrites its entry when this one has completed the round
        // too; what bears this label and this length is such a post.
        unsafe {
            if *entry.form.get() != self.label().with(bytes as u64) {
                return None;
            }
            let left = behind(entry, bytes);
            (left.read() != 0).then(|| Left { member, prefix: left.add(1).cast_const().cast() })
        }
    }

    /// At any member but the first: what the last one before the caller has left that has left a prefix. Waits for the
    /// operands of all before the caller, unless that is the one just before it. Who posts wakes nobody: the caller is
    /// woken when a member has completed the round, which none does that waits for the caller.
    pub(crate) fn await_left(&self, bytes: usize) -> Option<Left> {
        let before = self.me() - 1;
        let mut left = self.left_by(before, bytes);
        if left.is_some() {
            return left;
        }
        let mut missing = (0..=before).rev().peekable();
        let mut done = || {
            while missing.next_if(|&member| self.has_posted(member)).is_some() {}
            if missing.peek().is_none() {
                return true;
            }
            left = self.left_by(before, bytes);
            left.is_some()
        };
        if !self.spin(&mut done) {
            self.sleep_as_watcher(&self.mine().awaits.posts, self.awaited(Deed::Begin, None), done);
        }
        left.or_else(|| (0..=before).rev().find_map(|member| self.left_by(member, bytes)))
    }

    /// Leaves the prefix that `fold` makes of the caller's posted operand, of so many bytes, in a place of as many;
    /// `None`: there is none.
    pub(crate) fn leave_prefix(&self, bytes: usize, fold: Option<impl FnOnce(*const u8, *mut u8)>) {
        let entry = self.mine().made_entry(self.round);
        // SAFETY: the entry has room behind the operand, which nobody reads before the caller completes the round.
        unsafe {
            let left = behind(entry, bytes);
            left.write(u64::from(fold.is_some()));
            if let Some(fold) = fold {
                fold(entry.data.get().cast(), left.add(1).cast());
            }
        }
    }
}

/// The word behind an operand of so many bytes, at most [`PREFIXED_MAX`].
fn behind(entry: &Entry, bytes: usize) -> *mut u64 {
    debug_assert!(bytes as u64 <= PREFIXED_MAX);
    entry.data.get().cast::<u64>().wrapping_add(bytes.div_ceil(WORD))
}

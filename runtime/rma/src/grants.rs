//! How epochs of two members match, and who hears of it: counters whose openings are counted.
//!
//! Epochs match by counting (the paper on nonblocking epochs, section VII-B): the *n*-th access
//! epoch of A towards B belongs to the *n*-th exposure epoch of B towards A, however many of either
//! are pending. So an epoch knows, when it is activated, which opening of which [`GrantCounter`] it
//! waits for: the triple `<a, e, g>` is A's count of accesses, B's count of exposures, and what the
//! counter counts. A counter belongs to one member, who waits at it, and is opened by one other; it
//! remembers openings, so one that comes long before it is asked for is not lost.
//!
//! # Late targets
//! A waiting member may compute. Whoever opens a counter then calls a worker or the member's
//! helper, but only if somebody can do something (*SmartInterrupts*, section 4.2). A target is
//! *late at opening* if it was asked for access and has not granted it, and *late for transfer* if
//! by then the epoch has something to ship to it: an operation, or word of its end. The number of
//! the last opening that a member is late for is its counter's `wanted`. With `n` target epochs
//! asked for, `m` of them late for transfer and `k` late at opening only:
//!
//! * **G0** at most `n` calls: each opening has a number of its own, and calls once at most;
//! * **G1** `m` targets that open before help comes need `m` calls less: an opening takes its
//!   number away from `wanted - opened`, in constant time, whoever notices it;
//! * **G2** at most `k` calls in vain: none, here, for the numbers of targets that are late at
//!   opening only lie behind `wanted`;
//! * **G3** no call in vain if no help is needed: then no number up to `wanted` is left.
//!
//! Debug builds check this after every sweep (`late.rs`).
//!
//! # Nothing is missed
//! ```text
//! owner, under its claim          opener
//! W1 store `wanted`               O1 add 1 to `opened` (Release)
//! W2 fence                        O2 fence
//! W3 load `opened` (Acquire)      O3 load `wanted`
//! ```
//! Both fences are sequentially consistent. If W2 comes first, O3 sees W1 and the opener calls; else W3 sees O1
//! and the owner goes on by itself. What the opener did before O1 is visible after W3.

use alloc::alloc::{alloc_zeroed, handle_alloc_error};
use alloc::boxed::Box;
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering, fence};
use core::alloc::Layout;

/// See the module page.
#[derive(Default)]
pub(super) struct GrantCounter {
    opened: AtomicU64,
    wanted: AtomicU64,
}

impl GrantCounter {
    /// Opens the counter once more. Says whether its owner is late for this opening, and may need to be called.
    #[must_use]
    pub(super) fn open(&self) -> bool {
        let number = self.opened.fetch_add(1, Ordering::Release) + 1;
        self.is_awaited(number)
    }

    /// Opens the counter as often as it takes to this number. Of several that do so at once, one at
    /// most hears that the owner is late for it.
    #[must_use]
    pub(super) fn open_to(&self, number: u64) -> bool {
        self.opened.fetch_max(number, Ordering::Release) < number && self.is_awaited(number)
    }

    fn is_awaited(&self, number: u64) -> bool {
        fence(Ordering::SeqCst);
        self.is_wanted(number)
    }

    /// Whether the counter was opened this many times.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.opened.load(Ordering::Acquire) >= number
    }

    /// The owner is late for this opening, and all before it; says how many numbers that adds. It passes a sequentially
    /// consistent fence, and looks at [`GrantCounter::is_open`] again. Under the owner's claim.
    pub(super) fn want(&self, number: u64) -> u64 {
        // Relaxed: the owner alone writes it.
        let before = self.wanted.load(Ordering::Relaxed);
        if number > before {
            self.wanted.store(number, Ordering::Relaxed);
        }
        number.saturating_sub(before)
    }

    /// Whether the owner has said that it is late for this opening.
    pub(super) fn is_wanted(&self, number: u64) -> bool {
        // Relaxed: openers have passed their fence, and the owner wrote it itself.
        self.wanted.load(Ordering::Relaxed) >= number
    }
}

/// What one other member tells a member.
#[derive(Default)]
pub(super) struct Pair {
    /// Exposure epochs that the other one has opened for the owner.
    pub(super) granted: GrantCounter,
    /// Locks of the other one's that the owner was granted.
    pub(super) locked: GrantCounter,
    /// Access epochs towards the owner that the other one has ended.
    pub(super) ended: GrantCounter,
}

impl Pair {
    /// Those of so many members. Most pairs of members of a large window never meet, so nothing is written.
    pub(super) fn untouched(members: usize) -> Box<[Self]> {
        // SAFETY: counters are valid when all their bytes are zero.
        unsafe { zeroed(members) }
    }
}

/// So many values of zero bytes. Of very many, the memory comes as the kernel gives it, and what nobody touches costs
/// nothing.
///
/// # Safety
/// They are valid then.
pub(crate) unsafe fn zeroed<T>(count: usize) -> Box<[T]> {
    let layout = Layout::array::<T>(count).expect("a table fits in memory");
    if layout.size() == 0 {
        return Box::new([]);
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) }.cast::<T>();
    if start.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: allocated with the layout of such a slice, and valid by the caller's promise.
    unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(start, count)) }
}

/// Arrivals at fences, of some parties that all arrive at each.
///
/// A party arrives at fence *n* when the operations before it are done and it has passed fence *n -
/// 1*; so *n* times the parties have arrived in total exactly when all have arrived at fence *n*.
pub(super) struct Arrivals {
    count: CacheLine<AtomicU64>,
    parties: u64,
}

impl Arrivals {
    pub(super) fn of(parties: u64) -> Self {
        Self { count: CacheLine(AtomicU64::new(0)), parties }
    }

    /// Counts an arrival at a fence; says whether it was the last one.
    pub(super) fn arrive(&self, fence: u64) -> bool {
        // Release: what the party did before. Acquire: the last one speaks for all.
        self.count.fetch_add(1, Ordering::AcqRel) + 1 == fence * self.parties
    }

    /// Whether all parties have arrived at a fence.
    pub(super) fn have_passed(&self, fence: u64) -> bool {
        self.count.load(Ordering::Acquire) >= fence * self.parties
    }

    /// The last fence that all parties have arrived at; `u64::MAX` without parties.
    pub(super) fn last_passed(&self) -> u64 {
        let arrived = self.count.load(Ordering::Acquire);
        arrived.checked_div(self.parties).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;

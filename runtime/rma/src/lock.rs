//! The lock of one window at one member: fair, for readers and writers, and without a holder of its own.
//!
//! Nobody waits inside. A request takes a *ticket*; whoever changes the lock afterwards grants as many
//! tickets as it can, in their order, and tells the requesters. So the lock passes on while its
//! next holder computes.
//!
//! # Protocol
//! ```text
//! request                         release                        advance, by both
//! Q1 take a ticket                L1 take the holder out of      A1 load the state: head, holders
//! Q2 publish it in the queue         the state                   A2 load the entry of head
//! Q3 advance                      L2 load the tail: if it is     A3 published and compatible: swap the state to
//!                                    beyond the head, advance       the next head with one holder more; again
//! ```
//! Who finds nobody waiting, by head and tail, and no holder in its way does without a ticket
//! ([`FairLock::try_now`]): it swaps the state to the same head with one holder more.
//!
//! * **Fair.** Only the ticket at the head is granted, so nobody overtakes but who has not seen a ticket that was
//!   taken just now. Readers that follow each other hold the lock together.
//! * **Exclusive.** A3 grants a writer only if the state that it swaps has no holder, and a reader only
//!   if it has no writer; so does the swap without a ticket.
//! * **Nothing is lost.** `advance` begins with a sequentially consistent fence, behind Q2 or L1.
//!   If it stops at A1 because of a holder, it has not seen that holder's L1, so its fence comes
//!   before the holder's, and the holder's A2 sees the entry. If it stops at A2 because the head's
//!   entry is not published, it likewise comes before that requester's `advance`, which grants the
//!   head and then sees the entries behind it. L1 and L2 are sequentially consistent: if L2 does not see Q1, then L1
//!   comes before L2, and L2 before the fence of that requester's `advance`, which so sees L1. A holder without a
//!   ticket is a holder like any other: an A3 that it disturbs looks at the state again, and its release advances.
//! * **Entries last long enough.** A requester has one ticket at a time that is not granted, so at
//!   most as many as there are requesters lie between head and tail, which is what the queue has
//!   room for. An `advance` that reads a later entry in its place sees another ticket, or its swap
//!   fails.
//! * **Tickets may begin anew.** They count to 2^40, which is a day of locking as fast as memory allows, and then from
//!   0 on. A requester that does not look while half as many others are granted would take its own for one
//!   that is to come.
//! * A ticket is granted as soon as the head has passed it ([`FairLock::is_granted`], Acquire): what earlier
//!   holders wrote before L1 (Release) is then visible, as every change of the state is a read-modify-write.

use alloc::boxed::Box;
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicU64, Ordering, fence};

/// Bits below the ticket of a state or an entry.
const LOW_BITS: u32 = 24;

/// The state: readers, whether there is a writer, and above them the next ticket to grant.
const WRITER: u64 = 1 << (LOW_BITS - 1);
const HOLDERS: u64 = (1 << LOW_BITS) - 1;

/// An entry: requester, whether it writes, and above them the ticket.
const EXCLUSIVE: u64 = 1 << (LOW_BITS - 1);

/// The largest ticket.
const LAST: u64 = u64::MAX >> LOW_BITS;

/// Tickets begin here, so that an empty entry is none.
const FIRST: u64 = 1;

/// Requesters that a lock may have, and so members of a window.
const REQUESTERS_MAX: u32 = EXCLUSIVE as u32;

/// See the module page.
pub(crate) struct FairLock {
    state: CacheLine<AtomicU64>,
    /// Tickets so far; of it only what a ticket has room for.
    tail: CacheLine<AtomicU64>,
    queue: Box<[AtomicU64]>,
}

/// A queue of so many entries that nobody has used. Few members of a large window ever ask.
#[cfg(not(loom))]
fn empty_queue(room: usize) -> Box<[AtomicU64]> {
    // SAFETY: such an entry is 0.
    unsafe { crate::grants::zeroed(room) }
}

#[cfg(loom)]
fn empty_queue(room: usize) -> Box<[AtomicU64]> {
    (0..room).map(|_| AtomicU64::new(0)).collect()
}

impl FairLock {
    /// A lock nobody holds, for this many requesters.
    pub(crate) fn new(requesters: u32) -> Self {
        assert!(requesters < REQUESTERS_MAX, "too many members of a window");
        let room = requesters.max(1).next_power_of_two();
        Self {
            state: CacheLine(AtomicU64::new(FIRST << LOW_BITS)),
            tail: CacheLine(AtomicU64::new(FIRST)),
            queue: empty_queue(room as usize),
        }
    }

    /// As if so many tickets, many more than there are requesters, had been granted and given back.
    #[cfg(all(test, not(loom)))]
    fn skip(&self, tickets: u64) {
        let end = self.tail.fetch_add(tickets, Ordering::Relaxed) + tickets;
        for ticket in end.saturating_sub(self.queue.len() as u64)..end {
            let entry = ticket << LOW_BITS;
            self.entry(ticket).store(entry, Ordering::Relaxed);
        }
        self.state.fetch_add(tickets << LOW_BITS, Ordering::Relaxed);
    }

    fn entry(&self, ticket: u64) -> &AtomicU64 {
        &self.queue[ticket as usize & (self.queue.len() - 1)]
    }

    /// Takes the lock without a ticket if nobody waits for it and no holder is in the way; says whether it did.
    #[inline(always)]
    pub(crate) fn try_now(&self, exclusive: bool) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        // Relaxed: a ticket that is not seen is overtaken, once.
        let tail = self.tail.load(Ordering::Relaxed);
        // The holders of a lock for which nobody waits, and else more than that.
        let holders = (tail << LOW_BITS) ^ state;
        let (hinder, holder) = match exclusive {
            true => (1, WRITER),
            false => (WRITER, 1),
        };
        // Acquire pairs with the Release of earlier holders, as every change of the state is a read-modify-write.
        holders < hinder
            && self.state.compare_exchange(state, state + holder, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Asks for the lock, and grants what can be granted: `granted` hears of each requester. A requester has one
    /// ticket at a time.
    pub(crate) fn request(&self, requester: u32, exclusive: bool, granted: impl FnMut(u32)) -> u64 {
        let ticket = self.tail.fetch_add(1, Ordering::Relaxed) & LAST;
        let kind = if exclusive { EXCLUSIVE } else { 0 };
        let entry = ticket << LOW_BITS | kind | u64::from(requester);
        // Release pairs with the Acquire of A2.
        self.entry(ticket).store(entry, Ordering::Release);
        self.advance(granted);
        ticket
    }

    /// Whether the holder of this ticket has the lock, or had it.
    pub(crate) fn is_granted(&self, ticket: u64) -> bool {
        let head = self.state.load(Ordering::Acquire) >> LOW_BITS;
        // As signed numbers of a ticket's width.
        (head.wrapping_sub(ticket) << LOW_BITS).cast_signed() > 0
    }

    /// Gives the lock back. By a holder, once. `true`: somebody waits, and the caller
    /// [advances](FairLock::advance).
    #[inline(always)]
    #[must_use]
    pub(crate) fn release(&self, exclusive: bool) -> bool {
        let holder = if exclusive { WRITER } else { 1 };
        // SeqCst, both: see the module page.
        let state = self.state.fetch_sub(holder, Ordering::SeqCst) - holder;
        // Loom has a total order of fences, but none of accesses.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        let tail = self.tail.load(Ordering::SeqCst);
        (tail << LOW_BITS) ^ state > HOLDERS
    }

    /// Grants what can be granted: `granted` hears of each requester.
    pub(crate) fn advance(&self, mut granted: impl FnMut(u32)) {
        fence(Ordering::SeqCst);
        loop {
            let state = self.state.load(Ordering::Acquire);
            let head = state >> LOW_BITS;
            let entry = self.entry(head).load(Ordering::Acquire);
            if entry >> LOW_BITS != head {
                return;
            }
            let exclusive = entry & EXCLUSIVE != 0;
            let hinders = if exclusive { HOLDERS } else { WRITER };
            if state & hinders != 0 {
                return;
            }
            let holders = (state & HOLDERS) + if exclusive { WRITER } else { 1 };
            // The bit that leaves a ticket's width is shifted out.
            let next = (head + 1) << LOW_BITS | holders;
            let swapped = self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed);
            if swapped.is_ok() {
                granted((entry & (EXCLUSIVE - 1)) as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests;

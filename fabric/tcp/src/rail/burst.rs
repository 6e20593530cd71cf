//! Short packets that follow each other quickly go together.
//!
//! A system call for each packet takes longer than all else of it: a program that starts many sends, one after the
//! other, would pass a packet to the system every few microseconds. So from the fifth short packet on to one node, with
//! nothing but such sends in between and each soon after the one before, they are *left* for a common call
//! ([`cohort_base::combine`]): by whoever looks next, which is the sender itself as soon as it waits, by the sender
//! when they are many, and at the latest by the connector, which is woken for the first and comes a little later.
//! Programs that send a few packets and then wait, or compute between their sends, see no difference.

use cohort_base::clock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Packets of a burst that are written at once.
const AT_ONCE: u32 = 4;

/// Longest time between two packets of a burst, in microseconds.
const GAP_US: u64 = 3;

/// Bytes that are left at most before their sender writes them.
pub const LEFT_MAX: usize = 16 << 10;

/// The burst of a rail. Hints only: several ranks may write it at the same time.
#[derive(Debug, Default)]
pub struct Burst {
    /// The node, and how many packets were sent to it: high and low half.
    count: AtomicU64,
    /// When the last one was sent, in ticks.
    last: AtomicU64,
}

impl Burst {
    /// Whether short packets to this node are to be left for a common call.
    #[must_use]
    pub fn goes_on(&self, node: u32) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        let since = clock::ticks().wrapping_sub(self.last.load(Ordering::Relaxed));
        (count >> 32) as u32 == node && count as u32 >= AT_ONCE && since <= clock::ticks_of_us(GAP_US)
    }

    /// Packets were sent to this node, or left.
    pub fn sent(&self, node: u32, packets: usize) {
        let (count, last) = (self.count.load(Ordering::Relaxed), self.last.load(Ordering::Relaxed));
        let now = clock::ticks();
        let is_next = (count >> 32) as u32 == node && now.wrapping_sub(last) <= clock::ticks_of_us(4 * GAP_US);
        let before = if is_next { count as u32 } else { 0 };
        let count = u64::from(node) << 32 | u64::from(before.saturating_add(packets as u32));
        self.count.store(count, Ordering::Relaxed);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Somebody has looked.
    pub fn end(&self) {
        if self.count.load(Ordering::Relaxed) != 0 {
            self.count.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_to_one_node_and_ends_with_a_look() {
        let burst = Burst::default();
        assert!(!burst.goes_on(0));
        // A slow machine may end it before it is seen.
        let is_seen = (0..1000).any(|_| {
            burst.end();
            (0..AT_ONCE).for_each(|_| burst.sent(7, 1));
            let goes_on = burst.goes_on(7);
            assert!(!burst.goes_on(8));
            goes_on
        });
        assert!(is_seen);
        burst.end();
        assert!(!burst.goes_on(7));
        burst.sent(7, AT_ONCE as usize);
        burst.sent(8, 1);
        assert!(!burst.goes_on(7) && !burst.goes_on(8));
    }
}

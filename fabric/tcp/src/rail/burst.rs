//! Packets that follow each other quickly go together, if they are not [long](super::submitted::COPY_MAX).
//!
//! A system call for each packet takes longer than all else of it: a program that starts many sends, one after the
//! other, would pass a packet to the system every few microseconds. So from the fifth packet on to a node, with
//! nothing but such sends in between and each soon after the one before, they are *left* for a common call
//! ([`cohort_base::combine`]): by whoever looks next, which is the sender itself as soon as it waits, by the sender
//! when they are many, and at the latest by the connector, which is woken for the first and comes a little later.
//! Sends to several nodes in turn, as those of a broadcast's root, are one burst. Programs that send a few packets and
//! then wait, or compute between their sends, see no difference.

use cohort_base::clock;
use cohort_fabric::LocalRank;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Packets of a burst to one node that are written at once.
const AT_ONCE: u32 = 4;

/// Longest time between a packet and one that is left behind it, in microseconds.
const GAP_US: u64 = 3;

/// Longest time between two packets of a burst, in microseconds: its sender may have lost its CPU in between.
const PAUSE_US: u64 = 100;

/// Bytes that are left at most before their sender writes them, for all nodes: several packets for each.
pub const LEFT_MAX: usize = 96 << 10;

/// Nodes whose packets are counted at the same time. Of two that share a place the last one alone is.
const NODES: usize = 16;

/// The burst of a rail. Hints only: several ranks may write it at the same time.
#[derive(Debug, Default)]
pub struct Burst {
    /// When the last packet was sent, in ticks; 0 if there is no burst.
    last: AtomicU64,
    /// Who sent it.
    sender: AtomicU32,
    /// A node, and how many packets were sent to it: high and low half.
    counts: [AtomicU64; NODES],
}

impl Burst {
    /// Whether packets to this node are to be left for a common call.
    #[must_use]
    pub fn goes_on(&self, node: u32) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        last != 0 && self.count(node) >= AT_ONCE && clock::ticks().wrapping_sub(last) <= clock::ticks_of_us(GAP_US)
    }

    /// Packets of this rank were sent to this node, or left.
    pub fn sent(&self, sender: LocalRank, node: u32, packets: usize) {
        let now = clock::ticks();
        let last = self.last.swap(now, Ordering::Relaxed);
        if last == 0 || now.wrapping_sub(last) > clock::ticks_of_us(PAUSE_US) {
            self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        }
        let count = self.count(node).saturating_add(packets as u32);
        self.place(node).store(u64::from(node) << 32 | u64::from(count), Ordering::Relaxed);
        self.sender.store(sender, Ordering::Relaxed);
    }

    /// This rank looks. A look of another one than the last sender ends nothing: it waits for something else.
    pub fn end(&self, rank: LocalRank) {
        if self.last.load(Ordering::Relaxed) != 0 && self.sender.load(Ordering::Relaxed) == rank {
            self.last.store(0, Ordering::Relaxed);
        }
    }

    fn place(&self, node: u32) -> &AtomicU64 {
        &self.counts[node as usize % NODES]
    }

    /// Packets that were sent to a node.
    fn count(&self, node: u32) -> u32 {
        let count = self.place(node).load(Ordering::Relaxed);
        if (count >> 32) as u32 == node { count as u32 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow machine may end a burst before it is seen: so it is tried many times.
    fn is_seen(attempt: impl Fn() -> bool) -> bool {
        (0..1000).any(|_| attempt())
    }

    #[test]
    fn a_burst_ends_with_its_senders_look() {
        let burst = Burst::default();
        assert!(!burst.goes_on(0));
        assert!(is_seen(|| {
            burst.end(0);
            (0..AT_ONCE).for_each(|_| burst.sent(0, 7, 1));
            // Another rank waits for something.
            burst.end(1);
            let goes_on = burst.goes_on(7);
            assert!(!burst.goes_on(8));
            goes_on
        }));
        burst.end(0);
        assert!(!burst.goes_on(7));
        // It begins anew.
        burst.sent(0, 7, 1);
        assert!(!burst.goes_on(7));
    }

    #[test]
    fn sends_to_nodes_in_turn_are_one_burst() {
        let burst = Burst::default();
        assert!(is_seen(|| {
            burst.end(0);
            for _ in 0..AT_ONCE {
                for node in 1..4 {
                    assert!(!burst.goes_on(node));
                    burst.sent(0, node, 1);
                }
            }
            (1..4).all(|node| burst.goes_on(node))
        }));
        // A node that shares the place of another one counts for itself.
        burst.sent(0, 1 + NODES as u32, 1);
        assert!(!burst.goes_on(1) && !burst.goes_on(1 + NODES as u32));
    }
}

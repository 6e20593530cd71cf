//! Whether a job of several nodes can go on: what nodes say at different moments, and what follows from it.
//!
//! # States
//! A node *rests* if each of its ranks has ended or sleeps for good (`NodeApi::rest`); a number of each rest grows with
//! each sleep and wake-up. A packet between nodes is *on its way* from the moment at which its sender's rank counts it
//! as sent, when the transport takes it, to the moment at which its receiver's rank counts it as received, when the
//! engine handles it. In between it may be anywhere: in the sender's transport, in a kernel, on a link that stalls, in
//! mail for a rank. Acknowledgements, credits, offers, the data of rendezvous and of one-sided operations are packets
//! like all others; reads out of another node's memory are under way at the rank that reads, which says so.
//!
//! # Protocol
//! ```text
//! 1  the asker learns all rests, again and again, until the same have lasted for COHORT_DEADLOCK_AFTER
//! 2  each node reads its rests, then looks at each rank in full (what it waits for, what it has sent and received,
//!    whether something of it is under way), then reads its rests again: they are the same
//! 3  when all nodes have answered 2, each node reads its rests once more: they are the same
//! ```
//!
//! # Why there is no false alarm
//! Let T be a moment between the last answer to 2 and the first question of 3. Each node rested at a moment before T
//! and at one behind it, with the same numbers. So all of its ranks slept in between, also at T, and nobody of that
//! node sent or handled a packet there. Its counts were read in that interval, so they are those at T. All counts are
//! of the same moment then, and that the sums are equal means that no packet was on its way at T (a packet is counted
//! as sent before it is counted as received, and both once). So at T all tasks of all nodes slept, nothing was on its
//! way to wake one, and by the full look each waits for other ranks only. What follows from this within a node is in
//! `docs/insight.md`.
//!
//! This is Mattern's four-counter method (*Algorithms for distributed termination detection*, 1987) with a stronger
//! condition: not only the counts of two waves are the same, but nobody was awake between them, so one wave of counts
//! is enough. Where the sums differ for ever (a packet to a rank that has ended), nobody is accused.
//!
//! A node that does not answer (it is stopped, its link stalls) ends the attempt; so does one that has ended, whose
//! counts nobody knows. A rank that has ended keeps its counts, and nobody is accused while they cannot be read, except
//! in a job of one node, where nothing is on its way.
//!
//! `model.rs` tries all orders of steps of two and three nodes, and that the proof needs each of its parts.

use cohort_base::boot::Rest;

/// The rests of a node's ranks; `None` in the place of one that has ended.
pub type Rests = Vec<Option<Rest>>;

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its rests; `None`: a rank is awake.
    pub rests: Option<Rests>,
    /// Packets that its ranks have sent, and received, if a full look says that no rank can go on by itself; only step
    /// 2 asks for it.
    pub packets: Option<[u64; 2]>,
}

/// All nodes' rests together, in the order of the nodes; `None` if a rank is awake, or all have ended.
#[must_use]
pub fn together(all: &[Said]) -> Option<Rests> {
    let rests = all.iter().map(|said| said.rests.clone());
    let rests: Vec<Rests> = rests.collect::<Option<_>>()?;
    let rests = rests.concat();
    rests.iter().any(Option::is_some).then_some(rests)
}

/// Whether step 2 has found no rank that can go on, and nothing on its way.
#[must_use]
pub fn is_silent(all: &[Said]) -> bool {
    let packets = all.iter().map(|said| said.packets);
    let Some(packets) = packets.collect::<Option<Vec<_>>>() else {
        return false;
    };
    let sum = |which: usize| packets.iter().fold(0, |sum: u64, it| sum.wrapping_add(it[which]));
    sum(0) == sum(1)
}

impl Said {
    /// It as bytes, of which there is one at least.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.rests.is_some()) | u8::from(self.packets.is_some()) << 1];
        let packets = self.packets.iter().flatten().copied();
        // No rank that rests has no thread.
        let rests = self
            .rests
            .iter()
            .flatten()
            .flat_map(|rest| rest.map_or([0, 0], |Rest { threads, number }| [threads, number]));
        bytes.extend(packets.chain(rests).flat_map(u64::to_le_bytes));
        bytes
    }

    /// What bytes say; `None` if they are nonsense.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (flags, bytes) = bytes.split_first()?;
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let packets = match flags & 2 {
            0 => None,
            _ => Some([words.next()?, words.next()?]),
        };
        let mut rests = Rests::new();
        while let Some(threads) = words.next() {
            let number = words.next()?;
            rests.push((threads > 0).then_some(Rest { threads, number }));
        }
        let rests = (flags & 1 != 0).then_some(rests);
        rest.is_empty().then_some(Self { rests, packets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(numbers: &[u64], packets: Option<[u64; 2]>) -> Said {
        let rest = |&number: &u64| (number > 0).then_some(Rest { threads: 1, number });
        Said { rests: Some(numbers.iter().map(rest).collect()), packets }
    }

    #[test]
    fn what_is_said_arrives() {
        for said in [said(&[5, 0, 7], Some([3, u64::MAX])), said(&[], None), Said::default()] {
            let bytes = said.encode();
            assert_eq!(Said::decode(&bytes), Some(said));
            assert_eq!(Said::decode(&[&bytes[..], &[1]].concat()), None);
        }
        assert_eq!(Said::decode(&[]), None);
    }

    #[test]
    fn all_rest_and_nothing_is_on_its_way() {
        let all = [said(&[5, 0], Some([3, 1])), said(&[7], Some([1, 3]))];
        assert_eq!(together(&all).map(|rests| rests.len()), Some(3));
        assert!(is_silent(&all));
        assert!(!is_silent(&all[..1]), "a packet is on its way");
        assert!(!is_silent(&[said(&[7], None)]), "a rank can go on");
        assert_eq!(together(&[said(&[5], None), Said::default()]), None);
        assert_eq!(together(&[said(&[0], None)]), None, "all have ended");
    }
}

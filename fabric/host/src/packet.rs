//! What precedes every packet on the wire, and how packets of others are known.

use cohort_fabric::WorldRank;
use cohort_proof::Secret;

/// Bytes before a packet's header.
pub const PREFIX: usize = 16;

/// From which rank to which a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its sender.
    pub from: WorldRank,
    /// Its receiver.
    pub to: WorldRank,
}

impl Way {
    /// As a head has it.
    #[must_use]
    pub fn id(self) -> u64 {
        u64::from(self.from) | u64::from(self.to) << 32
    }

    /// The one that a head has.
    #[must_use]
    pub fn of(id: u64) -> Self {
        Self { from: id as WorldRank, to: (id >> 32) as WorldRank }
    }
}

/// A packet's sender and receiver, and the cookie of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its sender.
    pub from: WorldRank,
    /// The rank that it was sent to: a stale address leads to another rank.
    pub to: WorldRank,
    /// [`cookie`] of the job.
    pub cookie: u64,
}

/// What only members of a job can say; of its number, of which it tells nothing. Every packet carries it, so a
/// connection needs no state, and no packet of another job is ever taken.
#[must_use]
pub fn cookie(job: [u64; 2]) -> u64 {
    secret(job).cookie()
}

/// The secret of a job, of its number.
#[must_use]
pub fn secret(job: [u64; 2]) -> Secret {
    Secret::new(&[job[0].to_le_bytes(), job[1].to_le_bytes()].concat())
}

impl Prefix {
    /// As sent: little-endian.
    #[must_use]
    #[inline]
    pub fn bytes(self) -> [u8; PREFIX] {
        let mut bytes = [0; PREFIX];
        bytes[..4].copy_from_slice(&self.from.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.to.to_le_bytes());
        bytes[8..].copy_from_slice(&self.cookie.to_le_bytes());
        bytes
    }

    /// Splits a packet; none if it is too short.
    #[must_use]
    #[inline]
    pub fn split(packet: &[u8]) -> Option<(Self, &[u8])> {
        let (prefix, rest) = packet.split_first_chunk::<PREFIX>()?;
        let word = |at: usize| u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]]);
        let this = Self { from: word(0), to: word(4), cookie: u64::from(word(8)) | u64::from(word(12)) << 32 };
        Some((this, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_survives_the_wire() {
        let prefix = Prefix { from: 0x0102_0304, to: 7, cookie: cookie([0x1122_3344_5566_7788, 0x99aa]) };
        let packet = [&prefix.bytes()[..], b"body"].concat();
        assert_eq!(Prefix::split(&packet), Some((prefix, &b"body"[..])));
        assert_eq!(Prefix::split(&packet[..15]), None);
        let way = Way { from: 7, to: u32::MAX };
        assert_eq!(Way::of(way.id()), way);
    }

    #[test]
    fn jobs_that_differ_in_a_bit_have_different_proofs() {
        let job = [3, 5];
        for bit in 0..64 {
            assert_ne!(cookie(job), cookie([3 ^ (1 << bit), 5]));
            assert_ne!(cookie(job), cookie([3, 5 ^ (1 << bit)]));
        }
    }
}

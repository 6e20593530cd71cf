//! What travels in a stream: frames of a head and what it announces.
//!
//! Both ends run the same build on the same kind of machine; numbers are little-endian.

/// What a frame is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A packet of the engine; the id is its [`Way`](cohort_fabric_host::packet::Way).
    Packet = 1,
    /// Asks for memory: a [`Target`]. Answered by `Data` or `Refused` with the same id.
    Read,
    /// The memory that was asked for.
    Data,
    /// Stores memory: a [`Target`], then the bytes. Answered by `Written` or `Refused` with the same id.
    Write,
    /// A write is in its memory.
    Written,
    /// There is no such memory.
    Refused,
    /// The last of a stream: all ranks of the node have ended as they should.
    Bye,
}

impl FrameKind {
    /// Of `length` bytes behind a head, those that must have come before the frame is dealt with: the rest is the
    /// body of a transfer.
    #[must_use]
    pub fn bytes_inside(self, length: usize) -> usize {
        match self {
            Self::Data => 0,
            Self::Write => length.min(TARGET),
            _ => length,
        }
    }
}

/// Bytes of a head.
pub const HEAD: usize = 16;

/// Bytes of a [`Target`].
pub const TARGET: usize = 24;

/// The beginning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What follows.
    pub kind: FrameKind,
    /// Bytes of it.
    pub length: u32,
    /// Of the sender's read or write, or of the one that is answered; of a packet its
    /// [`Way`](cohort_fabric_host::packet::Way).
    pub id: u64,
}

impl Head {
    /// As sent.
    #[must_use]
    pub fn bytes(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..].copy_from_slice(&self.id.to_le_bytes());
        bytes
    }

    /// Splits what has come of a frame; none if the head is not whole. An unknown kind is an error.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Result<Self, Malformed>, &[u8])> {
        use FrameKind::{Bye, Data, Packet, Read, Refused, Write, Written};
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let kind = [Packet, Read, Data, Write, Written, Refused, Bye].into_iter().find(|kind| *kind as u8 == head[0]);
        let head =
            kind.ok_or(Malformed).map(|kind| Self { kind, length: word(&head[4..]) as u32, id: word(&head[8..]) });
        Some((head, rest))
    }
}

/// What no end of this version sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A part of another rank's region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The region's key.
    pub key: u64,
    /// Where in it.
    pub offset: u64,
    /// How much.
    pub length: u64,
}

impl Target {
    /// As sent.
    #[must_use]
    pub fn bytes(self) -> [u8; TARGET] {
        let mut bytes = [0; TARGET];
        bytes[..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads one; none if it is not whole.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<TARGET>()?;
        Some(Self { key: word(bytes), offset: word(&bytes[8..]), length: word(&bytes[16..]) })
    }
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let count = bytes.len().min(8);
    let mut word = [0; 8];
    word[..count].copy_from_slice(&bytes[..count]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_way() {
        let head = Head { kind: FrameKind::Write, length: 0x0102_0304, id: u64::MAX - 5 };
        let sent = [&head.bytes()[..], b"rest"].concat();
        assert_eq!(Head::split(&sent), Some((Ok(head), &b"rest"[..])));
        assert_eq!(Head::split(&sent[..HEAD - 1]), None);
        let target = Target { key: 1, offset: 1 << 40, length: 3 };
        assert_eq!(Target::read(&target.bytes()), Some(target));
        assert_eq!(Target::read(&target.bytes()[1..]), None);
        assert_eq!(Head::split(&[9; HEAD]).unwrap().0, Err(Malformed));
    }
}

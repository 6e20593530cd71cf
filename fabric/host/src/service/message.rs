//! What nodes say to each other about being alive: messages of one length.
//!
//! Magic (4 bytes), kind (4), sender's node (4), receiver's node (4), the job's cookie (8), number (8). Little-endian.

/// Bytes of a message.
pub const LENGTH: usize = 32;

const MAGIC: [u8; 4] = *b"CSv1";

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Are you there?
    Ask = 1,
    /// Yes. The number is the question's.
    Answer = 2,
    /// The sender's part of the job is over; its silence means nothing from now on.
    Leaving = 3,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub kind: Kind,
    /// The sender's node.
    pub from: u32,
    /// The receiver's.
    pub to: u32,
    /// Of questions and their answers.
    pub number: u64,
}

impl Message {
    /// As it travels within the job of this cookie.
    pub fn bytes(self, cookie: u64) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.from.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.to.to_le_bytes());
        bytes[16..24].copy_from_slice(&cookie.to_le_bytes());
        bytes[24..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// Reads one that came; none if it is not of this job.
    pub fn read(bytes: &[u8; LENGTH], cookie: u64) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[..4] != MAGIC || long(16) != cookie {
            return None;
        }
        let kinds = [Kind::Ask, Kind::Answer, Kind::Leaving];
        let kind = kinds.into_iter().find(|&kind| kind as u32 == word(4))?;
        Some(Self { kind, from: word(8), to: word(12), number: long(24) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_another_job_is_none() {
        let message = Message { kind: Kind::Leaving, from: 7, to: 0x0102_0304, number: u64::MAX - 3 };
        let bytes = message.bytes(99);
        assert_eq!(Message::read(&bytes, 99), Some(message));
        assert_eq!(Message::read(&bytes, 98), None);
        for at in [0, 4] {
            let mut wrong = bytes;
            wrong[at] ^= 0x40;
            assert_eq!(Message::read(&wrong, 99), None);
        }
    }
}

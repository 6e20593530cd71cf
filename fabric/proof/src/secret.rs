//! The secret of a job, and what is computed from it.

use crate::{ANSWER, HELLO};
use core::fmt;

/// Random bytes that nobody has used before and nobody can foresee; the caller draws them.
pub type Nonce = [u8; 32];

/// Proves that a message is the one that its sender wrote; see [`Key::tag`].
pub type Tag = [u8; 16];

/// First bytes of every challenge: the protocol and its version.
const MAGIC: [u8; 8] = *b"CohortP1";

/// What a hash is for: no hash serves two of these.
#[derive(Clone, Copy)]
enum Use {
    AnswerOfAcceptor = 1,
    AnswerOfInitiator = 2,
    KeyToAcceptor = 3,
    KeyToInitiator = 4,
}

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that connected.
    Initiator,
    /// The one that listened.
    Acceptor,
}

/// Who connects with whom, and what for. The numbers mean what the users of a job's secret agree on;
/// they travel in clear text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purpose {
    /// The kind of listener.
    pub service: u32,
    /// The node that connects.
    pub from: u32,
    /// The node that listens.
    pub to: u32,
    /// Which of several connections between the two.
    pub lane: u32,
}

/// What all nodes of a job know and nobody else does.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The secret that stands in `material`: any bytes of which at least 128 bits cannot be guessed.
    #[must_use]
    pub fn new(material: &[u8]) -> Self {
        Self(blake3::derive_key("Cohort 2026-11-22 secret of a job", material))
    }

    /// A number that only who knows the secret can say, and that tells nothing of it: for packets that carry it in
    /// clear text, so that those of other jobs are known.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        let hash = blake3::keyed_hash(&self.0, b"cookie of packets");
        let first = hash.as_bytes().first_chunk::<8>();
        u64::from_le_bytes(first.copied().unwrap_or_default())
    }

    /// What `side` answers when the initiator said `challenge` and the acceptor drew `nonce`.
    #[must_use]
    pub fn answer(&self, side: Side, challenge: &Challenge, nonce: &Nonce) -> Answer {
        let what = match side {
            Side::Initiator => Use::AnswerOfInitiator,
            Side::Acceptor => Use::AnswerOfAcceptor,
        };
        Answer(self.hash(what, challenge, nonce))
    }

    /// The keys of the connection that began with these. Whoever takes them has checked the other
    /// side's answer.
    #[must_use]
    pub fn keys(&self, challenge: &Challenge, nonce: &Nonce) -> Keys {
        let key = |what| Key(*self.hash(what, challenge, nonce).as_bytes());
        Keys { to_acceptor: key(Use::KeyToAcceptor), to_initiator: key(Use::KeyToInitiator) }
    }

    fn hash(&self, what: Use, challenge: &Challenge, nonce: &Nonce) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[what as u8]);
        hasher.update(&challenge.to_bytes());
        hasher.update(nonce);
        hasher.finalize()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What an initiator says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Who it is, and whom it wants.
    pub purpose: Purpose,
    /// Its nonce.
    pub nonce: Nonce,
}

impl Challenge {
    /// As it travels.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        let Purpose { service, from, to, lane } = self.purpose;
        bytes[..8].copy_from_slice(&MAGIC);
        for (place, number) in bytes[8..24].chunks_exact_mut(4).zip([service, from, to, lane]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[24..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads one; `None` if it begins as no challenge does.
    #[must_use]
    pub fn parse(bytes: &[u8; HELLO]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (numbers, nonce) = rest.split_first_chunk::<16>()?;
        let number = |at: usize| {
            let bytes = numbers.get(at * 4..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let purpose = Purpose { service: number(0)?, from: number(1)?, to: number(2)?, lane: number(3)? };
        let nonce = *nonce.first_chunk::<32>()?;
        (*magic == MAGIC).then_some(Self { purpose, nonce })
    }
}

/// Proves that whoever sends it knows the secret. Comparing takes the same time whatever differs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Answer(blake3::Hash);

impl Answer {
    /// As it travels.
    #[must_use]
    pub fn to_bytes(self) -> [u8; ANSWER] {
        *self.0.as_bytes()
    }

    /// What came, to be compared with the answer that it should be.
    #[must_use]
    pub fn from_bytes(bytes: [u8; ANSWER]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer(..)")
    }
}

/// The keys of one connection, one for each direction, so that no message can be sent back as
/// an answer to itself.
#[derive(Clone, Debug)]
pub struct Keys {
    /// For what the initiator sends.
    pub to_acceptor: Key,
    /// For what the acceptor sends.
    pub to_initiator: Key,
}

impl Keys {
    /// Keys that take what these are derived from, and `parts` besides: what both ends agreed on later.
    #[must_use]
    pub fn with(&self, parts: &[&[u8]]) -> Self {
        let joined = |key: &Key| {
            let mut hasher =
                blake3::Hasher::new_keyed(&blake3::derive_key("Cohort 2026-11-25 keys of an agreement", &key.0));
            for part in parts {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
            Key(*hasher.finalize().as_bytes())
        };
        Self { to_acceptor: joined(&self.to_acceptor), to_initiator: joined(&self.to_initiator) }
    }
}

/// A key of one direction of one connection.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Proves message `number` of this direction, given in parts that follow each other. No number
    /// may be used for two messages.
    #[must_use]
    pub fn tag(&self, number: u64, parts: &[&[u8]]) -> Tag {
        let mut tag = [0; 16];
        tag.copy_from_slice(&self.hash(number, parts).as_bytes()[..16]);
        tag
    }

    /// Whether `tag` is that of this message. Takes the same time whatever differs.
    #[must_use]
    pub fn is_of(&self, tag: &Tag, number: u64, parts: &[&[u8]]) -> bool {
        let hash = self.hash(number, parts);
        // The comparison of whole hashes is the one in constant time.
        let mut said = *hash.as_bytes();
        said[..16].copy_from_slice(tag);
        hash == said
    }

    /// The key that follows this one when it has been used enough. It tells nothing of this one.
    #[must_use]
    pub fn next(&self) -> Self {
        Self(blake3::derive_key("Cohort 2026-11-22 next key of a connection", &self.0))
    }

    /// The key itself, for a cipher.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn hash(&self, number: u64, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&number.to_le_bytes());
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

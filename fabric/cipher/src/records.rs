//! Records: what travels on a connection under `COHORT_NET_ENCRYPT=1`.
//!
//! ```text
//! record = length (4 bytes, little-endian), that many encrypted bytes (at most RECORD_MAX), tag (16)
//! ```
//!
//! The bytes of the stream are cut into records wherever a call ends; frames know nothing of them. The cipher is
//! AES-256-GCM, and the length is authenticated with the bytes. Each direction of each connection has a key of its
//! own, on which both ends agree when they have proven themselves ([`crate::Agreement`]). The nonce is the record's
//! number in its direction, which does not travel. So a record that was changed, left out, repeated, moved, or sent
//! back to who wrote it does not open, and nothing that comes after it is looked at. After [`KEY_RECORDS`] records the
//! next key takes the place of a key, long before the cipher's limits for one key are near.
//!
//! Nothing of a record is used before all of it is found genuine.

use cohort_proof::{Key, Keys, Side};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Bytes before the encrypted ones.
const HEAD: usize = 4;

/// Bytes behind them.
const TAG: usize = 16;

/// Bytes of a frame's head, for which a record has room beside a round number of others.
const FRAME_HEAD: usize = 16;

/// Encrypted bytes of the longest record: four of them are what one system call of the network over TCP writes.
pub const RECORD_MAX: usize = (16 << 10) + FRAME_HEAD;

/// Records that are made with one key: 16 GiB.
const KEY_RECORDS: u64 = 1 << 20;

/// Room that stays for what is to be written; more is given back.
const ROOM_KEPT: usize = 8 << 10;

/// A record that its sender has not written so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forged;

/// Bytes of a record of so many, at most [`RECORD_MAX`].
#[must_use]
pub const fn record_length(bytes: usize) -> usize {
    HEAD + bytes + TAG
}

/// Both directions of a connection.
#[derive(Debug)]
pub struct Cipher {
    /// What goes.
    pub sealer: Sealer,
    /// What comes.
    pub opener: Opener,
}

impl Cipher {
    /// The cipher of the `side` of a connection that has these keys.
    #[must_use]
    pub fn new(keys: &Keys, side: Side) -> Self {
        let (own, other) = match side {
            Side::Initiator => (&keys.to_acceptor, &keys.to_initiator),
            Side::Acceptor => (&keys.to_initiator, &keys.to_acceptor),
        };
        Self {
            sealer: Sealer { direction: Direction::new(own.clone()), unsent: Vec::new(), sent: 0 },
            opener: Opener { direction: Direction::new(other.clone()), rest: Vec::new() },
        }
    }
}

/// A direction: its key, and how many records have gone with it.
#[derive(Debug)]
struct Direction {
    key: Key,
    cipher: LessSafeKey,
    number: u64,
    /// [`KEY_RECORDS`]; fewer in tests.
    records: u64,
}

impl Direction {
    fn new(key: Key) -> Self {
        Self { cipher: prepared(&key), key, number: 0, records: KEY_RECORDS }
    }

    /// The nonce of the next record; the key is one that has not had it yet.
    fn next_nonce(&mut self) -> Nonce {
        if self.number == self.records {
            self.key = self.key.next();
            self.cipher = prepared(&self.key);
            self.number = 0;
        }
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.number.to_le_bytes());
        self.number += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

fn prepared(key: &Key) -> LessSafeKey {
    match UnboundKey::new(&AES_256_GCM, key.as_bytes()) {
        Ok(key) => LessSafeKey::new(key),
        Err(_) => unreachable!("keys have the cipher's length"),
    }
}

/// Makes records.
#[derive(Debug)]
pub struct Sealer {
    direction: Direction,
    /// Records, of which the first `sent` bytes are written.
    unsent: Vec<u8>,
    sent: usize,
}

impl Sealer {
    /// Puts pieces of the stream into records, to be written; returns how many bytes these were.
    pub fn seal<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]> + Clone) -> usize {
        let total: usize = pieces.clone().map(<[u8]>::len).sum();
        let records = total.div_ceil(RECORD_MAX);
        self.unsent.reserve(total + records * (HEAD + TAG));
        let mut start = self.begin();
        for mut piece in pieces {
            while !piece.is_empty() {
                let room = RECORD_MAX - (self.unsent.len() - start - HEAD);
                if room == 0 {
                    self.close(start);
                    start = self.begin();
                    continue;
                }
                let (now, later) = piece.split_at(room.min(piece.len()));
                self.unsent.extend_from_slice(now);
                piece = later;
            }
        }
        self.close(start);
        total
    }

    /// Begins a record.
    fn begin(&mut self) -> usize {
        let start = self.unsent.len();
        self.unsent.extend_from_slice(&[0; HEAD]);
        start
    }

    /// Encrypts the record that begins at `start`; one without bytes is none.
    fn close(&mut self, start: usize) {
        let (head, bytes) = self.unsent[start..].split_at_mut(HEAD);
        if bytes.is_empty() {
            self.unsent.truncate(start);
            return;
        }
        let length = (bytes.len() as u32).to_le_bytes();
        head.copy_from_slice(&length);
        let nonce = self.direction.next_nonce();
        let cipher = &self.direction.cipher;
        match cipher.seal_in_place_separate_tag(nonce, Aad::from(length), bytes) {
            Ok(tag) => self.unsent.extend_from_slice(tag.as_ref()),
            Err(_) => unreachable!("records are shorter than the cipher allows"),
        }
    }

    /// What is to be written.
    #[must_use]
    pub fn unsent(&self) -> &[u8] {
        &self.unsent[self.sent..]
    }

    /// So much of it is written.
    pub fn sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.unsent.len() {
            self.clear();
        }
    }

    /// Nothing is written any more.
    pub fn clear(&mut self) {
        self.unsent.clear();
        self.unsent.shrink_to(ROOM_KEPT);
        self.sent = 0;
    }
}

/// Opens records.
#[derive(Debug)]
pub struct Opener {
    direction: Direction,
    /// The beginning of a record, as far as it has come.
    rest: Vec<u8>,
}

impl Opener {
    /// Puts what came before and was not whole at the beginning of a buffer, which has room for it and more; returns
    /// where what comes now has to follow.
    #[must_use]
    pub fn begin(&self, buffer: &mut [u8]) -> usize {
        buffer[..self.rest.len()].copy_from_slice(&self.rest);
        self.rest.len()
    }

    /// Opens the whole records of what has come, [`Opener::begin`]'s part included, in place; returns how many bytes of
    /// the stream are at its beginning now.
    ///
    /// # Errors
    /// [`Forged`]; nothing of the connection is to be believed from here on.
    pub fn open(&mut self, bytes: &mut [u8]) -> Result<usize, Forged> {
        let (mut at, mut opened) = (0, 0);
        while let Some(&head) = bytes[at..].first_chunk::<HEAD>() {
            let length = u32::from_le_bytes(head) as usize;
            if length == 0 || length > RECORD_MAX {
                return Err(Forged);
            }
            let end = at + record_length(length);
            if end > bytes.len() {
                break;
            }
            let nonce = self.direction.next_nonce();
            let place = &mut bytes[opened..end];
            let sealed = at + HEAD - opened..;
            let cipher = &self.direction.cipher;
            match cipher.open_within(nonce, Aad::from(head), place, sealed) {
                Ok(plain) => opened += plain.len(),
                Err(_) => return Err(Forged),
            }
            at = end;
        }
        self.rest.clear();
        self.rest.extend_from_slice(&bytes[at..]);
        Ok(opened)
    }
}

#[cfg(test)]
mod tests;

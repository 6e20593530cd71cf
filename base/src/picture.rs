//! What the node image tells of a rank that somebody asks about: what it waits for, and what is left in its queues.
//!
//! The loader asks ([`crate::boot::NodeApi::look`]), and hears one [`Fact`] after the other. A fact is of plain
//! numbers and a short text, so that it stays true when the rank goes on.

use crate::text::FixedText;
use core::ffi::c_void;
use core::fmt::Write;

/// In place of a rank or a tag: any.
pub const ANY: i32 = -1;

/// In place of a rank: not known, or none.
pub const NOBODY: i32 = -2;

/// In place of a context: none.
pub const NO_CONTEXT: u32 = u32::MAX;

/// What a fact says.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    /// Of the rank: `name` is the MPI function that it called last, `count` how many of its threads wait.
    Rank = 0,
    /// Somebody uses the rank's state, so nothing more can be said.
    Busy = 1,
    /// One thread waits: `name` is the MPI function, `number` for how many microseconds, `member` the thread's number.
    /// Facts of what it waits for follow; with `count` one of them is enough.
    Wait = 2,
    /// It waits for a message.
    Receive = 3,
    /// It waits for a message, without receiving it.
    Probe = 4,
    /// It waits for the receiver of a message of `number` bytes, of which `count` partitions are not ready.
    Send = 5,
    /// It waits for others in a collective call, the `number`-th of the communicator's whose members share `key`.
    Collective = 6,
    /// One that it waits for in the collective named before.
    Missing = 7,
    /// It waits for access to `world`'s part of the window `key`; `name` says how.
    Access = 8,
    /// It waits for all ranks to come to the end of MPI.
    End = 9,
    /// It waits for something that may come from elsewhere than from another rank.
    Outside = 10,
    /// It waits for room for one more short message to `world`.
    Room = 11,
    /// A receive that is pending.
    Posted = 12,
    /// A send that is pending.
    Offered = 13,
    /// A message that has arrived and that no receive has taken.
    Unexpected = 14,
    /// It has access to `world`'s part of the window `key`; `name` says how.
    Holds = 15,
    /// Of the rank, in a job of several nodes: it has sent `number` packets and received `key`; with `count` something
    /// of it is on its way between nodes, or its task has still to send something.
    Traffic = 16,
    /// It waits for somebody else to come to the port `name`.
    Port = 17,
}

/// All that a fact may say, by its number.
const TOLD: [Told; 18] = [
    Told::Rank,
    Told::Busy,
    Told::Wait,
    Told::Receive,
    Told::Probe,
    Told::Send,
    Told::Collective,
    Told::Missing,
    Told::Access,
    Told::End,
    Told::Outside,
    Told::Room,
    Told::Posted,
    Told::Offered,
    Told::Unexpected,
    Told::Holds,
    Told::Traffic,
    Told::Port,
];

/// Bytes of a fact's text.
const TEXT: usize = 48;

/// Bytes of a [fact as bytes](Fact::bytes).
pub const FACT_BYTES: usize = 8 * 4 + 2 * 8 + TEXT;

/// One thing that is so.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// What is said.
    pub told: Told,
    /// The communicator's context of messages or of collectives, or [`NO_CONTEXT`].
    pub context: u32,
    /// Members of the communicator; 0 if that is not known.
    pub size: u32,
    /// Rank of somebody else in the communicator, [`ANY`] or [`NOBODY`].
    pub member: i32,
    /// The same in `MPI_COMM_WORLD`.
    pub world: i32,
    /// The tag, or [`ANY`].
    pub tag: i32,
    /// How many.
    pub count: u32,
    /// Bytes of `text`.
    pub length: u32,
    /// What is the same for all who are told about the same thing.
    pub key: u64,
    /// How much.
    pub number: u64,
    /// See [`Fact::name`].
    pub text: [u8; TEXT],
}

impl Fact {
    /// A fact without any of the other parts.
    #[must_use]
    pub const fn new(told: Told) -> Self {
        Self {
            told,
            context: NO_CONTEXT,
            size: 0,
            member: NOBODY,
            world: NOBODY,
            tag: ANY,
            count: 0,
            length: 0,
            key: 0,
            number: 0,
            text: [0; TEXT],
        }
    }

    /// The same with a text, which is cut if it is long.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        let mut text = FixedText::<TEXT>::new();
        // A text that is full is cut.
        let _ = text.write_str(name);
        let bytes = text.as_str().as_bytes();
        self.text[..bytes.len()].copy_from_slice(bytes);
        self.length = bytes.len() as u32;
        self
    }

    /// Its text: of the call, or of the communicator.
    #[must_use]
    pub fn name(&self) -> &str {
        let bytes = self.text.get(..self.length as usize).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }

    /// It as bytes, for who shares no memory.
    #[must_use]
    pub fn bytes(&self) -> [u8; FACT_BYTES] {
        let [member, world, tag] = [self.member, self.world, self.tag].map(i32::cast_unsigned);
        let words = [self.told as u32, self.context, self.size, member, world, tag, self.count, self.length];
        let words = words.into_iter().flat_map(u32::to_le_bytes);
        let long = [self.key, self.number].into_iter().flat_map(u64::to_le_bytes);
        let mut bytes = [0; FACT_BYTES];
        for (place, byte) in bytes.iter_mut().zip(words.chain(long).chain(self.text)) {
            *place = byte;
        }
        bytes
    }

    /// The fact that bytes are; `None` if they are none.
    #[must_use]
    pub fn of_bytes(bytes: &[u8; FACT_BYTES]) -> Option<Self> {
        let short = |index: usize| {
            let word = bytes[4 * index..].first_chunk();
            word.map_or(0, |word| u32::from_le_bytes(*word))
        };
        let long = |index: usize| {
            let word = bytes[32 + 8 * index..].first_chunk();
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        Some(Self {
            told: *TOLD.get(short(0) as usize)?,
            context: short(1),
            size: short(2),
            member: short(3).cast_signed(),
            world: short(4).cast_signed(),
            tag: short(5).cast_signed(),
            count: short(6),
            length: short(7),
            key: long(0),
            number: long(1),
            text: *bytes[48..].first_chunk()?,
        })
    }
}

/// Hears one fact; `data` is what the asker gave.
pub type Hear = unsafe extern "C" fn(data: *mut c_void, fact: *const Fact);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_where_a_character_ends() {
        assert_eq!(Fact::new(Told::Receive).named("rows").name(), "rows");
        let long = Fact::new(Told::Receive).named("aééééééééééééééééééééééééé");
        assert_eq!(long.name().chars().count(), 1 + 23, "23 characters of two bytes fit");
    }

    #[test]
    fn facts_are_what_they_were() {
        for (index, told) in TOLD.into_iter().enumerate() {
            assert_eq!(told as usize, index);
            let fact = Fact { context: 2, size: 3, member: -1, world: 4, tag: -5, count: 6, ..Fact::new(told) };
            let fact = Fact { key: u64::MAX - 7, number: 8, ..fact }.named("rows");
            let read = Fact::of_bytes(&fact.bytes()).expect("a fact");
            assert_eq!((read.told, read.name(), read.bytes()), (told, "rows", fact.bytes()));
            assert_eq!((read.member, read.tag, read.key), (-1, -5, u64::MAX - 7));
        }
        assert!(Fact::of_bytes(&[u8::MAX; FACT_BYTES]).is_none());
    }
}

//! What ranks do, as bytes: launchers of other nodes ask for it.

use super::state::{RankState, Wait};
use cohort_base::picture::Fact;
use std::time::Duration;

/// Ranks as bytes.
#[must_use]
pub fn encode(ranks: &[RankState]) -> Vec<u8> {
    let mut bytes = Vec::new();
    list(&mut bytes, ranks, rank);
    bytes
}

/// The ranks of `node` that bytes are; `None` if they are none.
#[must_use]
pub fn decode(bytes: &[u8], node: u32) -> Option<Vec<RankState>> {
    let mut reader = Reader { bytes, node };
    let ranks = reader.list(Reader::rank)?;
    reader.bytes.is_empty().then_some(ranks)
}

fn number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

fn list<T>(bytes: &mut Vec<u8>, all: &[T], each: impl Fn(&mut Vec<u8>, &T)) {
    number(bytes, all.len() as u64);
    for one in all {
        each(bytes, one);
    }
}

fn rank(bytes: &mut Vec<u8>, rank: &RankState) {
    let flags = [rank.has_ended, rank.is_initialized, rank.is_finalized, rank.is_busy, rank.place.is_some()];
    let flags = flags.iter().zip(0..);
    let flags = flags.fold(0, |set, (&flag, bit)| set | u64::from(flag) << bit);
    for word in [rank.world.into(), rank.pid as u64, flags, u64::from(u32::from(rank.run)), rank.waiting.into()] {
        number(bytes, word);
    }
    text(bytes, &rank.called);
    text(bytes, rank.place.as_deref().unwrap_or_default());
    list(bytes, &rank.waits, |bytes, wait| {
        text(bytes, &wait.call);
        number(bytes, wait.since.as_micros() as u64);
        number(bytes, wait.thread as u64);
        number(bytes, wait.is_any.into());
        list(bytes, &wait.needs, fact);
    });
    for facts in [&rank.pending, &rank.unexpected, &rank.holds] {
        list(bytes, facts, fact);
    }
}

fn fact(bytes: &mut Vec<u8>, fact: &Fact) {
    bytes.extend(fact.bytes());
}

struct Reader<'a> {
    bytes: &'a [u8],
    node: u32,
}

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn list<T>(&mut self, each: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        // What says that it has more entries than bytes ends early.
        (0..count).map(|_| each(self)).collect()
    }

    fn rank(&mut self) -> Option<RankState> {
        let (world, pid) = (self.number()? as u32, self.number()? as i32);
        let flags = self.number()?;
        let is_set = |bit: u32| flags >> bit & 1 != 0;
        let run = char::from_u32(self.number()? as u32)?;
        let waiting = self.number()? as u32;
        let (called, place) = (self.text()?, self.text()?);
        let wait = |reader: &mut Self| {
            Some(Wait {
                call: reader.text()?,
                since: Duration::from_micros(reader.number()?),
                thread: reader.number()? as i32,
                is_any: reader.number()? != 0,
                needs: reader.list(Self::fact)?,
            })
        };
        Some(RankState {
            world,
            pid,
            has_ended: is_set(0),
            is_initialized: is_set(1),
            is_finalized: is_set(2),
            is_busy: is_set(3),
            place: is_set(4).then_some(place),
            run,
            waiting,
            called,
            waits: self.list(wait)?,
            pending: self.list(Self::fact)?,
            unexpected: self.list(Self::fact)?,
            holds: self.list(Self::fact)?,
            ..RankState::default()
        })
    }

    fn fact(&mut self) -> Option<Fact> {
        let (bytes, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        let mut fact = Fact::of_bytes(bytes)?;
        if fact.key != 0 {
            // It is an address there, which may be another thing's address here.
            fact.key ^= u64::from(self.node) << 48;
        }
        Some(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_base::picture::Told;

    #[test]
    fn ranks_are_what_they_were() {
        let need = Fact { member: -1, tag: 7, key: 12, ..Fact::new(Told::Receive).named("rows") };
        let state = RankState {
            world: 5,
            pid: 17,
            is_busy: true,
            run: 'S',
            called: "MPI_Recv".into(),
            place: Some("main at a.c:3".into()),
            waits: vec![Wait {
                call: "MPI_Recv".into(),
                since: Duration::from_micros(12),
                thread: 18,
                is_any: true,
                needs: vec![need],
            }],
            unexpected: vec![need, need],
            ..RankState::default()
        };
        let ranks = [state, RankState::default()];
        let bytes = encode(&ranks);
        let read = decode(&bytes, 0).expect("well-formed");
        assert_eq!(format!("{read:?}"), format!("{ranks:?}"));
        let other = decode(&bytes, 1).expect("well-formed");
        assert_eq!(other[0].waits[0].needs[0].key, 12 | 1 << 48);
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut], 0).is_none(), "{cut}");
        }
    }
}

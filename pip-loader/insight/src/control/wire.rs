//! What goes over the control socket of a job: frames, and the records of names and values in them.
//!
//! A frame is a head of 12 bytes (magic, version, kind, length of what follows; little-endian) and its body. A record
//! is text: on each line a name, a tab, and a value in which `\t`, `\n` and `\\` stand for themselves.

use std::fmt::Write;

/// How every frame begins.
const MAGIC: [u8; 4] = *b"chrt";

/// Raised whenever the meaning of a frame changes.
const VERSION: u16 = 1;

/// Bytes before the body.
pub const HEAD: usize = 12;

/// Longest body of a request.
pub const REQUEST_MAX: usize = 256;

/// Longest body of an answer.
pub const ANSWER_MAX: usize = 64 << 20;

/// What is asked of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A record of what the job is.
    Describe = 1,
    /// A text about what all ranks do.
    Picture = 2,
    /// Records of what the ranks did up to now, one for each, and one for the node before them.
    Sample = 3,
}

impl Kind {
    fn of(number: u16) -> Option<Self> {
        [Self::Describe, Self::Picture, Self::Sample].into_iter().find(|&kind| kind as u16 == number)
    }
}

/// What cannot be a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It begins with other bytes.
    Magic,
    /// The other side is another version of this program.
    Version(u16),
    /// There is no such kind.
    Kind(u16),
    /// It is longer than allowed.
    Length(u32),
}

/// A request or the answer to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is about.
    pub kind: Kind,
    /// What it says.
    pub body: Vec<u8>,
}

impl Frame {
    /// The bytes of a frame.
    #[must_use]
    pub fn encode(kind: Kind, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((kind as u16).to_le_bytes());
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// Takes a frame with a body of at most `most` bytes out of what has come; `None` if more has to come.
    ///
    /// # Errors
    /// It is none; this is noticed as soon as the bytes that tell have come.
    pub fn take(received: &mut Vec<u8>, most: usize) -> Result<Option<Self>, Malformed> {
        let seen = received.len().min(MAGIC.len());
        if received[..seen] != MAGIC[..seen] {
            return Err(Malformed::Magic);
        }
        let Some(head) = received.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let version = u16::from_le_bytes([head[4], head[5]]);
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let number = u16::from_le_bytes([head[6], head[7]]);
        let kind = Kind::of(number).ok_or(Malformed::Kind(number))?;
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if length as usize > most {
            return Err(Malformed::Length(length));
        }
        let end = HEAD + length as usize;
        if received.len() < end {
            return Ok(None);
        }
        let body = received[HEAD..end].to_vec();
        received.drain(..end);
        Ok(Some(Self { kind, body }))
    }
}

/// Names and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record(Vec<(String, String)>);

impl Record {
    /// Adds one.
    pub fn add(&mut self, name: &str, value: impl std::fmt::Display) -> &mut Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// The value with this name, or an empty one.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        let mut found = self.0.iter().filter(|(own, _)| own == name);
        found.next().map_or("", |(_, value)| value)
    }

    /// The number with this name, or 0.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// The record as text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.0 {
            let value = value.replace('\\', "\\\\");
            let value = value.replace('\t', "\\t").replace('\n', "\\n");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}\t{value}");
        }
        text
    }

    /// The record that a text is; lines that are none count as absent.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let pair = |line: &str| {
            let (name, value) = line.split_once('\t')?;
            Some((name.to_owned(), plain(value)))
        };
        Self(text.split('\n').filter_map(pair).collect())
    }
}

/// A value as it was before it was encoded.
fn plain(value: &str) -> String {
    let mut letters = value.chars();
    let mut text = String::with_capacity(value.len());
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            letter => letter,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_in_pieces_and_together() {
        let sent = [Frame::encode(Kind::Picture, b"abc"), Frame::encode(Kind::Describe, b"")];
        let sent = sent.concat();
        let (mut received, mut frames) = (Vec::new(), Vec::new());
        for byte in sent {
            received.push(byte);
            frames.extend(Frame::take(&mut received, 3).expect("well-formed"));
        }
        assert_eq!((frames.len(), received.len()), (2, 0));
        assert_eq!((frames[0].kind, &*frames[0].body), (Kind::Picture, &b"abc"[..]));
    }

    #[test]
    fn what_is_no_frame_is_noticed_at_once() {
        let take = |bytes: &[u8]| Frame::take(&mut bytes.to_vec(), 8).unwrap_err();
        assert_eq!(take(b"cx"), Malformed::Magic);
        let mut frame = Frame::encode(Kind::Sample, &[0; 9]);
        assert_eq!(take(&frame[..HEAD]), Malformed::Length(9));
        frame[6] = 77;
        assert_eq!(take(&frame), Malformed::Kind(77));
        frame[5] = 2;
        assert_eq!(take(&frame), Malformed::Version(0x201));
    }

    #[test]
    fn records_keep_what_they_hold() {
        let mut record = Record::default();
        record.add("command", "a\tb\nc\\n d\r").add("pid", 17);
        let read = Record::decode(&record.encode());
        assert_eq!(read, record);
        assert_eq!((read.number("pid"), read.get("none")), (17, ""));
    }
}

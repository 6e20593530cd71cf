//! What two launchers tell each other on their connection.
//!
//! A frame is its kind, the length of its body (little-endian, 32 bits), and the body. The last frame of a node says
//! how it has ended; if that ends the job, another one follows when nothing runs behind it any more.

use super::{Cause, Finish, NodeEvent};
use cohort_base::sockets;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Looks at a silent host's connection until it counts as gone.
const PROBES: u32 = 4;

/// Bytes before the body.
const HEAD: usize = 5;

/// Longest body: what all ranks of a large job do.
const BODY_MAX: usize = 64 << 20;

/// How long the last words of a node wait for a reader.
const GOODBYE_TIME: Duration = Duration::from_secs(1);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// What each rank does.
    Ranks = 1,
    /// The same, to show it before the job is ended: of several nodes that do this, one shows it.
    Ending = 2,
    /// What the ranks have done up to now; calls are counted from then on.
    Sample = 3,
    /// Nobody watches at the asking node any more.
    Leave = 4,
    /// How the ranks sleep, if all sleep.
    Sleeps = 5,
    /// The same, and what a full look at each rank says.
    Judgement = 6,
}

impl What {
    const ALL: [Self; 6] = [Self::Ranks, Self::Ending, Self::Sample, Self::Leave, Self::Sleeps, Self::Judgement];

    /// The question with this number.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&it| it as u32 == number)
    }
}

/// Which question: who asks, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    /// The node that asks.
    pub origin: u32,
    /// Which of its questions.
    pub number: u32,
}

/// Nodes, and what they say; nothing is said of one that has ended.
pub type Parts = Vec<(u32, Vec<u8>)>;

/// What a launcher says to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// How its node has ended; nothing follows but [`Frame::Settled`].
    Finish(Finish),
    /// A question to its node and to all behind it, and how many milliseconds they have.
    Question(Id, What, u32),
    /// What those nodes said.
    Answer(Id, Parts),
    /// Whoever asked has what it wanted, and has shown it.
    Over(Id),
    /// The job ends before its time, and no rank runs on the nodes behind this one any more.
    Settled,
    /// What a node is to do, which has this number.
    Errand(Id, u32, Vec<u8>),
    /// What that node says of it; `None` if it has ended, or cannot be reached.
    Report(Id, Option<Vec<u8>>),
    /// What one launcher has the first one know, or the first one all.
    Word(Vec<u8>),
}

/// A connection with another launcher.
#[derive(Debug)]
pub struct Peer {
    pub stream: TcpStream,
    pub node: u32,
    received: Vec<u8>,
    outbox: Vec<u8>,
    pub open: bool,
    /// It has said how it has ended.
    has_finished: bool,
}

impl Frame {
    /// What nodes said, as far as a frame has room for it: who gets the answer names the others as nodes that have not
    /// answered. A frame that is too long would end the connection, and the job with it.
    pub fn answer(id: Id, mut parts: Parts) -> Self {
        let mut room = BODY_MAX - size_of::<Id>();
        parts.retain(|(_, bytes)| {
            let left = room.checked_sub(2 * size_of::<u32>() + bytes.len());
            room = left.unwrap_or(room);
            left.is_some()
        });
        Self::Answer(id, parts)
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let kind = match self {
            Self::Finish(finish) => {
                body.extend(finish.status.to_le_bytes());
                body.extend(u32::from(finish.is_cut).to_le_bytes());
                if let Some(Cause { node, signal }) = finish.cause {
                    body.extend(node.to_le_bytes());
                    body.extend(signal.unwrap_or(0).to_le_bytes());
                }
                1
            }
            Self::Question(id, what, limit) => {
                for word in [id.origin, id.number, *what as u32, *limit] {
                    body.extend(word.to_le_bytes());
                }
                2
            }
            Self::Answer(id, parts) => {
                for word in [id.origin, id.number] {
                    body.extend(word.to_le_bytes());
                }
                for (node, bytes) in parts {
                    body.extend(node.to_le_bytes());
                    body.extend((bytes.len() as u32).to_le_bytes());
                    body.extend(bytes);
                }
                3
            }
            Self::Over(id) => {
                for word in [id.origin, id.number] {
                    body.extend(word.to_le_bytes());
                }
                4
            }
            Self::Settled => 5,
            Self::Errand(id, to, bytes) => {
                for word in [id.origin, id.number, *to] {
                    body.extend(word.to_le_bytes());
                }
                body.extend(bytes);
                6
            }
            Self::Report(id, bytes) => {
                for word in [id.origin, id.number, u32::from(bytes.is_some())] {
                    body.extend(word.to_le_bytes());
                }
                body.extend(bytes.iter().flatten());
                7
            }
            Self::Word(bytes) => {
                body.extend(bytes);
                8
            }
        };
        let mut bytes = Vec::with_capacity(HEAD + body.len());
        bytes.push(kind);
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// Takes a frame out of what has come; `None` if more has to come, an error if it is none.
    fn take(received: &mut Vec<u8>) -> Result<Option<Self>, ()> {
        let Some(head) = received.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > BODY_MAX {
            return Err(());
        }
        let (kind, end) = (head[0], HEAD + length);
        if received.len() < end {
            return Ok(None);
        }
        let frame = Self::decode(kind, &received[HEAD..end]).ok_or(())?;
        received.drain(..end);
        Ok(Some(frame))
    }

    fn decode(kind: u8, mut body: &[u8]) -> Option<Self> {
        let body = &mut body;
        let frame = match kind {
            1 => Self::Finish(Finish {
                status: word(body)?.cast_signed(),
                is_cut: word(body)? != 0,
                cause: match body.is_empty() {
                    true => None,
                    false => Some(cause(body)?),
                },
            }),
            2 => Self::Question(id(body)?, What::of(word(body)?)?, word(body)?),
            3 => {
                let (id, mut parts) = (id(body)?, Parts::new());
                while !body.is_empty() {
                    let (node, length) = (word(body)?, word(body)? as usize);
                    let (bytes, rest) = body.split_at_checked(length)?;
                    parts.push((node, bytes.to_vec()));
                    *body = rest;
                }
                Self::Answer(id, parts)
            }
            4 => Self::Over(id(body)?),
            5 => Self::Settled,
            6 => Self::Errand(id(body)?, word(body)?, std::mem::take(body).to_vec()),
            7 => {
                let (id, has_words) = (id(body)?, word(body)? != 0);
                Self::Report(id, has_words.then(|| std::mem::take(body).to_vec()))
            }
            8 => Self::Word(std::mem::take(body).to_vec()),
            _ => return None,
        };
        body.is_empty().then_some(frame)
    }
}

fn word(body: &mut &[u8]) -> Option<u32> {
    let (word, rest) = body.split_first_chunk()?;
    *body = rest;
    Some(u32::from_le_bytes(*word))
}

fn cause(body: &mut &[u8]) -> Option<Cause> {
    let (node, signal) = (word(body)?, word(body)?.cast_signed());
    let signal = (signal != 0).then_some(signal);
    Some(Cause { node, signal })
}

fn id(body: &mut &[u8]) -> Option<Id> {
    let (origin, number) = (word(body)?, word(body)?);
    Some(Id { origin, number })
}

/// Has the kernel end a connection whose other end has been silent for so many seconds, and send short messages at
/// once. The other end reads at all times: the kernel takes one without room for silent.
///
/// # Errors
/// The system's.
pub fn keep_alive(stream: &TcpStream, silence: u32) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    let pause = (silence / PROBES).max(1);
    setsockopt(stream, sockopt::TcpKeepIdle, &pause)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &pause)?;
    let further = (silence / pause - 1).max(1);
    setsockopt(stream, sockopt::TcpKeepCount, &further)?;
    setsockopt(stream, sockopt::TcpUserTimeout, &(silence * 1000))?;
    Ok(())
}

impl Peer {
    pub fn new(stream: TcpStream, node: u32, silence: u32) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        keep_alive(&stream, silence)?;
        Ok(Self { stream, node, received: Vec::new(), outbox: Vec::new(), open: true, has_finished: false })
    }

    /// Whether it has neither ended nor been lost.
    pub fn is_at_work(&self) -> bool {
        self.open && !self.has_finished
    }

    /// What to poll for.
    pub fn awaited(&self) -> PollFlags {
        match self.outbox.is_empty() {
            true => PollFlags::POLLIN,
            false => PollFlags::POLLIN | PollFlags::POLLOUT,
        }
    }

    /// Sends a frame, or keeps what the system does not take now.
    pub fn send(&mut self, frame: &Frame) {
        self.outbox.extend(frame.encode());
        self.flush();
    }

    /// Sends what waits, as far as the system takes it.
    pub fn flush(&mut self) {
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(length) => drop(self.outbox.drain(..length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What else there is to say about it the next read says.
                Err(_) => return,
            }
        }
    }

    /// Waits until nothing runs behind it, or it has gone; whether that was before `until`.
    pub fn await_settled(&mut self, until: Instant) -> bool {
        let _ = self.stream.set_nonblocking(true);
        loop {
            let mut frames = Vec::new();
            let mut is_over = !self.open;
            while self.open && self.take(&mut frames).is_some() {}
            is_over |= !self.open || frames.contains(&Frame::Settled);
            let left = until.saturating_duration_since(Instant::now());
            if is_over || left.is_zero() {
                return is_over;
            }
            let mut sources = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            let left = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
            let _ = poll(&mut sources, PollTimeout::from(left));
        }
    }

    /// The last words, behind what still waits.
    pub fn say_goodbye(&mut self, words: &Frame) {
        self.outbox.extend(words.encode());
        // Whoever is gone needs not to be told.
        let _ = self.stream.set_nonblocking(false);
        let _ = self.stream.set_write_timeout(Some(GOODBYE_TIME));
        let _ = self.stream.write_all(&self.outbox);
        self.outbox.clear();
    }

    /// Whether the other system has all that was sent, or nothing comes there any more.
    pub fn has_arrived(&self) -> bool {
        sockets::has_arrived(self.stream.as_raw_fd())
    }

    /// Takes the frames that have come, and what has happened to the node if something has.
    pub fn take(&mut self, frames: &mut Vec<Frame>) -> Option<NodeEvent> {
        let end = self.read();
        loop {
            match Frame::take(&mut self.received) {
                Ok(Some(Frame::Finish(finish))) => {
                    self.has_finished = true;
                    self.open = finish.ends_job();
                    return Some(NodeEvent::Ended(self.node, finish));
                }
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(()) => {
                    self.open = false;
                    return Some(NodeEvent::Lost(self.node));
                }
            }
        }
        self.open = end.is_none();
        end
    }

    /// Reads what has come, as far as [`BODY_MAX`] allows for it.
    fn read(&mut self) -> Option<NodeEvent> {
        let mut buffer = vec![0; 16 << 10];
        while self.received.len() <= HEAD + BODY_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Some(NodeEvent::Lost(self.node)),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => break,
                    ErrorKind::TimedOut | ErrorKind::HostUnreachable => {
                        return Some(NodeEvent::Silent(self.node));
                    }
                    _ => return Some(NodeEvent::Lost(self.node)),
                },
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_as_many_parts_as_there_is_room_for() {
        let id = Id { origin: 3, number: 9 };
        let long = vec![7; BODY_MAX / 2];
        let parts = vec![(1, long.clone()), (2, long), (4, vec![1, 2, 3])];
        let mut bytes = Frame::answer(id, parts.clone()).encode();
        let answer = Frame::take(&mut bytes).expect("not too long");
        assert!(answer == Some(Frame::Answer(id, vec![parts[0].clone(), parts[2].clone()])));
    }

    #[test]
    fn frames_come_in_pieces_and_nonsense_is_noticed() {
        let id = Id { origin: 3, number: 9 };
        let frames = [
            Frame::Question(id, What::Ranks, 1500),
            Frame::Answer(id, vec![(1, b"abc".to_vec()), (4, Vec::new())]),
            Frame::Over(id),
            Frame::Finish(Finish { status: -7, is_cut: true, cause: None }),
            Frame::Finish(Finish { status: 1, is_cut: true, cause: Some(Cause { node: 5, signal: None }) }),
            Frame::Settled,
            Frame::Errand(id, 7, b"do this".to_vec()),
            Frame::Report(id, Some(Vec::new())),
            Frame::Report(id, None),
            Frame::Word(b"a word".to_vec()),
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        let (mut received, mut taken) = (Vec::new(), Vec::new());
        for byte in &bytes {
            received.push(*byte);
            taken.extend(Frame::take(&mut received).expect("well-formed"));
        }
        assert_eq!(taken, frames);
        for nonsense in [
            &[9, 0, 0, 0, 0][..],
            &[1, 255, 255, 255, 255],
            &[1, 2, 0, 0, 0, 1, 1],
            &[7, 13, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1],
            &[1, 10, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 7],
        ] {
            assert!(Frame::take(&mut nonsense.to_vec()).is_err(), "{nonsense:?}");
        }
    }
}

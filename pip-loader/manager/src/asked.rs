//! What `pip-exec` asks a rank that has an address space of its own: what it waits for, and how it sleeps.
//!
//! In such a rank a thread answers ([`serve`]), which sleeps otherwise. It has a socket of its own, which came to the
//! server with a line of PMI-1 (`cmd=asked`). A question is a byte that says what is asked and one that tells it from
//! others; an answer is the latter, the length of what follows, and that. A rank that does not answer in time, because
//! it is stopped or there is no CPU, is asked again when that answer has come.

use cohort_base::boot::Rest;
use cohort_base::picture::{FACT_BYTES, Fact};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Name of the thread that answers.
pub const THREAD: &str = "cohort-asked";

/// How long all ranks of a node may take to answer.
pub const PATIENCE: Duration = Duration::from_millis(200);

/// Longest answer that is believed.
const ANSWER_MAX: usize = 1 << 24;

/// Bytes before what an answer says: its number and its length.
const HEAD: usize = 9;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// How far the rank is, and its sleep.
    Rest = b'r' as isize,
    /// Also what it waits for, and what is in its queues.
    Look = b'l' as isize,
}

/// What a rank says.
#[derive(Clone, Debug)]
pub struct Said {
    /// A [`Lifecycle`](cohort_base::boot::Lifecycle).
    pub stage: u32,
    /// Its sleep ([`NodeApi::rest`](cohort_base::boot::NodeApi::rest)).
    pub rest: Rest,
    /// What a look tells ([`NodeApi::look`](cohort_base::boot::NodeApi::look)).
    pub facts: Vec<Fact>,
}

impl Said {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.stage.to_le_bytes().to_vec();
        bytes.extend([self.rest.threads, self.rest.number].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(self.facts.iter().flat_map(Fact::bytes));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (stage, bytes) = bytes.split_first_chunk()?;
        let (threads, bytes) = bytes.split_first_chunk()?;
        let (number, bytes) = bytes.split_first_chunk()?;
        let (facts, rest) = bytes.as_chunks::<FACT_BYTES>();
        let facts: Vec<Fact> = facts.iter().map(Fact::of_bytes).collect::<Option<_>>()?;
        let sleep = Rest { threads: u64::from_le_bytes(*threads), number: u64::from_le_bytes(*number) };
        rest.is_empty().then_some(Self { stage: u32::from_le_bytes(*stage), rest: sleep, facts })
    }
}

/// Answers until nobody can ask any more.
pub fn serve(mut stream: &UnixStream, answer: impl Fn(Question) -> Said) {
    let mut asked = [0; 2];
    while stream.read_exact(&mut asked).is_ok() {
        let [what, number] = asked;
        let question = if what == Question::Look as u8 { Question::Look } else { Question::Rest };
        let said = answer(question).encode();
        let mut bytes = vec![number];
        bytes.extend((said.len() as u64).to_le_bytes());
        bytes.extend(said);
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// Who asks one rank.
#[derive(Debug)]
pub struct Asker {
    stream: UnixStream,
    /// Of the last question.
    number: u8,
    /// Its answer has not come yet.
    is_open: bool,
    begun: Vec<u8>,
}

impl Asker {
    /// At this end of the connection.
    ///
    /// # Errors
    /// It is none.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, number: 0, is_open: false, begun: Vec::new() })
    }

    /// Asks, unless the rank still owes an answer to an older question; whether it did.
    fn ask(&mut self, question: Question) -> bool {
        if self.is_open {
            self.take();
        }
        if self.is_open {
            return false;
        }
        self.number = self.number.wrapping_add(1);
        self.is_open = matches!(self.stream.write(&[question as u8, self.number]), Ok(2));
        self.is_open
    }

    /// The answer, if it is there.
    fn take(&mut self) -> Option<Said> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(length @ 1..) => self.begun.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // It is gone, and no answer will come.
                _ => {
                    self.is_open = false;
                    break;
                }
            }
        }
        let (&number, rest) = self.begun.split_first()?;
        let (length, _) = rest.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok().filter(|&length| length <= ANSWER_MAX)?;
        if self.begun.len() < HEAD + length {
            return None;
        }
        let bytes: Vec<u8> = self.begun.drain(..HEAD + length).skip(HEAD).collect();
        self.is_open = false;
        Said::decode(&bytes).filter(|_| number == self.number)
    }
}

/// Asks ranks the same at once, and gives what those say that answer in time.
pub fn ask_all<'a>(askers: impl Iterator<Item = Option<&'a mut Asker>>, question: Question) -> Vec<Option<Said>> {
    let until = Instant::now() + PATIENCE;
    let mut askers: Vec<_> = askers.collect();
    let is_asked = |(index, asker): (usize, &mut Option<&mut Asker>)| asker.as_mut()?.ask(question).then_some(index);
    let mut owes: Vec<usize> = askers.iter_mut().enumerate().filter_map(is_asked).collect();
    let mut said: Vec<Option<Said>> = askers.iter().map(|_| None).collect();
    loop {
        owes.retain(|&index| {
            let Some(asker) = &mut askers[index] else {
                return false;
            };
            said[index] = asker.take();
            asker.is_open
        });
        let left = until.saturating_duration_since(Instant::now());
        if owes.is_empty() || left.is_zero() {
            return said;
        }
        let streams = owes.iter().filter_map(|&index| askers[index].as_ref());
        let source = |asker: &&mut Asker| {
            let (fd, events) = (asker.stream.as_raw_fd(), libc::POLLIN);
            libc::pollfd { fd, events, revents: 0 }
        };
        let mut sources: Vec<_> = streams.map(source).collect();
        let limit = left.as_millis().max(1) as i32;
        // SAFETY: records that are there. What fails is looked at again.
        unsafe { libc::poll(sources.as_mut_ptr(), sources.len() as libc::nfds_t, limit) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_base::picture::Told;
    use std::net::Shutdown;

    fn said(stage: u32, facts: usize) -> Said {
        let facts = vec![Fact::new(Told::Receive).named("rows"); facts];
        Said { stage, rest: Rest { threads: 1, number: 7 }, facts }
    }

    #[test]
    fn what_ranks_say_arrives() {
        let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().expect("descriptors")).collect();
        let (own, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let mut askers: Vec<_> = own.into_iter().map(|stream| Asker::new(stream).expect("a socket")).collect();
        std::thread::scope(|scope| {
            for (stage, stream) in (0..).zip(&theirs) {
                // Long enough to come in several pieces.
                let facts = |question| if question == Question::Look { 5000 } else { 0 };
                scope.spawn(move || serve(stream, |question| said(stage, facts(question))));
            }
            for question in [Question::Rest, Question::Look, Question::Rest] {
                let mut answers = Vec::new();
                while answers.len() < 3 {
                    let all = ask_all(askers.iter_mut().map(Some), question);
                    answers = all.into_iter().flatten().collect();
                }
                for (stage, answer) in (0..).zip(answers) {
                    assert_eq!((answer.stage, answer.rest.number), (stage, 7));
                    assert_eq!(answer.facts.len(), if question == Question::Look { 5000 } else { 0 });
                    assert!(answer.facts.iter().all(|fact| fact.name() == "rows"));
                }
            }
            drop(askers);
        });
    }

    #[test]
    fn who_does_not_answer_is_left_out_and_asked_again() {
        let (own, theirs) = UnixStream::pair().expect("descriptors");
        let mut asker = Asker::new(own).expect("a socket");
        let mut ask = || ask_all([None, Some(&mut asker)].into_iter(), Question::Rest).pop().flatten();
        assert!(ask().is_none() && ask().is_none(), "nobody serves it");
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&theirs, |_| said(1, 0)));
            while ask().is_none() {}
            theirs.shutdown(Shutdown::Both).expect("a socket");
        });
        let (own, theirs) = UnixStream::pair().expect("descriptors");
        drop(theirs);
        let mut asker = Asker::new(own).expect("a socket");
        let begun = Instant::now();
        assert!(ask_all([Some(&mut asker)].into_iter(), Question::Look)[0].is_none());
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn nonsense_is_no_answer() {
        let bytes = said(1, 2).encode();
        assert!(Said::decode(&bytes).is_some());
        for cut in [0, 3, 19, bytes.len() - 1] {
            assert!(Said::decode(&bytes[..cut]).is_none(), "{cut}");
        }
    }
}

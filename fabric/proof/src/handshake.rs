//! One end's part in the proof, as a state machine over bytes.
//!
//! Its user repeats, until [`Handshake::proven`] or a refusal: write [`Handshake::output`] as far as
//! the stream takes it and tell [`Handshake::sent`]; read at most [`Handshake::wanted`] bytes and give
//! them to [`Handshake::receive`]. So nothing is read that belongs to what follows the proof.

use crate::{ANSWER, Answer, Challenge, HELLO, Keys, Nonce, Purpose, REPLY, Secret, Side};
use core::fmt;

/// Why the other end is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not speak this protocol, or another version of it.
    Protocol,
    /// It wants another service or node than the one that listens here.
    Address,
    /// It does not know the secret.
    Answer,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Protocol => "it does not speak as nodes of a job do",
            Self::Address => "it looks for somebody else",
            Self::Answer => "it does not know the secret of this job",
        })
    }
}

impl core::error::Error for Refused {}

/// What both ends know when each has proved itself.
#[derive(Clone, Debug)]
pub struct Proven {
    /// Who connected with whom.
    pub purpose: Purpose,
    /// The keys of this connection.
    pub keys: Keys,
}

/// What comes next.
#[derive(Debug)]
enum Step {
    /// Acceptor: the challenge.
    Hello { service: u32, own: u32, nonce: Nonce },
    /// Initiator: the acceptor's nonce and answer.
    Reply(Challenge),
    /// Acceptor: the initiator's answer.
    Answer(Challenge, Nonce),
    /// Nothing: it is proven.
    Proven(Proven),
    /// Nothing: it was refused.
    Refused(Refused),
}

/// One end of a connection that is being proven.
#[derive(Debug)]
pub struct Handshake {
    secret: Secret,
    step: Step,
    input: [u8; REPLY],
    filled: usize,
    output: [u8; REPLY],
    /// What of `output` is still to be written.
    unsent: core::ops::Range<usize>,
}

impl Handshake {
    /// The initiator's side. Nobody has seen `nonce` before.
    #[must_use]
    pub fn connect(secret: Secret, purpose: Purpose, nonce: Nonce) -> Self {
        let challenge = Challenge { purpose, nonce };
        let mut this = Self::new(secret, Step::Reply(challenge));
        this.say(&challenge.to_bytes());
        this
    }

    /// The acceptor's side, for a listener of node `own` that offers `service`. Nobody has seen
    /// `nonce` before.
    #[must_use]
    pub fn accept(secret: Secret, service: u32, own: u32, nonce: Nonce) -> Self {
        let step = Step::Hello { service, own, nonce };
        Self::new(secret, step)
    }

    fn new(secret: Secret, step: Step) -> Self {
        Self { secret, step, input: [0; REPLY], filled: 0, output: [0; REPLY], unsent: 0..0 }
    }

    /// The bytes to be written next; empty when there is nothing to say.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output[self.unsent.clone()]
    }

    /// The first `length` bytes of [`Handshake::output`] are written.
    pub fn sent(&mut self, length: usize) {
        self.unsent.start = self.unsent.end.min(self.unsent.start + length);
    }

    /// How many more bytes it takes now. 0 when nothing more is to be read for the proof.
    #[must_use]
    pub fn wanted(&self) -> usize {
        let whole = match self.step {
            Step::Hello { .. } => HELLO,
            Step::Reply(_) => REPLY,
            Step::Answer(..) => ANSWER,
            Step::Proven(_) | Step::Refused(_) => 0,
        };
        whole - self.filled
    }

    /// Takes bytes that came, at most [`Handshake::wanted`] of them; what is beyond is not looked at.
    ///
    /// # Errors
    /// The other end is not believed, now and for ever: close the connection.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let taken = &bytes[..bytes.len().min(self.wanted())];
        self.input[self.filled..][..taken.len()].copy_from_slice(taken);
        self.filled += taken.len();
        if !taken.is_empty() && self.wanted() == 0 {
            self.filled = 0;
            self.step = self.next().unwrap_or_else(Step::Refused);
        }
        match self.step {
            Step::Refused(reason) => Err(reason),
            _ => Ok(()),
        }
    }

    /// Who the other end says that it is, while it still has to prove that. For the acceptor.
    #[must_use]
    pub fn claim(&self) -> Option<Purpose> {
        match self.step {
            Step::Answer(challenge, _) => Some(challenge.purpose),
            _ => None,
        }
    }

    /// What is proven, once the other end has proved itself and all of the own words are written.
    #[must_use]
    pub fn proven(&self) -> Option<&Proven> {
        match &self.step {
            Step::Proven(proven) if self.unsent.is_empty() => Some(proven),
            _ => None,
        }
    }

    /// The step after this one, whose input is whole.
    fn next(&mut self) -> Result<Step, Refused> {
        let input = self.input;
        match self.step {
            Step::Hello { service, own, nonce } => {
                let hello = input.first_chunk().ok_or(Refused::Protocol)?;
                let challenge = Challenge::parse(hello).ok_or(Refused::Protocol)?;
                if (challenge.purpose.service, challenge.purpose.to) != (service, own) {
                    return Err(Refused::Address);
                }
                let answer = self.secret.answer(Side::Acceptor, &challenge, &nonce);
                self.say(&nonce);
                self.say(&answer.to_bytes());
                Ok(Step::Answer(challenge, nonce))
            }
            Step::Reply(challenge) => {
                let (nonce, said) = input.split_first_chunk().ok_or(Refused::Protocol)?;
                self.check(Side::Acceptor, &challenge, nonce, said)?;
                let answer = self.secret.answer(Side::Initiator, &challenge, nonce);
                self.say(&answer.to_bytes());
                Ok(self.prove(&challenge, nonce))
            }
            Step::Answer(challenge, nonce) => {
                self.check(Side::Initiator, &challenge, &nonce, &input)?;
                Ok(self.prove(&challenge, &nonce))
            }
            Step::Proven(_) | Step::Refused(_) => Err(Refused::Protocol),
        }
    }

    fn check(&self, side: Side, challenge: &Challenge, nonce: &Nonce, said: &[u8]) -> Result<(), Refused> {
        let said = *said.first_chunk().ok_or(Refused::Protocol)?;
        match self.secret.answer(side, challenge, nonce) == Answer::from_bytes(said) {
            true => Ok(()),
            false => Err(Refused::Answer),
        }
    }

    fn prove(&self, challenge: &Challenge, nonce: &Nonce) -> Step {
        Step::Proven(Proven { purpose: challenge.purpose, keys: self.secret.keys(challenge, nonce) })
    }

    /// Adds to the output. What was said before has been written: the other end answered it.
    fn say(&mut self, bytes: &[u8]) {
        if self.unsent.is_empty() {
            self.unsent = 0..0;
        }
        let end = self.unsent.end;
        if let Some(place) = self.output.get_mut(end..end + bytes.len()) {
            place.copy_from_slice(bytes);
            self.unsent.end += bytes.len();
        }
    }
}

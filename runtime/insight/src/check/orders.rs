//! Receives from any source that could have taken a message which a later receive names: that one would wait for ever.
//!
//! It is told at the end, when all messages are known, and only where nothing else could have helped: every message of
//! that sender with that tag was taken by a receive that named the sender.

use super::findings::{Findings, Site};
use alloc::collections::{BTreeMap, BTreeSet};
use cohort_base::check::Mistake;

/// A sender's rank in the communicator, and a tag.
pub type Origin = (i32, i32);

/// A receive from any source, and what it could have taken.
struct Could {
    receive: Site,
    sender: Site,
    source: i32,
    other: Site,
}

/// Most origins that are followed for a member of a communicator; of more nothing is said.
const MOST: usize = 4096;

/// What is known of the messages of a communicator to one of its members.
#[derive(Default)]
pub struct Orders {
    could: BTreeMap<Origin, Could>,
    /// Origins of messages that receives from any source have taken.
    open: BTreeSet<Origin>,
    /// The last receive that named its source.
    named: BTreeMap<Origin, Site>,
    is_full: bool,
}

impl Orders {
    /// A receive has taken a message.
    pub fn took(&mut self, origin: Origin, receive: Site, was_open: bool) {
        match was_open {
            _ if self.is_full => {}
            true => drop(self.open.insert(origin)),
            false => drop(self.named.insert(origin, receive)),
        }
        if self.open.len().max(self.named.len()) > MOST {
            *self = Self { is_full: true, ..Self::default() };
        }
    }

    /// A receive from any source, which has taken what `sender` has sent from `source`, could have taken a message of
    /// this origin, which `other` has sent.
    pub fn could(&mut self, origin: Origin, (receive, sender, source): (Site, Site, i32), other: Site) {
        if !self.is_full && self.could.len() < MOST {
            self.could.entry(origin).or_insert(Could { receive, sender, source, other });
        }
    }

    /// Tells of those that would have been missed. `is_left`: a message of this origin was not received.
    pub fn tell(&self, is_left: impl Fn(Origin) -> bool, findings: &mut Findings) {
        for (&origin, could) in &self.could {
            let Some(named) = self.named.get(&origin).filter(|_| !self.open.contains(&origin) && !is_left(origin))
            else {
                continue;
            };
            let places = [
                could.receive.did("receives"),
                could.sender.did("was taken"),
                could.other.did("could have been taken"),
                named.did("would wait for ever then"),
            ];
            let (taken, other) = (could.source, origin.0);
            let values = format_args!("from rank {taken} or rank {other}, of which nothing else comes");
            findings.add(Mistake::Wildcards, &places, values);
        }
    }
}

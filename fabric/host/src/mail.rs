//! What has come for a rank while somebody else used what the node's ranks share: a rail, or an endpoint.
//!
//! Whoever reads a connection finds events of several ranks there. Those of the rank for which it looks go to the
//! engine at once; the others go into their ranks' mail, and are taken from there by the next call for that rank: its
//! owner's or a thief's. So a rank that does not call holds nobody up. Its mail is bounded by the windows
//! of those that send to it, and by its own operations.
//!
//! # Order
//! Events of one connection are put into the mail, or given to the engine, by who holds the lock of the rail or the
//! endpoint. While there is mail for a rank, new events for it go behind that.

use cohort_base::lock::FutexLock;
use cohort_fabric::{Event, LocalRank, Token, WorldRank};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// An event that waits.
#[derive(Debug)]
enum Letter {
    Packet {
        from: WorldRank,
        bytes: Box<[u8]>,
    },
    Completed(Token),
    Failed {
        token: Token,
        code: i32,
    },
    /// Ranks that are lost together.
    Lost {
        group: u32,
        code: i32,
    },
}

/// One rank's mail.
#[derive(Debug, Default)]
pub struct Mail {
    letters: FutexLock<VecDeque<Letter>>,
    /// Whether there are letters, for looks without the lock.
    waits: AtomicBool,
}

impl Mail {
    /// Whether something has come.
    #[must_use]
    #[inline]
    pub fn waits(&self) -> bool {
        // Acquire pairs with the Release of `put`.
        self.waits.load(Ordering::Acquire)
    }

    fn put(&self, letter: Letter) {
        let mut letters = self.letters.lock();
        letters.push_back(letter);
        self.waits.store(true, Ordering::Release);
    }

    fn take(&self) -> Option<Letter> {
        let mut letters = self.letters.lock();
        let letter = letters.pop_front();
        if letters.is_empty() {
            self.waits.store(false, Ordering::Release);
        }
        letter
    }

    /// Puts the loss of a group of ranks into the mail, by a number that the transport gives it.
    pub fn put_loss(&self, group: u32, code: i32) {
        self.put(Letter::Lost { group, code });
    }

    /// Gives at most `most` letters to the engine; returns how many. `ranks_of` knows the ranks of a group.
    pub fn deliver<R: IntoIterator<Item = WorldRank>>(
        &self,
        most: u32,
        ranks_of: impl Fn(u32) -> R,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> u32 {
        let mut given = 0;
        while given < most
            && self.waits()
            && let Some(letter) = self.take()
        {
            given += 1;
            match letter {
                Letter::Packet { from, bytes } => sink(Event::Packet { from, bytes: &bytes }),
                Letter::Completed(token) => sink(Event::Completed(token)),
                Letter::Failed { token, code } => sink(Event::Failed { token, code }),
                Letter::Lost { group, code } => {
                    for rank in ranks_of(group) {
                        sink(Event::Lost { rank, code });
                    }
                }
            }
        }
        given
    }
}

/// What the engine passed with an operation, and for which of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The rank.
    pub rank: LocalRank,
    /// The engine's token.
    pub token: Token,
}

/// The engine, for the rank that a call is for.
struct Taker<'a> {
    rank: LocalRank,
    /// How many events it still takes.
    left: u32,
    sink: &'a mut dyn FnMut(Event<'_>),
}

/// Where events go in a call: to the engine, or into ranks' mail.
pub struct Delivery<'a> {
    mail: &'a [Mail],
    /// Who takes events at once.
    taker: Option<Taker<'a>>,
    /// Events that the engine took.
    pub given: u32,
    /// Something went into mail.
    pub posted: bool,
    /// The system has given or taken bytes.
    pub flows: bool,
}

impl<'a> Delivery<'a> {
    /// All events go into mail.
    #[must_use]
    pub fn to_mail(mail: &'a [Mail]) -> Self {
        Self { mail, taker: None, given: 0, posted: false, flows: false }
    }

    /// Events of `rank` go to the engine, at most `most` of them.
    pub fn to_engine(mail: &'a [Mail], rank: LocalRank, most: u32, sink: &'a mut dyn FnMut(Event<'_>)) -> Self {
        Self { taker: Some(Taker { rank, left: most, sink }), ..Self::to_mail(mail) }
    }

    /// Gives an event to the engine if it takes any of this rank now.
    #[inline]
    fn give(&mut self, rank: LocalRank, event: Event<'_>) -> bool {
        match &mut self.taker {
            Some(taker) if taker.rank == rank && taker.left > 0 && !self.mail[rank as usize].waits() => {
                taker.left -= 1;
                self.given += 1;
                (taker.sink)(event);
                true
            }
            _ => false,
        }
    }

    fn post(&mut self, rank: LocalRank, letter: Letter) {
        self.posted = true;
        self.mail[rank as usize].put(letter);
    }

    /// A packet has come.
    #[inline]
    pub fn packet(&mut self, to: LocalRank, from: WorldRank, bytes: &[u8]) {
        if !self.give(to, Event::Packet { from, bytes }) {
            let bytes = bytes.into();
            self.post(to, Letter::Packet { from, bytes });
        }
    }

    /// An operation is complete.
    pub fn completed(&mut self, ticket: Ticket) {
        if !self.give(ticket.rank, Event::Completed(ticket.token)) {
            self.post(ticket.rank, Letter::Completed(ticket.token));
        }
    }

    /// An operation has failed.
    pub fn failed(&mut self, ticket: Ticket, code: i32) {
        let token = ticket.token;
        if !self.give(ticket.rank, Event::Failed { token, code }) {
            self.post(ticket.rank, Letter::Failed { token, code });
        }
    }

    /// Ranks are lost together, for some of this node's: the number of the group, and why.
    #[cold]
    pub fn lost(&mut self, of: impl Iterator<Item = LocalRank>, group: u32, code: i32) {
        for rank in of {
            self.post(rank, Letter::Lost { group, code });
        }
    }

    /// Whether the call takes no more events.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.taker.as_ref().is_some_and(|taker| taker.left == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(mail: &Mail, most: u32) -> Vec<String> {
        let mut texts = Vec::new();
        mail.deliver(most, |_| [4, 5], &mut |event| texts.push(format!("{event:?}")));
        texts
    }

    #[test]
    fn events_of_others_wait_in_order() {
        let mail = [Mail::default(), Mail::default()];
        let mut taken = Vec::new();
        let mut sink = |event: Event<'_>| taken.push(format!("{event:?}"));
        let mut delivery = Delivery::to_engine(&mail, 0, 2, &mut sink);
        let ticket = |rank, token| Ticket { rank, token };
        delivery.completed(ticket(1, 10));
        delivery.completed(ticket(0, 1));
        delivery.completed(ticket(0, 2));
        assert!(delivery.is_full() && delivery.posted && delivery.given == 2);
        // Its budget is used up: the rest waits.
        delivery.completed(ticket(0, 3));
        delivery.packet(1, 9, b"data");
        assert_eq!(taken, ["Completed(1)", "Completed(2)"]);
        // What comes later goes behind what waits.
        let mut late = Vec::new();
        let mut sink = |event: Event<'_>| late.push(format!("{event:?}"));
        let mut delivery = Delivery::to_engine(&mail, 0, 2, &mut sink);
        delivery.completed(ticket(0, 4));
        assert!(late.is_empty());
        assert_eq!(texts(&mail[0], 9), ["Completed(3)", "Completed(4)"]);
        assert_eq!(texts(&mail[1], 1), ["Completed(10)"]);
        assert!(mail[1].waits());
        assert_eq!(texts(&mail[1], 9).len(), 1);
        assert!(!mail[1].waits());
    }

    #[test]
    fn a_lost_group_is_all_of_its_ranks() {
        let mail = Mail::default();
        mail.put_loss(3, 104);
        let lost = texts(&mail, 1);
        assert_eq!(lost, ["Lost { rank: 4, code: 104 }", "Lost { rank: 5, code: 104 }"]);
    }
}

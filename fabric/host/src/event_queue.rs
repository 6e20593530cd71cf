//! What has come for a rank while somebody else used what the node's ranks share: a rail, or an endpoint.
//!
//! Whoever reads a connection finds events of several ranks there. Those of the rank for which it looks go to the
//! engine at once; the others go into their ranks' queues, and are taken from there by the next call for that rank: its
//! owner's or a thief's. So a rank that does not call holds nobody up. Its queue is bounded by the windows
//! of those that send to it, and by its own operations.
//!
//! # Order
//! Events of one connection are put into the queue, or given to the engine, by who holds the lock of the rail or the
//! endpoint. While a rank's queue has events, new events for it go behind that.

use cohort_base::lock::FutexLock;
use cohort_fabric::{Event, LocalRank, Place, Token, WorldRank};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// An event that waits.
#[derive(Debug)]
enum QueuedEvent {
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

/// One rank's events.
#[derive(Debug, Default)]
pub struct EventQueue {
    events: FutexLock<VecDeque<QueuedEvent>>,
    /// Whether there are events, for looks without the lock.
    waits: AtomicBool,
}

impl EventQueue {
    /// Whether something has come.
    #[must_use]
    #[inline]
    pub fn waits(&self) -> bool {
        // Acquire pairs with the Release of `put`.
        self.waits.load(Ordering::Acquire)
    }

    fn put(&self, event: QueuedEvent) {
        let mut events = self.events.lock();
        events.push_back(event);
        self.waits.store(true, Ordering::Release);
    }

    fn take(&self) -> Option<QueuedEvent> {
        let mut events = self.events.lock();
        let event = events.pop_front();
        if events.is_empty() {
            self.waits.store(false, Ordering::Release);
        }
        event
    }

    /// Puts the loss of a group of ranks into the queue, by a number that the transport gives it.
    pub fn put_loss(&self, group: u32, code: i32) {
        self.put(QueuedEvent::Lost { group, code });
    }

    /// Gives at most `most` events to the engine; returns how many. `ranks_of` knows the ranks of a group.
    pub fn deliver<R: IntoIterator<Item = WorldRank>>(
        &self,
        most: u32,
        ranks_of: impl Fn(u32) -> R,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> u32 {
        let mut given = 0;
        while given < most
            && self.waits()
            && let Some(event) = self.take()
        {
            given += 1;
            match event {
                QueuedEvent::Packet { from, bytes } => sink(Event::Packet { from, bytes: &bytes }),
                QueuedEvent::Completed(token) => sink(Event::Completed(token)),
                QueuedEvent::Failed { token, code } => sink(Event::Failed { token, code }),
                QueuedEvent::Lost { group, code } => {
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

/// Where events go in a call: to the engine, or into ranks' queues.
pub struct Delivery<'a> {
    queues: &'a [EventQueue],
    /// Who takes events at once.
    taker: Option<Taker<'a>>,
    /// Events that the engine took.
    pub given: u32,
    /// Something went into a queue.
    pub posted: bool,
    /// The system has given or taken bytes.
    pub flows: bool,
}

impl<'a> Delivery<'a> {
    /// All events go into a queue.
    #[must_use]
    pub fn to_queues(queues: &'a [EventQueue]) -> Self {
        Self { queues, taker: None, given: 0, posted: false, flows: false }
    }

    /// Events of `rank` go to the engine, at most `most` of them.
    pub fn to_engine(queues: &'a [EventQueue], rank: LocalRank, most: u32, sink: &'a mut dyn FnMut(Event<'_>)) -> Self {
        Self { taker: Some(Taker { rank, left: most, sink }), ..Self::to_queues(queues) }
    }

    /// The engine, if it takes any event of this rank now.
    #[inline]
    fn taker_of(&mut self, rank: LocalRank) -> Option<&mut Taker<'a>> {
        let queues = self.queues;
        let taker = self.taker.as_mut();
        taker.filter(|taker| taker.rank == rank && taker.left > 0 && !queues[rank as usize].waits())
    }

    /// Gives an event to the engine if it takes any of this rank now.
    #[inline]
    fn give(&mut self, rank: LocalRank, event: Event<'_>) -> bool {
        let Some(taker) = self.taker_of(rank) else {
            return false;
        };
        taker.left -= 1;
        (taker.sink)(event);
        self.given += 1;
        true
    }

    /// A packet is coming: asks the engine where the missing bytes go. None if the packet is to be given as a whole.
    pub fn begins(&mut self, to: LocalRank, from: WorldRank, bytes: &[u8], rest: usize) -> Option<Place> {
        let taker = self.taker_of(to)?;
        let place = Cell::new(None);
        (taker.sink)(Event::Begins { from, bytes, rest, place: &place });
        place.get()
    }

    fn post(&mut self, rank: LocalRank, event: QueuedEvent) {
        self.posted = true;
        self.queues[rank as usize].put(event);
    }

    /// A packet has come.
    #[inline]
    pub fn packet(&mut self, to: LocalRank, from: WorldRank, bytes: &[u8]) {
        if !self.give(to, Event::Packet { from, bytes }) {
            let bytes = bytes.into();
            self.post(to, QueuedEvent::Packet { from, bytes });
        }
    }

    /// An operation is complete.
    pub fn completed(&mut self, ticket: Ticket) {
        if !self.give(ticket.rank, Event::Completed(ticket.token)) {
            self.post(ticket.rank, QueuedEvent::Completed(ticket.token));
        }
    }

    /// An operation has failed.
    pub fn failed(&mut self, ticket: Ticket, code: i32) {
        let token = ticket.token;
        if !self.give(ticket.rank, Event::Failed { token, code }) {
            self.post(ticket.rank, QueuedEvent::Failed { token, code });
        }
    }

    /// Ranks are lost together, for some of this node's: the number of the group, and why.
    #[cold]
    pub fn lost(&mut self, of: impl Iterator<Item = LocalRank>, group: u32, code: i32) {
        for rank in of {
            self.post(rank, QueuedEvent::Lost { group, code });
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

    fn texts(queue: &EventQueue, most: u32) -> Vec<String> {
        let mut texts = Vec::new();
        queue.deliver(most, |_| [4, 5], &mut |event| texts.push(format!("{event:?}")));
        texts
    }

    #[test]
    fn events_of_others_wait_in_order() {
        let queues = [EventQueue::default(), EventQueue::default()];
        let mut taken = Vec::new();
        let mut sink = |event: Event<'_>| taken.push(format!("{event:?}"));
        let mut delivery = Delivery::to_engine(&queues, 0, 2, &mut sink);
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
        let mut delivery = Delivery::to_engine(&queues, 0, 2, &mut sink);
        delivery.completed(ticket(0, 4));
        assert!(late.is_empty());
        assert_eq!(texts(&queues[0], 9), ["Completed(3)", "Completed(4)"]);
        assert_eq!(texts(&queues[1], 1), ["Completed(10)"]);
        assert!(queues[1].waits());
        assert_eq!(texts(&queues[1], 9).len(), 1);
        assert!(!queues[1].waits());
    }

    #[test]
    fn a_lost_group_is_all_of_its_ranks() {
        let queue = EventQueue::default();
        queue.put_loss(3, 104);
        let lost = texts(&queue, 1);
        assert_eq!(lost, ["Lost { rank: 4, code: 104 }", "Lost { rank: 5, code: 104 }"]);
    }
}

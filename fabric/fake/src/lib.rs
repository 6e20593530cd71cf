//! A network within one process, for tests of what runs above a [`Transport`].
//!
//! A [`Job`] joins several nodes; each [`Node`] is the transport of one. Everything happens in the
//! calls: a packet lies in its receiver's queue when `send` returns, or, if it is longer than
//! [`Options::inject`], stays in its sender's memory until somebody polls at the other end. Reads, writes and
//! completions happen when their endpoint is polled. So a test that polls decides what has happened.
//!
//! It checks what the contract asks of its user: one call at a time for each endpoint, no call from
//! within a sink, packets and transfers within the limits; a breach is a panic. Memory of a pending
//! packet is read late, so a sender that reuses it early sends wrong bytes.
//!
//! Faults on request: [`Job::lose`], [`Job::fail_next`], short queues, completions in any order.

mod state;

#[cfg(test)]
mod tests;

use cohort_fabric::{
    Budget, Event, Limits, LocalRank, Packet, Place, Polled, ROOT, Refused, Region, Sent, Token, Transfer, Transport,
    WorldRank,
};
use state::{Shared, Waiting};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How the network behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// [`Limits::packet`].
    pub packet: usize,
    /// [`Limits::transfer`]; 0 makes a network without reads and writes.
    pub transfer: usize,
    /// Packets that a receiver's queue holds; one more is [`Refused::Busy`].
    pub queue: usize,
    /// Operations under way at an endpoint; one more is [`Refused::Busy`].
    pub operations: usize,
    /// Bytes of the longest packet that is [`Sent::Done`] at once.
    pub inject: usize,
    /// Packets of so many bytes and more come apart: first their half ([`Event::Begins`]).
    pub apart: usize,
    /// Regions begin at address 0.
    pub offsets: bool,
    /// Operations of an endpoint complete in any order.
    pub reorder: bool,
    /// Where random choices begin.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            packet: 4096,
            transfer: 1 << 20,
            queue: 64,
            operations: 64,
            inject: 256,
            apart: 512,
            offsets: false,
            reorder: false,
            seed: 1,
        }
    }
}

/// A job of several nodes.
#[derive(Clone, Debug)]
pub struct Job {
    shared: Arc<Shared>,
}

impl Job {
    /// Joins nodes; `nodes[n][l]` is the world rank of local rank `l` of node `n`.
    ///
    /// # Panics
    /// The ranks are not each of `0..` once.
    #[must_use]
    pub fn new(nodes: &[&[WorldRank]], options: Options) -> Self {
        Self { shared: Arc::new(Shared::new(nodes, options)) }
    }

    /// The transport of a node.
    ///
    /// # Panics
    /// There is no such node.
    #[must_use]
    pub fn node(&self, number: usize) -> Node {
        let ranks = self.shared.nodes[number].ranks.clone();
        Node {
            shared: Arc::clone(&self.shared),
            number,
            inside: ranks.iter().map(|_| AtomicBool::new(false)).collect(),
            ranks,
        }
    }

    /// Cuts off a rank: every endpoint of other nodes gets [`Event::Lost`], operations with it fail, later
    /// ones are refused. What has arrived is still delivered.
    pub fn lose(&self, rank: WorldRank, code: i32) {
        self.shared.lose(rank, code);
    }

    /// Makes the next operation of a rank that is completed by a token fail with `code`.
    pub fn fail_next(&self, rank: WorldRank, code: i32) {
        self.shared.fail_next(rank, code);
    }

    /// Regions that are exposed and not withdrawn.
    #[must_use]
    pub fn exposed(&self) -> usize {
        self.shared.exposed()
    }
}

/// One node's [`Transport`]. `Network::of(Box::leak(Box::new(node)))` makes the record of it.
#[derive(Debug)]
pub struct Node {
    shared: Arc<Shared>,
    number: usize,
    ranks: Vec<WorldRank>,
    /// Whether a call is inside, for each endpoint.
    inside: Vec<AtomicBool>,
}

/// A call that names an endpoint.
struct Inside<'a>(&'a AtomicBool);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Node {
    fn enter(&self, endpoint: LocalRank, caller: LocalRank) -> (WorldRank, Inside<'_>) {
        assert!((caller as usize) < self.ranks.len(), "caller {caller}");
        let inside = &self.inside[endpoint as usize];
        let before = inside.swap(true, Ordering::Acquire);
        assert!(!before, "two calls at once, or one from a sink, for endpoint {endpoint}");
        (self.ranks[endpoint as usize], Inside(inside))
    }
}

impl Node {
    /// Gives the beginning of a packet, and the rest to where the engine wants it. False if it wants the whole.
    fn comes_apart(&self, own: WorldRank, event: &Waiting, sink: &mut dyn FnMut(Event<'_>)) -> bool {
        let Waiting::Packet { from, bytes } = event else {
            return false;
        };
        if bytes.len() < self.shared.options.apart {
            return false;
        }
        let (bytes, rest) = bytes.split_at(bytes.len() / 2);
        let place = Cell::new(None);
        sink(Event::Begins { from: *from, bytes, rest: rest.len(), place: &place });
        let Some(Place { memory, token }) = place.get() else {
            return false;
        };
        // SAFETY: the engine has given memory for the rest, until the completion that follows.
        unsafe { memory.copy_from_nonoverlapping(rest.as_ptr(), rest.len()) };
        self.shared.complete(own, token);
        true
    }
}

// SAFETY: `state` reads the memory of an operation no later than when it queues its completion.
unsafe impl Transport for Node {
    fn limits(&self) -> Limits {
        Limits { packet: self.shared.options.packet, transfer: self.shared.options.transfer }
    }

    unsafe fn send(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused> {
        let (own, _inside) = self.enter(endpoint, caller);
        self.shared.send(own, to, packet, token)
    }

    fn send_now(&self, endpoint: LocalRank, caller: LocalRank, to: WorldRank, packets: &[Packet<'_>]) -> bool {
        let (own, _inside) = self.enter(endpoint, caller);
        self.shared.send_now(own, to, packets)
    }

    unsafe fn expose(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        start: *mut u8,
        length: usize,
    ) -> Result<Region, Refused> {
        let (own, _inside) = self.enter(endpoint, caller);
        Ok(self.shared.expose(own, start, length))
    }

    fn withdraw(&self, endpoint: LocalRank, caller: LocalRank, region: Region) {
        let (own, _inside) = self.enter(endpoint, caller);
        self.shared.withdraw(own, region);
    }

    unsafe fn transfer(&self, endpoint: LocalRank, caller: LocalRank, transfer: Transfer) -> Result<(), Refused> {
        let (own, _inside) = self.enter(endpoint, caller);
        self.shared.transfer(own, transfer)
    }

    fn poll(&self, endpoint: LocalRank, caller: LocalRank, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> Polled {
        let (own, _inside) = self.enter(endpoint, caller);
        let mut found = 0;
        while found < budget.events {
            let Some(event) = self.shared.take(own) else {
                break;
            };
            if !self.comes_apart(own, &event, sink) {
                sink(event.borrow());
            }
            found += 1;
        }
        Polled::events(found)
    }

    fn owes(&self, endpoint: LocalRank) -> bool {
        assert!((endpoint as usize) < self.ranks.len());
        false
    }

    fn watch(&self, caller: LocalRank, limit: Option<Duration>, others: &[i32]) {
        assert!((caller as usize) < self.ranks.len());
        self.shared.watch(self.number, limit, others);
    }

    fn interrupt(&self, caller: LocalRank) {
        assert!((caller as usize) < self.ranks.len() || caller == ROOT);
        self.shared.interrupt(self.number);
    }
}

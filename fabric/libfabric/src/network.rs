//! The transport of a node: takes a seat and the endpoint's lock, then calls the endpoint.

use crate::endpoint::{Endpoint, Transfer};
use crate::guard::Guard;
use crate::job::Job;
use crate::seat::Seats;
use crate::watch::Watch;
use cohort_fabric::{
    Event, Limits, LocalRank, Packet, Refused, Region, Sent, Token, Transport, WorldRank,
};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One endpoint and its lock. The claim of its rank keeps callers apart; the lock keeps the
/// watcher out, who has no claim.
#[derive(Debug)]
struct End {
    locked: AtomicBool,
    endpoint: UnsafeCell<Endpoint>,
}

// SAFETY: the endpoint is reached through `Locked` only, which one task has at a time.
unsafe impl Sync for End {}

/// The right to use an endpoint.
struct Locked<'a>(&'a End);

impl End {
    /// Waits for the lock, which nobody holds for longer than a call.
    fn lock(&self) -> Locked<'_> {
        // Acquire pairs with the Release of `Locked::drop`.
        while self.locked.swap(true, Ordering::Acquire) {
            while self.locked.load(Ordering::Relaxed) {
                // The holder may have lost its processor.
                std::thread::yield_now();
            }
        }
        Locked(self)
    }
}

impl Locked<'_> {
    fn get(&mut self) -> &mut Endpoint {
        // SAFETY: there is one `Locked` of an end at a time.
        unsafe { &mut *self.0.endpoint.get() }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.locked.store(false, Ordering::Release);
    }
}

/// The network of a node.
#[derive(Debug)]
pub struct Network {
    limits: Limits,
    ends: Vec<End>,
    watch: Watch,
    /// Stopped before anything that it looks at is dropped.
    _guard: Option<Guard>,
    seats: Seats,
}

impl Network {
    /// A network of endpoints that are open.
    #[must_use]
    pub fn new(
        limits: Limits,
        endpoints: Vec<Endpoint>,
        seats: Seats,
        watch: Watch,
        guard: Option<Guard>,
    ) -> Self {
        let end = |endpoint| End {
            locked: AtomicBool::new(false),
            endpoint: UnsafeCell::new(endpoint),
        };
        Self {
            limits,
            ends: endpoints.into_iter().map(end).collect(),
            watch,
            _guard: guard,
            seats,
        }
    }

    /// Starts to look for dead nodes.
    pub fn guard(&mut self, job: &Arc<Job>) {
        self._guard = Guard::start(Arc::clone(job), self.watch.bell());
    }

    /// Calls an endpoint from a seat.
    fn enter<R>(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        call: impl FnOnce(&mut Endpoint) -> R,
    ) -> R {
        let _seat = self.seats.borrow(caller as usize);
        call(self.ends[endpoint as usize].lock().get())
    }
}

// SAFETY: `Endpoint` says that memory is free when libfabric says so.
unsafe impl Transport for Network {
    fn limits(&self) -> Limits {
        self.limits
    }

    unsafe fn send(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused> {
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, |end| unsafe {
            end.send(to, packet, token)
        })
    }

    unsafe fn expose(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        start: *mut u8,
        length: usize,
    ) -> Result<Region, Refused> {
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, |end| unsafe { end.expose(start, length) })
    }

    fn withdraw(&self, endpoint: LocalRank, caller: LocalRank, region: Region) {
        self.enter(endpoint, caller, |end| end.withdraw(region));
    }

    unsafe fn read(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        from: WorldRank,
        region: Region,
        offset: u64,
        into: *mut u8,
        length: usize,
        token: Token,
    ) -> Result<(), Refused> {
        let transfer = Transfer {
            writes: false,
            peer: from,
            region,
            offset,
            memory: into,
            length,
            token,
        };
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, |end| unsafe { end.transfer(transfer) })
    }

    unsafe fn write(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        region: Region,
        offset: u64,
        out: *const u8,
        length: usize,
        token: Token,
    ) -> Result<(), Refused> {
        let transfer = Transfer {
            writes: true,
            peer: to,
            region,
            offset,
            memory: out.cast_mut(),
            length,
            token,
        };
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, |end| unsafe { end.transfer(transfer) })
    }

    fn poll(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        budget: u32,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> u32 {
        self.enter(endpoint, caller, |end| end.poll(budget, sink))
    }

    fn owes(&self, _endpoint: LocalRank) -> bool {
        false
    }

    fn watch(&self, caller: LocalRank, limit: Option<Duration>) {
        self.watch.sleep(limit, || {
            let _seat = self.seats.borrow(caller as usize);
            self.ends.iter().all(|end| end.lock().get().may_sleep())
        });
    }

    fn interrupt(&self, _caller: LocalRank) {
        self.watch.interrupt();
    }
}

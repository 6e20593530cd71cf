//! The transport of a node: takes a seat and the endpoint's lock, then calls the endpoint.

use crate::descriptors::Descriptors;
use crate::descriptors::hooks::listen;
use crate::descriptors::shelf::Shelf;
use crate::guard::Guard;
use crate::job::Job;
use crate::port::Port;
use crate::seat::Seats;
use crate::watch::Watch;
use cohort_fabric::{
    Budget, Event, Limits, LocalRank, Packet, Refused, Region, Sent, Token, Transfer, Transport,
    WorldRank,
};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One endpoint, its lock, and its descriptors.
#[derive(Debug)]
struct End {
    /// The claim of its rank keeps callers apart; the lock keeps the watcher out, who has no claim.
    locked: AtomicBool,
    inner: UnsafeCell<Inner>,
    /// A thief's call was withheld, and the owner has not polled since.
    owes: AtomicBool,
}

/// What is behind the lock.
#[derive(Debug)]
pub struct Inner {
    /// The endpoint.
    pub endpoint: Box<dyn Port>,
    /// Its descriptors, if ranks are tasks with tables of their own.
    pub shelf: Shelf,
}

impl Inner {
    /// Closes the endpoint, from the root.
    pub fn close(self, descriptors: Option<&Descriptors>) {
        let Self {
            endpoint,
            mut shelf,
        } = self;
        let Some(descriptors) = descriptors else {
            return;
        };
        let root = descriptors.root();
        // Connections of ranks that have ended are gone, which closing takes.
        let _complete = shelf.sync(descriptors, root);
        listen(descriptors, &mut shelf, root, false, || drop(endpoint));
    }
}

// SAFETY: the inner part is reached through `Locked` only, which one task has at a time.
unsafe impl Sync for End {}

/// The right to use an endpoint.
struct Locked<'a>(&'a End);

impl End {
    /// Waits for the lock, which nobody holds for longer than a call. From a seat only.
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
    fn get(&mut self) -> &mut Inner {
        // SAFETY: there is one `Locked` of an end at a time.
        unsafe { &mut *self.0.inner.get() }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.locked.store(false, Ordering::Release);
    }
}

const UNKNOWN: u8 = 0;
const HOLDS: u8 = 1;
const LACKS: u8 = 2;

/// The network of a node.
#[derive(Debug)]
pub struct Network {
    limits: Limits,
    /// Whether to register memory is to call the driver.
    pins: bool,
    ends: Vec<End>,
    watch: Watch,
    /// The bell's descriptor.
    bell: Mutex<Shelf>,
    /// Whether each process holds it: `UNKNOWN` before its first call, then `HOLDS` or `LACKS`.
    bell_holders: Vec<AtomicU8>,
    guard: Option<Guard>,
    /// None if the process is the one rank of its node.
    descriptors: Option<Descriptors>,
    seats: Seats,
}

impl Network {
    /// A network of endpoints that are open; with its limits, whether registrations call the driver.
    #[must_use]
    pub fn new(
        (limits, pins): (Limits, bool),
        inner: Vec<Inner>,
        (watch, bell): (Watch, Shelf),
        descriptors: Option<Descriptors>,
        seats: Seats,
    ) -> Self {
        let end = |inner| End {
            locked: AtomicBool::new(false),
            inner: UnsafeCell::new(inner),
            owes: AtomicBool::new(false),
        };
        Self {
            limits,
            pins,
            bell_holders: inner.iter().map(|_| AtomicU8::new(UNKNOWN)).collect(),
            ends: inner.into_iter().map(end).collect(),
            watch,
            bell: Mutex::new(bell),
            guard: None,
            descriptors,
            seats,
        }
    }

    /// Starts to look for dead nodes.
    pub fn guard(&mut self, job: &Arc<Job>) {
        self.guard = Guard::start(Arc::clone(job), self.watch.bell());
    }

    /// The numbers of the descriptors, if they are shared.
    #[must_use]
    pub fn descriptors(&self) -> Option<(i32, i32)> {
        let shared = self.descriptors.as_ref()?;
        Some(shared.numbers().range())
    }

    /// Calls an endpoint from a seat, or returns `denied` if the caller has not all of its descriptors.
    fn enter<R>(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        denied: R,
        call: impl FnOnce(&mut dyn Port) -> R,
    ) -> R {
        let _seat = self.seats.borrow(caller as usize);
        // Now, as an event of this call may make the engine interrupt the watch; see there.
        self.hears_bell(caller as usize);
        let end = &self.ends[endpoint as usize];
        let mut locked = end.lock();
        let inner = locked.get();
        let Some(descriptors) = &self.descriptors else {
            return call(&mut *inner.endpoint);
        };
        let (endpoint, process) = (endpoint as usize, caller as usize);
        let may_call = descriptors.may_call(endpoint, process);
        if !(may_call && inner.shelf.sync(descriptors, process)) {
            return denied;
        }
        let defers = descriptors.defers(endpoint, process);
        let result = listen(descriptors, &mut inner.shelf, process, defers, || {
            call(&mut *inner.endpoint)
        });
        if inner.shelf.take_withheld() {
            // Release pairs with the Acquire of `owes`.
            end.owes.store(true, Ordering::Release);
        }
        result
    }

    /// Whether an end has no completions, so that one may sleep on its descriptor; none if it should be left
    /// alone, as it waits for its owner.
    fn may_sleep(&self, endpoint: usize, caller: usize) -> Option<bool> {
        let end = &self.ends[endpoint];
        let mut locked = end.lock();
        let inner = locked.get();
        let Some(descriptors) = &self.descriptors else {
            return Some(inner.endpoint.may_sleep());
        };
        let may_call = descriptors.may_call(endpoint, caller);
        if !(may_call && inner.shelf.sync(descriptors, caller)) {
            return None;
        }
        if end.owes.load(Ordering::Acquire) {
            // A socket that is full for thieves only would end every sleep at once.
            return (endpoint == caller).then_some(false);
        }
        // To ask is to make progress: connections may be accepted.
        let defers = descriptors.defers(endpoint, caller);
        let may_sleep = listen(descriptors, &mut inner.shelf, caller, defers, || {
            inner.endpoint.may_sleep()
        });
        if inner.shelf.take_withheld() {
            end.owes.store(true, Ordering::Release);
            // Whoever wanted to sleep looks around first, and wakes the owner.
            return Some(false);
        }
        Some(may_sleep)
    }

    /// Whether the calling process holds the bell's descriptor. From a seat.
    fn hears_bell(&self, caller: usize) -> bool {
        // Relaxed: written by the process that it is about.
        match self.bell_holders[caller].load(Ordering::Relaxed) {
            UNKNOWN => self.take_bell(caller),
            holds => holds == HOLDS,
        }
    }

    /// Mirrors the bell's descriptor into the calling process, once; whether that was possible.
    #[cold]
    fn take_bell(&self, caller: usize) -> bool {
        let holds = self.descriptors.as_ref().is_none_or(|descriptors| {
            let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
            bell.sync(descriptors, caller)
        });
        let state = if holds { HOLDS } else { LACKS };
        self.bell_holders[caller].store(state, Ordering::Relaxed);
        holds
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.guard = None;
        for end in self.ends.drain(..) {
            end.inner.into_inner().close(self.descriptors.as_ref());
        }
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
        self.enter(endpoint, caller, Err(Refused::Busy), |end| unsafe {
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
        let defers = |shared: &Descriptors| shared.defers(endpoint as usize, caller as usize);
        if self.pins && self.descriptors.as_ref().is_some_and(defers) {
            // The driver pins memory by a call for which it has no second try.
            return Err(Refused::Busy);
        }
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, Err(Refused::Busy), |end| unsafe {
            end.expose(start, length)
        })
    }

    fn withdraw(&self, endpoint: LocalRank, caller: LocalRank, region: Region) {
        self.enter(endpoint, caller, (), |end| end.withdraw(region));
    }

    unsafe fn transfer(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        transfer: Transfer,
    ) -> Result<(), Refused> {
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, Err(Refused::Busy), |end| unsafe {
            end.transfer(transfer)
        })
    }

    fn poll(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        budget: Budget,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> u32 {
        // Acquire and Release: a call that is withheld after this is one of a later thief.
        if endpoint == caller && self.owes(endpoint) {
            self.ends[endpoint as usize]
                .owes
                .store(false, Ordering::Release);
            // A watch that began before has left this endpoint alone.
            self.interrupt(caller);
        }
        self.enter(endpoint, caller, 0, |end| end.poll(budget, sink))
    }

    fn owes(&self, endpoint: LocalRank) -> bool {
        self.ends[endpoint as usize].owes.load(Ordering::Acquire)
    }

    fn watch(&self, caller: LocalRank, limit: Option<Duration>) {
        let process = caller as usize;
        self.watch.sleep(limit, |list| {
            let _seat = self.seats.borrow(process);
            list.hear_bell(self.hears_bell(process));
            for index in 0..self.ends.len() {
                match self.may_sleep(index, process) {
                    Some(true) => list.watch(index, true),
                    None => list.watch(index, false),
                    Some(false) => return false,
                }
            }
            true
        });
    }

    /// Takes no seat once the caller has been in any call: it may be in one, and all other seats may wait for
    /// the endpoint that it holds.
    fn interrupt(&self, caller: LocalRank) {
        if !self.watch.call() {
            return;
        }
        let caller = caller as usize;
        let holds = match self.bell_holders[caller].load(Ordering::Relaxed) {
            UNKNOWN => {
                let _seat = self.seats.borrow(caller);
                self.take_bell(caller)
            }
            holds => holds == HOLDS,
        };
        if holds {
            self.watch.ring();
        }
    }
}

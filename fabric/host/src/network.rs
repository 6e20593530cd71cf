//! The transport of a node whose ranks have an endpoint each: takes a seat and the endpoint's lock, then calls the
//! endpoint.

use crate::descriptors::Descriptors;
use crate::descriptors::hooks::run_call;
use crate::descriptors::table::DescriptorTable;
use crate::endpoint::Endpoint;
use crate::seat::Seats;
use crate::watch::{Waker, Watch};
use cohort_fabric::{
    Budget, Event, Limits, LocalRank, Packet, Polled, Refused, Region, Sent, Token, Transfer,
    Transport, WorldRank,
};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{ScopedJoinHandle, Thread};
use std::time::Duration;

/// One endpoint, its lock, and its descriptors.
#[derive(Debug)]
struct SharedEndpoint {
    /// The claim of its rank keeps callers apart; the lock keeps the watcher out, who has no claim.
    locked: AtomicBool,
    inner: UnsafeCell<OpenEndpoint>,
    /// A thief's call was withheld, and the owner has not polled since.
    owes: AtomicBool,
}

/// What is behind the lock.
#[derive(Debug)]
pub struct OpenEndpoint {
    /// The endpoint.
    pub endpoint: Box<dyn Endpoint>,
    /// Its descriptors, if ranks are tasks with tables of their own.
    pub table: DescriptorTable,
}

impl OpenEndpoint {
    /// Makes all of the endpoint's connections, from the root.
    fn meet(&mut self, descriptors: Option<&Descriptors>) -> Result<(), String> {
        let Self { endpoint, table } = self;
        match descriptors {
            None => endpoint.meet(),
            Some(shared) => run_call(shared, table, shared.root(), false, || endpoint.meet()),
        }
    }

    /// Closes the endpoint, from the root.
    pub(crate) fn close(self, descriptors: Option<&Descriptors>) {
        let Self {
            endpoint,
            mut table,
        } = self;
        let Some(descriptors) = descriptors else {
            return;
        };
        let root = descriptors.root();
        // Connections of ranks that have ended are gone, which closing takes.
        let _complete = table.sync(descriptors, root);
        run_call(descriptors, &mut table, root, false, || drop(endpoint));
    }
}

// SAFETY: the inner part is reached through `Locked` only, which one task has at a time.
unsafe impl Sync for SharedEndpoint {}

/// The right to use an endpoint.
struct Locked<'a>(&'a SharedEndpoint);

impl SharedEndpoint {
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

    /// Takes the lock if nobody has it.
    fn try_lock(&self) -> Option<Locked<'_>> {
        // Acquire pairs with the Release of `Locked::drop`.
        (!self.locked.swap(true, Ordering::Acquire)).then_some(Locked(self))
    }
}

impl Locked<'_> {
    fn get(&mut self) -> &mut OpenEndpoint {
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
    endpoints: Vec<SharedEndpoint>,
    /// The descriptor of each one's queue, if it has any.
    queues: Vec<Option<i32>>,
    watch: Watch,
    /// The waker's descriptor.
    waker: Mutex<DescriptorTable>,
    /// Whether each process holds it: `UNKNOWN` before its first call, then `HOLDS` or `LACKS`.
    waker_holders: Vec<AtomicU8>,
    /// None if the process is the one rank of its node.
    descriptors: Option<Descriptors>,
    seats: Seats,
    /// The thread that takes copies of new descriptors, once there is one.
    keeper: OnceLock<Thread>,
}

impl Network {
    /// A network of endpoints that are open; with its limits, whether registrations call the driver.
    #[must_use]
    pub fn new(
        (limits, pins): (Limits, bool),
        inner: Vec<OpenEndpoint>,
        (watch, waker): (Watch, DescriptorTable),
        descriptors: Option<Descriptors>,
        seats: Seats,
    ) -> Self {
        let end = |inner| SharedEndpoint {
            locked: AtomicBool::new(false),
            inner: UnsafeCell::new(inner),
            owes: AtomicBool::new(false),
        };
        Self {
            limits,
            pins,
            queues: inner
                .iter()
                .map(|end| end.endpoint.wait_descriptor())
                .collect(),
            waker_holders: inner.iter().map(|_| AtomicU8::new(UNKNOWN)).collect(),
            endpoints: inner.into_iter().map(end).collect(),
            watch,
            waker: Mutex::new(waker),
            descriptors,
            seats,
            keeper: OnceLock::new(),
        }
    }

    /// Says which thread is to [`Network::keep`] when there is something new.
    pub fn set_keeper(&self, keeper: Thread) {
        // There is one in the life of a network.
        let _ = self.keeper.set(keeper);
    }

    /// Takes copies of all descriptors into the root, so that they outlive their holders' loss. False if an endpoint
    /// is in use: its holder may never end its call.
    pub fn keep(&self) -> bool {
        let Some(descriptors) = &self.descriptors else {
            return true;
        };
        let keep = |end: &SharedEndpoint| {
            let Some(mut locked) = end.try_lock() else {
                return false;
            };
            locked.get().table.keep(descriptors);
            true
        };
        self.endpoints.iter().filter(|end| !keep(end)).count() == 0
    }

    #[cold]
    fn call_keeper(&self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.unpark();
        }
    }

    /// What ends the watch's sleep.
    #[must_use]
    pub fn waker(&self) -> Arc<Waker> {
        self.watch.waker()
    }

    /// Lets the endpoints connect with those of the other nodes, all at once: each may wait for any of them.
    ///
    /// # Errors
    /// A text that says who cannot be reached.
    pub fn meet(&mut self) -> Result<(), String> {
        let descriptors = self.descriptors.as_ref();
        std::thread::scope(|scope| {
            let meet = |end: &mut SharedEndpoint| end.inner.get_mut().meet(descriptors);
            let ends = self.endpoints.iter_mut();
            let threads: Vec<_> = ends.map(|end| scope.spawn(move || meet(end))).collect();
            let mut joined = threads.into_iter().map(ScopedJoinHandle::join);
            joined.try_for_each(|met| met.unwrap_or_else(|_| Err("a thread has panicked".into())))
        })
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
        call: impl FnOnce(&mut dyn Endpoint) -> R,
    ) -> R {
        let _seat = self.seats.borrow(caller as usize);
        if !self.is_intact(caller as usize) {
            return denied;
        }
        // Now, as an event of this call may make the engine interrupt the watch; see there.
        self.holds_waker(caller as usize);
        let end = &self.endpoints[endpoint as usize];
        let mut locked = end.lock();
        let inner = locked.get();
        let Some(descriptors) = &self.descriptors else {
            return call(&mut *inner.endpoint);
        };
        let (endpoint, process) = (endpoint as usize, caller as usize);
        let may_call = descriptors.may_call(endpoint, process);
        if !(may_call && inner.table.sync(descriptors, process)) {
            return denied;
        }
        let defers = descriptors.defers(endpoint, process);
        let result = run_call(descriptors, &mut inner.table, process, defers, || {
            call(&mut *inner.endpoint)
        });
        if inner.table.take_withheld() {
            // Release pairs with the Acquire of `owes`.
            end.owes.store(true, Ordering::Release);
        }
        if inner.table.lacks(descriptors.root()) {
            self.call_keeper();
        }
        result
    }

    /// Whether an end has no completions, so that one may sleep on its descriptor; none if it should be left
    /// alone, as it waits for its owner.
    fn may_sleep(&self, endpoint: usize, caller: usize) -> Option<bool> {
        let end = &self.endpoints[endpoint];
        let mut locked = end.lock();
        let inner = locked.get();
        let Some(descriptors) = &self.descriptors else {
            return Some(inner.endpoint.may_sleep());
        };
        let may_call = descriptors.may_call(endpoint, caller);
        if !(may_call && inner.table.sync(descriptors, caller)) {
            return None;
        }
        if end.owes.load(Ordering::Acquire) {
            // A socket that is full for thieves only would end every sleep at once.
            return (endpoint == caller).then_some(false);
        }
        // To ask is to make progress: connections may be accepted.
        let defers = descriptors.defers(endpoint, caller);
        let may_sleep = run_call(descriptors, &mut inner.table, caller, defers, || {
            inner.endpoint.may_sleep()
        });
        if inner.table.take_withheld() {
            end.owes.store(true, Ordering::Release);
            // Whoever wanted to sleep looks around first, and wakes the owner.
            return Some(false);
        }
        Some(may_sleep)
    }

    /// The owner is about to make the calls that were withheld from thieves.
    #[cold]
    fn take_over(&self, endpoint: LocalRank, caller: LocalRank) {
        let end = &self.endpoints[endpoint as usize];
        end.owes.store(false, Ordering::Release);
        // A watch that began before has left this endpoint alone.
        self.interrupt(caller);
    }

    /// Whether the calling process has, or has again, what it should: programs close what they find. From a seat.
    fn is_intact(&self, caller: usize) -> bool {
        self.is_whole() || self.recover(caller)
    }

    fn is_whole(&self) -> bool {
        let descriptors = self.descriptors.as_ref();
        descriptors.is_none_or(Descriptors::is_whole)
    }

    #[cold]
    fn recover(&self, caller: usize) -> bool {
        let descriptors = self.descriptors.as_ref();
        self.waker_holders[caller].store(UNKNOWN, Ordering::Relaxed);
        descriptors.is_none_or(|descriptors| descriptors.recover(caller))
    }

    /// Whether the calling process holds the waker's descriptor. From a seat.
    fn holds_waker(&self, caller: usize) -> bool {
        // Relaxed: written by the process that it is about.
        match self.waker_holders[caller].load(Ordering::Relaxed) {
            UNKNOWN => self.take_waker(caller),
            holds => holds == HOLDS,
        }
    }

    /// Mirrors the waker's descriptor into the calling process, once; whether that was possible.
    #[cold]
    fn take_waker(&self, caller: usize) -> bool {
        let holds = self.descriptors.as_ref().is_none_or(|descriptors| {
            if !self.is_intact(caller) {
                return false;
            }
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            waker.sync(descriptors, caller)
        });
        let state = if holds { HOLDS } else { LACKS };
        self.waker_holders[caller].store(state, Ordering::Relaxed);
        holds
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for end in self.endpoints.drain(..) {
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
    ) -> Polled {
        // Acquire and Release: a call that is withheld after this is one of a later thief.
        if endpoint == caller && self.owes(endpoint) {
            self.take_over(endpoint, caller);
        }
        let given = self.enter(endpoint, caller, 0, |end| end.poll(budget, sink));
        Polled::events(given)
    }

    fn owes(&self, endpoint: LocalRank) -> bool {
        self.endpoints[endpoint as usize]
            .owes
            .load(Ordering::Acquire)
    }

    fn watch(&self, caller: LocalRank, limit: Option<Duration>) {
        let process = caller as usize;
        self.watch.sleep(limit, |list| {
            let _seat = self.seats.borrow(process);
            if !self.is_intact(process) {
                list.watch_waker(None);
                return true;
            }
            let waker = self.holds_waker(process);
            list.watch_waker(waker.then_some(self.watch.descriptor()));
            for index in 0..self.endpoints.len() {
                match self.may_sleep(index, process) {
                    Some(true) => list.watch(self.queues[index]),
                    None => list.leave_out(),
                    Some(false) => return false,
                }
            }
            true
        });
    }

    /// Takes no seat once the caller has been in any call: it may be in one, and all other seats may wait for
    /// the endpoint that it holds.
    fn interrupt(&self, caller: LocalRank) {
        if !self.watch.notify() {
            return;
        }
        let caller = caller as usize;
        let holds = match self.waker_holders[caller].load(Ordering::Relaxed) {
            // A caller that is not whole is in no call: there it would be whole.
            state if state == UNKNOWN || state == HOLDS && !self.is_whole() => {
                let _seat = self.seats.borrow(caller);
                self.take_waker(caller)
            }
            holds => holds == HOLDS,
        };
        if holds {
            Watch::wake(self.watch.descriptor());
        }
    }
}

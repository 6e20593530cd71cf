//! The transport of a node whose ranks share endpoints: takes a seat and the lock of the endpoint that serves the rank,
//! then calls the endpoint.
//!
//! Whoever has an endpoint's lock takes what has come for all ranks that it serves: what is for the rank of the call
//! goes to the engine, the rest into a queue ([`crate::event_queue`]). So a rank that finds the lock taken when it
//! looks has nothing to do.

use crate::endpoint::Endpoint;
use crate::event_queue::{Delivery, EventQueue, Ticket};
use crate::job::Job;
use crate::packet::Way;
use crate::peers::serves;
use crate::seat::Seats;
use crate::watch::{Waker, Watch};
use cohort_base::lock::FutexLock;
use cohort_descriptors::Descriptors;
use cohort_descriptors::hooks::run_call;
use cohort_descriptors::table::DescriptorTable;
use cohort_fabric::{
    Budget, Event, Limits, LocalRank, Packet, Polled, ROOT, Refused, Region, Sent, Token, Transfer, Transport,
    WorldRank,
};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long the end of a node waits for other nodes to end too: what is on its way to a connection that is closed makes
/// its other end give up what it has not read yet.
const FAREWELL: Duration = Duration::from_secs(1);

/// Time between two looks whether they have.
const NAP: Duration = Duration::from_micros(200);

/// One endpoint, its lock, and its descriptors.
#[derive(Debug)]
struct SharedEndpoint {
    inner: FutexLock<OpenEndpoint>,
    /// A thief's call was withheld, and no owner has polled since.
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
    fn meet(&mut self, descriptors: Option<&Descriptors>, queues: &[EventQueue]) -> Result<(), String> {
        let Self { endpoint, table } = self;
        let mut delivery = Delivery::to_queues(queues);
        let mut meet = || endpoint.meet(&mut delivery);
        match descriptors {
            None => meet(),
            Some(shared) => run_call(shared, table, shared.root(), false, meet),
        }
    }

    /// Takes leave of other nodes, from the root; whether that is done.
    fn leave(&mut self, descriptors: Option<&Descriptors>, queues: &[EventQueue]) -> bool {
        let Self { endpoint, table } = self;
        let mut delivery = Delivery::to_queues(queues);
        let mut leave = || endpoint.leave(&mut delivery);
        let Some(shared) = descriptors else {
            return leave();
        };
        // Connections of ranks that have ended are gone: the endpoint finds out.
        let _complete = table.sync(shared, shared.root());
        run_call(shared, table, shared.root(), false, leave)
    }

    /// Closes the endpoint, from the root.
    pub(crate) fn close(self, descriptors: Option<&Descriptors>) {
        let Self { endpoint, mut table } = self;
        let Some(descriptors) = descriptors else {
            return;
        };
        let root = descriptors.root();
        // Connections of ranks that have ended are gone, which closing takes.
        let _complete = table.sync(descriptors, root);
        run_call(descriptors, &mut table, root, false, || drop(endpoint));
    }
}

const UNKNOWN: u8 = 0;
const HOLDS: u8 = 1;
const LACKS: u8 = 2;

/// The network of a node.
#[derive(Debug)]
pub struct Network {
    job: Arc<Job>,
    /// Ranks of this node when the job began.
    first_ranks: usize,
    /// The event queue of each rank that this node may have.
    event_queues: Vec<EventQueue>,
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
    /// The sleeper is to be woken by the keeper: who wanted to has not the waker's descriptor.
    owes_wake: AtomicBool,
    /// None if the process is the one rank of its node.
    descriptors: Option<Descriptors>,
    seats: Seats,
    /// The thread that takes copies of new descriptors, once there is one.
    keeper: OnceLock<Thread>,
}

impl Network {
    /// A network of endpoints that are open, for these ranks of the node; with its limits, whether registrations call
    /// the driver.
    #[must_use]
    pub fn new(
        (job, first_ranks, capacity): (Arc<Job>, usize, usize),
        (limits, pins): (Limits, bool),
        inner: Vec<OpenEndpoint>,
        (watch, waker): (Watch, DescriptorTable),
        descriptors: Option<Descriptors>,
        seats: Seats,
    ) -> Self {
        let end = |inner| SharedEndpoint { inner: FutexLock::new(inner), owes: AtomicBool::new(false) };
        Self {
            limits,
            pins,
            queues: inner.iter().map(|end| end.endpoint.wait_descriptor()).collect(),
            owes_wake: AtomicBool::new(false),
            waker_holders: (0..capacity).map(|_| AtomicU8::new(UNKNOWN)).collect(),
            event_queues: (0..capacity).map(|_| EventQueue::default()).collect(),
            job,
            first_ranks,
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
            let Some(mut inner) = end.inner.try_lock() else {
                return false;
            };
            inner.table.keep(descriptors);
            true
        };
        self.endpoints.iter().filter(|end| !keep(end)).count() == 0
    }

    /// Wakes the sleeper for who could not, from the root.
    pub fn wake_for_others(&self) {
        if self.owes_wake.swap(false, Ordering::Acquire) {
            let _ = Watch::wake(self.watch.descriptor());
        }
    }

    /// It takes no seat: to unpark a thread is a system call that sets no error.
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
    pub fn meet(&self) -> Result<(), String> {
        let descriptors = self.descriptors.as_ref();
        std::thread::scope(|scope| {
            let meet = |end: &SharedEndpoint| end.inner.lock().meet(descriptors, &self.event_queues);
            let ends = self.endpoints.iter();
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

    /// The number of the endpoint that serves a rank of this node.
    #[inline]
    fn number_of(&self, rank: LocalRank) -> usize {
        rank as usize % self.endpoints.len()
    }

    fn end_of(&self, rank: LocalRank) -> &SharedEndpoint {
        &self.endpoints[self.number_of(rank)]
    }

    /// Whether each rank that the job began with has an endpoint of its own, and this is one.
    fn is_private(&self, rank: LocalRank) -> bool {
        self.endpoints.len() == self.first_ranks && (rank as usize) < self.first_ranks
    }

    /// Calls the endpoint that serves a rank from a seat, when its lock is free, or returns `denied` if the caller
    /// has not all of its descriptors.
    fn enter<R>(
        &self,
        rank: LocalRank,
        caller: LocalRank,
        denied: R,
        call: impl FnOnce(&mut dyn Endpoint, &mut Delivery<'_>) -> R,
    ) -> R {
        let seat = self.seats.borrow(caller as usize);
        if !self.is_ready(caller) {
            return denied;
        }
        let end = self.end_of(rank);
        let mut delivery = Delivery::to_queues(&self.event_queues);
        let mut inner = end.inner.lock();
        let result = self.call(end, &mut inner, (rank, caller), denied, |endpoint| call(endpoint, &mut delivery));
        drop(inner);
        drop(seat);
        if delivery.posted {
            self.interrupt(caller);
        }
        result
    }

    /// What a caller needs for any call. From a seat.
    fn is_ready(&self, caller: LocalRank) -> bool {
        // The waker now, as an event of the call may make the engine interrupt the watch; see there.
        self.is_intact(caller as usize) && {
            self.holds_waker(caller as usize);
            true
        }
    }

    /// Calls an endpoint whose lock the caller has, on a seat, for a rank that it serves.
    fn call<R>(
        &self,
        end: &SharedEndpoint,
        inner: &mut OpenEndpoint,
        (rank, caller): (LocalRank, LocalRank),
        denied: R,
        call: impl FnOnce(&mut dyn Endpoint) -> R,
    ) -> R {
        let Some(descriptors) = &self.descriptors else {
            return call(&mut *inner.endpoint);
        };
        let process = caller as usize;
        let is_own = self.is_private(caller) && rank == caller;
        if !descriptors.may_call(is_own, process) {
            if rank == caller {
                descriptors.report_unable(process);
            }
            return denied;
        }
        if !inner.table.sync(descriptors, process) {
            return denied;
        }
        let defers = descriptors.defers(rank == caller);
        let result = run_call(descriptors, &mut inner.table, process, defers, || call(&mut *inner.endpoint));
        if inner.table.take_withheld() {
            // Release pairs with the Acquire of `owes`.
            end.owes.store(true, Ordering::Release);
        }
        if inner.table.lacks(descriptors.root()) {
            self.call_keeper();
        }
        result
    }

    /// Whether an endpoint has no completions, so that one may sleep on its descriptor; none if it should be left
    /// alone, as it waits for an owner.
    fn may_sleep(&self, index: usize, caller: usize) -> Option<bool> {
        let end = &self.endpoints[index];
        let mut locked = end.inner.lock();
        let inner = &mut *locked;
        let Some(descriptors) = &self.descriptors else {
            return Some(inner.endpoint.may_sleep());
        };
        let is_served = serves(index, self.endpoints.len(), caller as LocalRank);
        let is_own = self.is_private(caller as LocalRank) && is_served;
        if !(descriptors.may_call(is_own, caller) && inner.table.sync(descriptors, caller)) {
            return None;
        }
        if end.owes.load(Ordering::Acquire) {
            // A socket that is full for thieves only would end every sleep at once.
            return is_served.then_some(false);
        }
        // To ask is to make progress: connections may be accepted.
        let defers = descriptors.defers(is_served);
        let may_sleep = run_call(descriptors, &mut inner.table, caller, defers, || inner.endpoint.may_sleep());
        if inner.table.take_withheld() {
            end.owes.store(true, Ordering::Release);
            // Whoever wanted to sleep looks around first, and wakes the owner.
            return Some(false);
        }
        Some(may_sleep)
    }

    /// An owner is about to make the calls that were withheld from thieves.
    #[cold]
    fn take_over(&self, endpoint: LocalRank, caller: LocalRank) {
        self.end_of(endpoint).owes.store(false, Ordering::Release);
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
        let descriptors = self.descriptors.as_ref();
        let mut open = Vec::with_capacity(self.endpoints.len());
        for end in self.endpoints.drain(..) {
            let is_free = end.inner.try_lock().is_some();
            match is_free {
                true => open.push(end.inner.into_inner()),
                // A rank was killed within a call: who knows what it has left there. The end of the process closes.
                false => std::mem::forget(end),
            }
        }
        let end = Instant::now() + FAREWELL;
        let deaths = self.job.deaths();
        loop {
            // All of them each time: the other nodes' endpoints wait for all of this one's.
            let waiting = open.iter_mut().filter_map(|end| (!end.leave(descriptors, &self.event_queues)).then_some(()));
            if waiting.count() == 0 || Instant::now() > end || self.job.deaths() != deaths {
                break;
            }
            std::thread::sleep(NAP);
        }
        open.into_iter().for_each(|end| end.close(descriptors));
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
        let from = self.job.own_rank(endpoint);
        let ticket = Ticket { rank: endpoint, token };
        let is_served = |local: &LocalRank| self.number_of(*local) == self.number_of(endpoint);
        let receiver = self.job.local(to).filter(is_served);
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, Err(Refused::Busy), |end, delivery| unsafe {
            if let Some(receiver) = receiver {
                let bytes = [packet.header, packet.body].concat();
                delivery.packet(receiver, from, &bytes);
                return Ok(Sent::Done);
            }
            end.send(Way { from, to }, packet, ticket, delivery)
        })
    }

    unsafe fn expose(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        start: *mut u8,
        length: usize,
    ) -> Result<Region, Refused> {
        let defers = |shared: &Descriptors| shared.defers(endpoint == caller);
        if self.pins && self.descriptors.as_ref().is_some_and(defers) {
            // The driver pins memory by a call for which it has no second try.
            return Err(Refused::Busy);
        }
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, Err(Refused::Busy), |end, _| unsafe { end.expose(start, length) })
    }

    fn withdraw(&self, endpoint: LocalRank, caller: LocalRank, region: Region) {
        self.enter(endpoint, caller, (), |end, _| end.withdraw(region));
    }

    fn grow(&self, ranks: u32) {
        self.job.grow(ranks);
    }

    unsafe fn transfer(&self, endpoint: LocalRank, caller: LocalRank, transfer: Transfer) -> Result<(), Refused> {
        let ticket = Ticket { rank: endpoint, token: transfer.token };
        // SAFETY: the caller keeps the contract, which is the same.
        self.enter(endpoint, caller, Err(Refused::Busy), |end, delivery| unsafe {
            end.transfer(transfer, ticket, delivery)
        })
    }

    fn poll(&self, endpoint: LocalRank, caller: LocalRank, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> Polled {
        // Acquire and Release: a call that is withheld after this is one of a later thief.
        if endpoint == caller && self.owes(endpoint) {
            self.take_over(endpoint, caller);
        }
        let seat = self.seats.borrow(caller as usize);
        let mut done = Polled::default();
        if !self.is_ready(caller) {
            return done;
        }
        let queue = &self.event_queues[endpoint as usize];
        let end = self.end_of(endpoint);
        for _ in 0..budget.looks.max(1) {
            done.events = queue.deliver(budget.events, |peer| self.job.ranks_of_peer(peer), sink);
            if done.events > 0 {
                break;
            }
            // Whoever has the lock does it.
            let Some(mut inner) = end.inner.try_lock() else {
                continue;
            };
            let mut delivery = Delivery::to_engine(&self.event_queues, endpoint, budget.events, sink);
            self.call(end, &mut inner, (endpoint, caller), (), |endpoint| {
                endpoint.poll(&mut delivery);
            });
            done.events = delivery.given;
            done.posted |= delivery.posted;
            done.flows |= delivery.flows;
            if done.events > 0 {
                break;
            }
        }
        drop(seat);
        if done.posted {
            self.interrupt(caller);
        }
        done
    }

    fn owes(&self, endpoint: LocalRank) -> bool {
        // Acquire pairs with the Release of `call`.
        self.end_of(endpoint).owes.load(Ordering::Acquire)
    }

    fn may_call(&self, endpoint: LocalRank, caller: LocalRank) -> bool {
        let is_own = self.is_private(caller) && endpoint == caller;
        self.descriptors.as_ref().is_none_or(|descriptors| is_own || !descriptors.is_unable(caller as usize))
    }

    fn watch(&self, caller: LocalRank, limit: Option<Duration>, others: &[i32]) {
        let process = caller as usize;
        self.watch.sleep(limit, others, |list| {
            let _seat = self.seats.borrow(process);
            if !self.is_intact(process) {
                list.watch_waker(None);
                return true;
            }
            let waker = self.holds_waker(process);
            list.watch_waker(waker.then_some(self.watch.descriptor()));
            let present = self.job.present() as usize;
            if self.event_queues.iter().take(present).any(EventQueue::waits) {
                return false;
            }
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
        if caller == ROOT {
            let _ = Watch::wake(self.watch.descriptor());
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
        if !holds || !Watch::wake(self.watch.descriptor()) {
            // The keeper has it. Release pairs with the Acquire in `wake_for_others`.
            self.owes_wake.store(true, Ordering::Release);
            self.call_keeper();
        }
    }
}

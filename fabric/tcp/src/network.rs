//! The node's network over TCP, as the engine sees it.

use crate::caller::{Caller, Requests};
use crate::congestion::Congestion;
use crate::connector::Connector;
use crate::interface::Interfaces;
use crate::node::Node;
use crate::rail::{Rail, Submission};
use crate::shared::Shared;
use crate::{ENCRYPTED_PACKET_MAX, PACKET_MAX, TRANSFER_MAX};
use cohort_fabric::{
    Budget, Event, Limits, LocalRank, Packet, Polled, Refused, Region, Sent, Token, Transfer, Transport, WorldRank,
    record,
};
use cohort_fabric_host::address;
use cohort_fabric_host::event_queue::{Delivery, Ticket};
use cohort_fabric_host::handles::Processes;
use cohort_fabric_host::packet::Way;
use cohort_fabric_host::source::{AddressCount, NodeNetwork, ServicePlace, Setup};
use cohort_fabric_host::watch::{List, Waker, Watch};
use rustix::fd::{FromRawFd, OwnedFd};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How many calls the threads of a process are in. On a line of its own: others are written by other CPUs.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Calls(AtomicU32);

/// A call: until it is dropped, the calling thread may have locks.
struct InCall<'a>(&'a AtomicU32);

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        // Release: after all of the call.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// The network.
#[derive(Debug)]
pub struct TcpNetwork {
    shared: Arc<Shared>,
    /// Calls that threads of each process are in.
    calls: Box<[Calls]>,
    connector: Connector,
    /// Where the next long transfer goes: they take the rails in turn.
    turn: AtomicU32,
}

impl TcpNetwork {
    /// Opens the network of a node at addresses of this host.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    pub fn open(interfaces: &Interfaces, setup: &Setup<'_>) -> Result<Self, String> {
        let shared = share(setup)?;
        let connector = Connector::open(interfaces, Arc::clone(&shared))?;
        let calls = (0..=shared.processes.root()).map(|_| Calls::default());
        Ok(Self { calls: calls.collect(), shared, connector, turn: AtomicU32::new(0) })
    }

    fn begin_call(&self, caller: LocalRank) -> InCall<'_> {
        let calls = &self.calls[self.shared.processes.of(caller)].0;
        // Acquire: a handler that interrupts what follows on this thread sees it.
        calls.fetch_add(1, Ordering::Acquire);
        InCall(calls)
    }

    fn caller(&self, endpoint: LocalRank, caller: LocalRank) -> Caller<'_> {
        Caller {
            processes: &self.shared.processes,
            process: self.shared.processes.of(caller),
            is_connector: false,
            defers: self.shared.defers && endpoint != caller,
            requests: &self.shared.requests,
        }
    }

    fn node_of(&self, rank: WorldRank) -> u32 {
        self.shared.node.job.node_of(rank)
    }

    /// Sends, or submits if somebody has the lock. Without a ticket what must wait is copied.
    ///
    /// # Safety
    /// As for [`Transport::send`], if there is a ticket.
    unsafe fn send_through(
        &self,
        (rail, sender): (&Rail, LocalRank),
        caller: &Caller<'_>,
        way: Way,
        packets: &[Packet<'_>],
        ticket: Option<Ticket>,
    ) -> Result<Sent, Refused> {
        let shared = &*self.shared;
        let node = self.node_of(way.to);
        if node == shared.node.job.node {
            for &packet in packets {
                shared.node.send_within(way.from, way.to, packet);
            }
            return Ok(Sent::Done);
        }
        if !caller.defers && shared.node.job.node_death(node).is_none() {
            match rail.leave(sender, node, way, packets) {
                Submission::Refused => {}
                Submission::Put => {
                    rail.finish(&shared.node, caller);
                    return Ok(Sent::Done);
                }
                Submission::Left => return Ok(Sent::Done),
                Submission::LeftFirst => {
                    shared.call_connector(caller);
                    return Ok(Sent::Done);
                }
            }
        }
        let mut held = match rail.try_hold(&shared.node, caller) {
            Some(held) => held,
            None => {
                if let Some(code) = shared.node.job.node_death(node) {
                    return Err(Refused::Lost(code));
                }
                if rail.submit(node, way, packets).is_some() {
                    rail.finish(&shared.node, caller);
                    return Ok(Sent::Done);
                }
                rail.hold(&shared.node, caller)
            }
        };
        // SAFETY: the caller's promise.
        let sent = unsafe { held.send(node, way, packets, ticket) };
        drop(held);
        rail.has_sent(sender, node, packets.len());
        rail.finish(&shared.node, caller);
        sent
    }

    /// A whole call that sends.
    ///
    /// # Safety
    /// As for [`Self::send_through`].
    unsafe fn send_with(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        packets: &[Packet<'_>],
        ticket: Option<Ticket>,
    ) -> Result<Sent, Refused> {
        let shared = &*self.shared;
        let _call = self.begin_call(caller);
        let caller = self.caller(endpoint, caller);
        let rail = shared.rail_of(endpoint, to);
        let from = shared.node.job.own_rank(endpoint);
        let way = Way { from, to };
        // SAFETY: the caller's promise.
        let sent = unsafe { self.send_through((rail, endpoint), &caller, way, packets, ticket) };
        shared.finish(&caller, false);
        sent
    }

    /// Fills the list of what a sleeper polls; false if there is something to do.
    fn prepare(&self, list: &mut List, process: usize) -> bool {
        let shared = &*self.shared;
        let handles = shared.rails.iter().flat_map(|rail| [&rail.readable, &rail.writable]);
        list.watch_waker(shared.processes.number(&shared.waker, process));
        for handle in handles {
            list.watch(shared.processes.number(handle, process));
        }
        for rail in &shared.rails {
            // Whoever looks next asks the set of those that have room again.
            rail.has_room.store(true, Ordering::Relaxed);
        }
        // Acquire: with `Watch::notify_sleeper`, either this sees the flag or its writer the sleeper.
        let is_idle = |rail: &Rail| !rail.has_submitted() && !rail.is_unfinished.load(Ordering::Acquire);
        !shared.node.has_queued()
            && shared.rails.iter().all(is_idle)
            && shared.node.job.deaths() == shared.node.announced_deaths()
    }
}

// SAFETY: memory of a send or a transfer is reported free when the system has taken or filled it, or when its stream
// has ended.
unsafe impl Transport for TcpNetwork {
    fn limits(&self) -> Limits {
        let packet = match self.shared.encrypts {
            true => ENCRYPTED_PACKET_MAX,
            false => PACKET_MAX,
        };
        Limits { packet, transfer: TRANSFER_MAX }
    }

    unsafe fn send(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused> {
        let rank = endpoint;
        let ticket = Some(Ticket { rank, token });
        // SAFETY: the caller's promise.
        unsafe { self.send_with(endpoint, caller, to, &[packet], ticket) }
    }

    fn send_now(&self, endpoint: LocalRank, caller: LocalRank, to: WorldRank, packets: &[Packet<'_>]) -> bool {
        // SAFETY: without a ticket nothing is kept.
        unsafe { self.send_with(endpoint, caller, to, packets, None) }.is_ok()
    }

    unsafe fn expose(
        &self,
        _endpoint: LocalRank,
        caller: LocalRank,
        start: *mut u8,
        length: usize,
    ) -> Result<Region, Refused> {
        let _call = self.begin_call(caller);
        let key = self.shared.node.regions.add(start.expose_provenance(), length);
        Ok(Region { key, address: 0 })
    }

    fn withdraw(&self, _endpoint: LocalRank, caller: LocalRank, region: Region) {
        let _call = self.begin_call(caller);
        self.shared.node.regions.remove(region.key);
    }

    fn grow(&self, ranks: u32) {
        self.shared.node.job.grow(ranks);
    }

    unsafe fn transfer(&self, endpoint: LocalRank, caller: LocalRank, transfer: Transfer) -> Result<(), Refused> {
        let shared = &*self.shared;
        let _call = self.begin_call(caller);
        let caller = self.caller(endpoint, caller);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) as usize;
        let rail = &shared.rails[turn % shared.rails.len()];
        let mut delivery = Delivery::to_queues(&shared.node.queues);
        let ticket = Ticket { rank: endpoint, token: transfer.token };
        let node = self.node_of(transfer.peer);
        if node == shared.node.job.node {
            // SAFETY: the caller's promise.
            unsafe { shared.node.transfer_within(transfer, ticket, &mut delivery) };
            shared.finish(&caller, delivery.posted);
            return Ok(());
        }
        let mut held = rail.hold(&shared.node, &caller);
        // SAFETY: the caller's promise.
        let started = unsafe { held.transfer(node, transfer, ticket, &mut delivery) };
        drop(held);
        rail.finish(&shared.node, &caller);
        shared.hand_over(&caller);
        shared.finish(&caller, delivery.posted);
        started
    }

    fn poll(&self, endpoint: LocalRank, caller: LocalRank, budget: Budget, sink: &mut dyn FnMut(Event<'_>)) -> Polled {
        let shared = &*self.shared;
        let _call = self.begin_call(caller);
        let caller = self.caller(endpoint, caller);
        let queue = &shared.node.queues[endpoint as usize];
        let ranks_of = |node| shared.node.job.all_of(node);
        let mut done = Polled::default();
        for _ in 0..budget.looks.max(1) {
            done.events += queue.deliver(budget.events - done.events, ranks_of, sink);
            if done.events > 0 {
                break;
            }
            for rail in &shared.rails {
                let most = budget.events.saturating_sub(done.events);
                let mut delivery = Delivery::to_engine(&shared.node.queues, endpoint, most, &mut *sink);
                rail.end_burst(endpoint);
                if let Some(mut held) = rail.try_hold(&shared.node, &caller) {
                    held.look(&mut delivery);
                    drop(held);
                    rail.finish(&shared.node, &caller);
                }
                done.events += delivery.given;
                done.posted |= delivery.posted;
                done.flows |= delivery.flows;
            }
            if done.events > 0 {
                break;
            }
        }
        shared.hand_over(&caller);
        shared.finish(&caller, done.posted);
        done
    }

    fn owes(&self, _endpoint: LocalRank) -> bool {
        false
    }

    fn is_in_call(&self, caller: LocalRank) -> bool {
        let calls = &self.calls[self.shared.processes.of(caller)].0;
        calls.load(Ordering::Relaxed) > 0
    }

    fn died(&self, rank: LocalRank, watched: bool) -> bool {
        if watched {
            // SAFETY: by the caller's word the sleeper's task is no more.
            unsafe { self.shared.watch.abandon() };
        }
        !self.is_in_call(rank)
    }

    fn watch(&self, caller: LocalRank, limit: Option<Duration>, others: &[i32]) {
        let shared = &*self.shared;
        let process = shared.processes.of(caller);
        let is_gone = shared.watch.sleep(limit, others, |list| self.prepare(list, process));
        if is_gone {
            // The program has closed what was not its own.
            let sets = shared.rails.iter().flat_map(|rail| [&rail.readable, &rail.writable]);
            for handle in sets.chain([&shared.waker, &shared.bell]) {
                shared.processes.forget(handle, process);
            }
        }
    }

    fn interrupt(&self, caller: LocalRank) {
        let shared = &*self.shared;
        if !shared.watch.notify() {
            return;
        }
        shared.wake(shared.processes.of(caller));
    }
}

impl NodeNetwork for TcpNetwork {
    fn addresses(&self) -> Vec<Vec<u8>> {
        let addresses = self.connector.addresses().iter().copied();
        let rails = addresses.cycle().take(self.shared.rails.len());
        rails.map(address::bytes).collect()
    }

    fn address_count(&self, _ranks: usize) -> AddressCount {
        AddressCount::Exactly(self.shared.rails.len(), cohort_base::settings::network::RAILS)
    }

    fn connect(&mut self, nodes: Vec<Vec<Vec<u8>>>) -> Result<(), String> {
        let distinct = |each: Vec<Vec<u8>>| {
            let mut known: Vec<SocketAddr> = Vec::new();
            for socket in each.iter().filter_map(|bytes| address::socket(bytes)) {
                if !known.contains(&socket) {
                    known.push(socket);
                }
            }
            known.into_boxed_slice()
        };
        self.connector.start(nodes.into_iter().map(distinct).collect())
    }

    fn service_place(&self) -> Option<ServicePlace> {
        Some(ServicePlace { ip: self.connector.addresses().first()?.ip(), is_way_of_messages: true })
    }

    fn waker(&self) -> Arc<Waker> {
        self.shared.watch.waker()
    }

    fn descriptors(&self) -> Option<(i32, i32)> {
        self.shared.processes.inherited()
    }

    fn give_up(&mut self) {
        self.connector.give_up();
    }

    unsafe fn record(&self) -> record::Network {
        // SAFETY: the caller's promise.
        record::Network::of(unsafe { &*std::ptr::from_ref(self) })
    }
}

/// What the tasks of a node share, without a connection.
///
/// # Errors
/// A text that says which step failed and why.
pub fn share(setup: &Setup<'_>) -> Result<Arc<Shared>, String> {
    // Measured now rather than in a rank's first send.
    let _ = cohort_base::clock::ticks_per_us();
    let rails = setup.rails;
    let congestion = Congestion::wanted(setup.congestion)?;
    let failed = |what: &str, code: i32| {
        let error = std::io::Error::from_raw_os_error(code);
        format!("cannot {what}: {error}")
    };
    let tasks = if setup.is_shared { setup.capacity } else { 0 };
    let system = |code: rustix::io::Errno| failed("share descriptors", code.raw_os_error());
    let processes = Processes::open(tasks).map_err(system)?;
    let counter = || event_counter().ok_or_else(|| failed("make an event counter", crate::last_code()));
    let set = || epoll_set().ok_or_else(|| failed("make an epoll set", crate::last_code()));
    let share = |descriptor| processes.share(descriptor).map_err(system);
    let mut opened = Vec::with_capacity(rails);
    for _ in 0..rails {
        opened.push(Rail::new(setup.job.nodes(), share(set()?)?, share(set()?)?));
    }
    let watch = Watch::open(2 * rails).map_err(|error| format!("cannot sleep: {error}"))?;
    let waker = watch.try_clone().map_err(|error| format!("cannot sleep: {error}"))?;
    let (waker, bell) = (share(waker)?, share(counter()?)?);
    let mut seed = [0; 4];
    crate::random(&mut seed).map_err(|code| failed("get random numbers", code))?;
    Ok(Arc::new(Shared {
        node: Node::new(Arc::clone(setup.job), setup.capacity, u32::from_ne_bytes(seed)),
        rails: opened,
        processes,
        watch,
        waker,
        bell,
        requests: Requests::default(),
        defers: setup.defers,
        congestion,
        encrypts: setup.encrypts,
    }))
}

fn event_counter() -> Option<OwnedFd> {
    // SAFETY: no condition; a new descriptor.
    unsafe {
        let counter = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        (counter >= 0).then(|| OwnedFd::from_raw_fd(counter))
    }
}

fn epoll_set() -> Option<OwnedFd> {
    // SAFETY: no condition; a new descriptor.
    unsafe {
        let set = libc::epoll_create1(libc::EPOLL_CLOEXEC);
        (set >= 0).then(|| OwnedFd::from_raw_fd(set))
    }
}

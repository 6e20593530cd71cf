//! The connector: a thread of the root that makes the node's connections.
//!
//! It listens, proves those who connect ([`meeting`]), connects with the nodes that packets wait for, hands descriptors
//! to processes that may not take them, and writes what others had to leave (under `COHORT_NET_NOTIFY=defer`, or
//! because they have no room for a descriptor). It sleeps in one `poll` over all of that. It never moves data
//! otherwise: ranks do.
//!
//! All sockets are opened here, by the root, and closed here; others use copies.

mod dropped;
mod meeting;

use crate::caller::Caller;
use crate::congestion::Congestion;
use crate::interface::Interfaces;
use crate::rail::{Held, Rail};
use crate::shared::Shared;
use cohort_base::signals::Signals;
use cohort_cipher::Cipher;
use cohort_fabric_host::event_queue::Delivery;
use cohort_fabric_host::handles;
use cohort_fabric_host::no_thread;
use cohort_fabric_host::watch::Watch;
use libc::c_int;
use meeting::{Listener, Meetings};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::net::SocketAddr;
use std::os::fd::IntoRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it moves the connections for a process that cannot.
const MOVE_PERIOD: Duration = Duration::from_millis(1);

/// How long packets of a burst wait for others.
const BURST_TIME: Duration = Duration::from_micros(50);

/// How long to wait for a lock until its holder is taken for dead.
const LOCK_TIME: Duration = Duration::from_secs(1);

/// How long the last words of a job that has failed may take.
const FAREWELL: Duration = Duration::from_millis(100);

/// How long it goes on after it was asked.
const MOVE_TIME: Duration = Duration::from_millis(50);

/// The thread, and what it is started with.
#[derive(Debug)]
pub struct Connector {
    shared: Arc<Shared>,
    /// Of each interface; none once the thread has them.
    listeners: Vec<Listener>,
    addresses: Vec<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// How long last words may take: they wait for other nodes' ranks to read.
    patience: Duration,
}

impl Connector {
    /// Listens at the addresses of interfaces of this host.
    ///
    /// # Errors
    /// A text that says which step failed and why.
    pub fn open(interfaces: &Interfaces, shared: Arc<Shared>) -> Result<Self, String> {
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for interface in interfaces.iter() {
            let failed = |error| format!("cannot listen at {}: {error}", interface.address());
            let listener = interface.listen()?;
            listener.set_nonblocking(true).map_err(failed)?;
            addresses.push(listener.local_addr().map_err(failed)?);
            // SAFETY: open, and nobody else's from now on.
            let socket = unsafe { OwnedFd::from_raw_fd(listener.into_raw_fd()) };
            shared.congestion.set(socket.as_fd());
            let place = interface.place();
            listeners.push(Listener { socket, place });
        }
        Ok(Self {
            patience: shared.node.job.timeout,
            shared,
            listeners,
            addresses,
            stop: Arc::new(AtomicBool::new(false)),
            thread: None,
        })
    }

    /// Where it listens: the main address, then those of further interfaces.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Starts the thread, now that the addresses of all nodes are known.
    ///
    /// # Errors
    /// A text that says what failed.
    pub fn start(&mut self, addresses: Vec<Box<[SocketAddr]>>) -> Result<(), String> {
        let listeners = std::mem::take(&mut self.listeners);
        if listeners.is_empty() {
            return Err("the network is connected already".into());
        }
        let meetings = Meetings::new(Arc::clone(&self.shared), listeners, addresses);
        let (shared, stop) = (Arc::clone(&self.shared), Arc::clone(&self.stop));
        // Signals are for the process's own threads.
        let mask = Signals::ALL.block();
        let thread = std::thread::Builder::new()
            .name("cohort-connector".into())
            .stack_size(256 << 10)
            .spawn(move || run(&shared, meetings, &stop));
        mask.restore();
        self.thread = Some(thread.map_err(|error| no_thread("cannot make a thread", &error))?);
        Ok(())
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        let is_free = self.take_leave();
        self.stop.store(true, Ordering::Release);
        self.shared.ring();
        // A thread that waits for a dead holder's lock ends with the process.
        if let Some(thread) = self.thread.take().filter(|_| is_free) {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

impl Connector {
    /// The job has failed: whoever does not read at once need not hear the last words. The thread may wait for a lock
    /// that a rank was killed with, so it ends with the process.
    pub fn give_up(&mut self) {
        self.patience = FAREWELL;
        self.thread = None;
    }

    /// Says the last words, and waits until they have arrived: a socket that is closed with something unread drops
    /// what it has not sent. A node that does not read keeps this one no longer than it may be silent. False if a
    /// rail's lock is not to be had: a rank was killed that had it, so there is nothing to say.
    fn take_leave(&self) -> bool {
        let caller = self.shared.root();
        let until = Instant::now() + self.patience;
        loop {
            let mut has_arrived = true;
            for rail in &self.shared.rails {
                let Some(mut held) = self.hold_soon(rail, &caller) else {
                    return false;
                };
                has_arrived &= held.say_bye();
            }
            if has_arrived || Instant::now() >= until {
                return true;
            }
            std::thread::sleep(MOVE_PERIOD);
            for rail in &self.shared.rails {
                let mut delivery = Delivery::to_queues(&self.shared.node.queues);
                if let Some(mut held) = self.hold_soon(rail, &caller) {
                    held.flush_all(&mut delivery);
                    held.look(&mut delivery);
                }
            }
        }
    }

    /// Takes a rail's lock, which no living task has for long.
    fn hold_soon<'a>(&'a self, rail: &'a Rail, caller: &'a Caller<'a>) -> Option<Held<'a>> {
        let until = Instant::now() + LOCK_TIME;
        loop {
            match rail.try_hold(&self.shared.node, caller) {
                None if Instant::now() < until => std::thread::sleep(MOVE_PERIOD),
                held => return held,
            }
        }
    }
}

/// The thread's life.
fn run(shared: &Shared, mut meetings: Meetings, stop: &AtomicBool) {
    let mut moves_until: Option<Instant> = None;
    let mut desks: Vec<OwnedFd> = Vec::new();
    let mut looks = dropped::Looks::new(shared.node.job.timeout);
    loop {
        let limit = match moves_until {
            // It has found so itself.
            _ if shared.requests.once.load(Ordering::Relaxed) => Some(Duration::ZERO),
            Some(_) => Some(MOVE_PERIOD),
            None => Some(looks.limit(meetings.time_left())),
        };
        let ready = sleep(shared, &desks, &meetings, limit);
        if stop.load(Ordering::Acquire) {
            return;
        }
        if ready.is_rung {
            shared.reset_bell();
        }
        if ready.is_at_door || ready.desks.contains(&true) {
            let mut is_ready = ready.desks.iter();
            desks.retain(|desk| is_ready.next() != Some(&true) || shared.serve_desk(desk.as_fd()));
            while let Ok(desk) = shared.processes.next_desk() {
                desks.extend(desk.filter(|desk| shared.serve_desk(desk.as_fd())));
            }
            shared.wake_for_others();
        }
        meetings.serve(&ready.meetings);
        let now = Instant::now();
        looks.take(shared, now);
        let is_asked = shared.requests.once.swap(false, Ordering::AcqRel);
        if is_asked {
            meetings.connect_wanted();
        }
        if shared.requests.unwoken.swap(false, Ordering::Relaxed) {
            shared.wake_for_others();
        }
        if shared.requests.starved.swap(false, Ordering::Relaxed) {
            moves_until = Some(now + MOVE_TIME);
        }
        let is_burst = shared.rails.iter().any(Rail::is_called);
        if is_burst {
            // Most of it comes meanwhile, and its sender is about to wait.
            std::thread::sleep(BURST_TIME);
            shared.rails.iter().for_each(Rail::answer_call);
        }
        if is_asked || is_burst || moves_until.is_some() {
            shared.move_all();
        }
        moves_until = moves_until.filter(|&until| now < until);
        close_buried(shared);
        if let Some(process) = shared.processes.take_short() {
            report_shortage(process);
        }
    }
}

/// What the sleep has ended for.
struct Ready {
    is_rung: bool,
    /// Somebody is at the door.
    is_at_door: bool,
    /// Of the desks those that have something.
    desks: Vec<bool>,
    /// Of the meetings' descriptors those that have something.
    meetings: Vec<bool>,
}

fn sleep(shared: &Shared, desks: &[OwnedFd], meetings: &Meetings, limit: Option<Duration>) -> Ready {
    let entry = |descriptor: i32, events| libc::pollfd { fd: descriptor, events, revents: 0 };
    // A negative number is passed over.
    let door = shared.processes.door().map_or(-1, |door| door.as_raw_fd());
    let mut entries = vec![entry(shared.bell.number_of_root(), libc::POLLIN), entry(door, libc::POLLIN)];
    let desk = |desk: &OwnedFd| entry(desk.as_raw_fd(), libc::POLLIN);
    entries.extend(desks.iter().map(desk));
    let meeting = |(socket, events): (BorrowedFd<'_>, i16)| entry(socket.as_raw_fd(), events);
    entries.extend(meetings.descriptors().map(meeting));
    let milliseconds = limit.map_or(-1, |limit| limit.as_micros().div_ceil(1000) as c_int);
    // SAFETY: as many records as the call is told.
    unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as u64, milliseconds) };
    let has = |entry: &libc::pollfd| entry.revents != 0;
    let (desks, meetings) = entries[2..].split_at(desks.len());
    Ready {
        is_rung: has(&entries[0]),
        is_at_door: has(&entries[1]),
        desks: desks.iter().map(has).collect(),
        meetings: meetings.iter().map(has).collect(),
    }
}

/// Closes the sockets of lost nodes, which others have copies of.
fn close_buried(shared: &Shared) {
    for socket in shared.node.take_buried() {
        for rail in &shared.rails {
            for set in [&rail.readable, &rail.writable] {
                // SAFETY: the sets of another rail do not know the socket, and say so.
                unsafe {
                    libc::epoll_ctl(
                        set.number_of_root(),
                        libc::EPOLL_CTL_DEL,
                        socket.number_of_root(),
                        std::ptr::null_mut(),
                    );
                }
            }
        }
        // SAFETY: open until the handle is dropped.
        unsafe { libc::shutdown(socket.number_of_root(), libc::SHUT_RDWR) };
    }
}

fn report_shortage(process: i32) {
    cohort_base::complain!(
        "cohort: process {process} has no room for a descriptor of the network, so its messages go through \
         pip-exec, which takes longer: raise the limit of open files (ulimit -n)"
    );
}

/// A socket for connections; none if there is none to be had.
fn new_socket(family: c_int, congestion: &Congestion) -> Option<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no condition; a new descriptor.
    unsafe {
        let socket = libc::socket(family, kind, 0);
        let socket = (socket >= 0).then(|| OwnedFd::from_raw_fd(socket))?;
        congestion.set(socket.as_fd());
        Some(socket)
    }
}

/// Has a socket send packets at once, and notice when the other system is gone.
fn set_up(socket: BorrowedFd<'_>, timeout: Duration) {
    let on: c_int = 1;
    // SAFETY: an int of the size that is passed.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            size_of::<c_int>() as u32,
        );
    }
    cohort_descriptors::hooks::set_timeouts(socket.as_raw_fd(), timeout);
    dropped::try_often(socket, timeout);
}

impl Shared {
    /// Wakes the connector, by the root.
    fn ring(&self) {
        // The root's own number.
        let _ = Watch::wake(self.bell.number_of_root());
    }

    /// Ends the watch for a process that cannot. It has told the watcher's word already, so this asks for nothing.
    fn wake_for_others(&self) {
        let _ = Watch::wake(self.waker.number_of_root());
    }

    fn reset_bell(&self) {
        let mut count = [0_u8; 8];
        let _ = rustix::io::read(self.bell.as_fd(), &mut count);
    }

    /// Hands a process what it asks for; false if it has left.
    fn serve_desk(&self, desk: BorrowedFd<'_>) -> bool {
        let caller = self.root();
        handles::serve(desk, |id, give| {
            let sets = self.rails.iter().flat_map(|rail| [&rail.readable, &rail.writable]);
            let mut own = sets.chain([&self.waker, &self.bell]);
            if let Some(handle) = own.find(|handle| handle.id() == id) {
                give(handle.as_fd());
                return;
            }
            for rail in &self.rails {
                let held = rail.hold(&self.node, &caller);
                if let Some(number) = held.find(id) {
                    // SAFETY: open while the rail is held.
                    give(unsafe { BorrowedFd::borrow_raw(number) });
                }
                drop(held);
                rail.finish(&self.node, &caller);
            }
        })
    }

    /// A connection is proven: the rail uses it from now on.
    fn connected(&self, rail: usize, node: u32, socket: OwnedFd, cipher: Option<Box<Cipher>>) {
        set_up(socket.as_fd(), self.node.job.timeout);
        let code = match self.processes.share(socket) {
            Ok(handle) => {
                self.node.job.contacted(self.node.job.ranks_of(node)[0]);
                let caller = self.root();
                let rail = &self.rails[rail];
                let mut delivery = Delivery::to_queues(&self.node.queues);
                let mut held = rail.hold(&self.node, &caller);
                let connected = held.connected(node, handle, cipher, &mut delivery);
                drop(held);
                rail.finish(&self.node, &caller);
                connected.err()
            }
            Err(code) => Some(code.raw_os_error()),
        };
        if let Some(code) = code {
            self.node.lose(node, code);
        }
        // There may be events, and sleepers have not seen the new socket.
        self.interrupt(self.processes.root());
    }
}
